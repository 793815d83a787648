"""Models: finding them, running them in batches, on a GPU, or with 8-bit weights."""
