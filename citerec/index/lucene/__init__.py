"""The engine on Lucene."""
