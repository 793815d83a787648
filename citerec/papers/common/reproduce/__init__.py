"""The tables of the papers: published figures beside measured ones."""
