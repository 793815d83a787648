"""Writers, one file each; `base.py` defines what a writer is."""

from citerec.write.writers.base import WRITERS, Kind, Writer, WriterPart, open_writer

__all__ = ["WRITERS", "Kind", "Writer", "WriterPart", "open_writer"]
