"""Shared foundations: built directories, resumable work, processes, hashing, progress."""
