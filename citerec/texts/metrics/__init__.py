"""Metrics of texts, one file each; `base.py` says what a metric is."""
