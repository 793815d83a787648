"""Reranking of candidates: learning to rank, and cross-encoders."""
