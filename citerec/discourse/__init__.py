"""Taggers of citing sentences: why a paper is cited, and the role of a sentence in related work."""
