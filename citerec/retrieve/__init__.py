"""Building, opening and searching an index directory."""
