"""Ranking candidates anew: learning to rank, cross-encoder."""
