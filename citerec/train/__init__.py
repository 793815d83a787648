"""Training of rankers, rerankers, encoders, taggers and writers."""
