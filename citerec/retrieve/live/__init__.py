"""Retrievers that ask a web service, so that papers are found without an index (docs/live.md)."""
