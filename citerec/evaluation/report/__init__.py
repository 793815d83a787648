"""The page of results: one file of HTML, with charts in it."""
