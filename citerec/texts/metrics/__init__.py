"""Metrics of written texts, one file each."""
