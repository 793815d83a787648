"""Reading papers and citations from files, and keeping them: id to full record."""
