"""Metrics of texts, one file each; `base.py` defines what a metric is."""
