"""What every room stands on: built directories, stopped work, processes, hashing, progress."""
