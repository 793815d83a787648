"""Corpora that can be fetched: one file per source, found by name in `base.CORPORA`."""
