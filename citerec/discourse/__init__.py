"""Taggers of citing sentences: why a paper is cited, and what a sentence does in related work."""
