"""The systems of the papers, one folder a paper. Each registers its parts by entry points, as other packages do."""
