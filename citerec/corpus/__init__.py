"""Reading papers and citations from files, and storing them by id."""
