"""Fetching corpora: a release is cut to size while it streams, and kept up to date by diffs (docs/corpora.md)."""
