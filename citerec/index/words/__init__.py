"""The words of papers: analysed, scored, searched without Java."""
