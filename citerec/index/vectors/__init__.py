"""Vectors of papers: made, kept, searched."""
