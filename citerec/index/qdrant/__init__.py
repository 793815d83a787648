"""The engine on Qdrant."""
