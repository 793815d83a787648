"""What learns: rankers, rerankers, encoders."""
