"""Index directories: built, changed, opened, searched by row."""
