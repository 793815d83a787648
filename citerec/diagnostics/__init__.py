"""Diagnostic sets: contexts in classes, family by family, so that a recommender is measured where it may fail."""
