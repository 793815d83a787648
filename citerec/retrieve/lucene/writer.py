"""Writing a Lucene index from Python, fast: Python fills one batch of documents while Java analyses another."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from citerec.retrieve.lucene.fields import analyzer, open_directory
from citerec.retrieve.lucene.jvm import java_class, java_threads

_BATCH = 128
_BATCHES = 4
_RAM_MB = 96.0
_THREADS = 2

Item = TypeVar("Item", contravariant=True)


@dataclass(frozen=True, slots=True)
class Mark:
    """The progress of a run: all papers up to `after` are indexed, or all of them."""

    run: int
    after: str = ""
    finished: bool = False


class ReusableDocument(Protocol[Item]):
    """A Java document that can be filled again and again."""

    document: Any

    def fill(self, item: Item) -> None:
        """Fills the document with an item."""


class LuceneWriter(Generic[Item]):
    """Writes documents into a Lucene index, continuing from its last commit, which survives a crash.

    Use it from one thread, as a context manager. Uncommitted documents are lost.
    """

    def __init__(self, path: Path, make_document: Callable[[], ReusableDocument[Item]]) -> None:
        config = java_class("org.apache.lucene.index.IndexWriterConfig")(analyzer())
        config.setRAMBufferSizeMB(_RAM_MB)
        config.setCommitOnClose(False)
        # All deleted documents are removed by the merge in `commit(purge=True)`: statistics are those of a fresh build.
        merges = java_class("org.apache.lucene.index.TieredMergePolicy")()
        merges.setForceMergeDeletesPctAllowed(0.0)
        config.setMergePolicy(merges)
        self._merges = java_class("org.apache.lucene.index.ConcurrentMergeScheduler")()
        self._merges.disableAutoIOThrottle()  # the purge is waited for
        config.setMergeScheduler(self._merges)
        self._writer = java_class("org.apache.lucene.index.IndexWriter")(open_directory(path), config)
        # Called once here, so that no two threads are the first to call them: see `_calling` in jvm.py.
        self._writer.addDocuments(java_class("java.util.ArrayList")())
        self._writer.flushNextBuffer()
        self._pool = java_threads(_THREADS)
        self._batches = [_Batch(make_document) for _ in range(_BATCHES)]
        self._current = 0
        self._filled = 0

    def __enter__(self) -> "LuceneWriter[Item]":
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._pool.shutdown()  # waits for its work: Lucene must not be closed during it
        self._writer.rollback()  # closes too; committed documents stay

    @property
    def mark(self) -> Mark:
        """The progress at the last commit."""
        data = self._writer.getLiveCommitData()
        found = {} if data is None else {str(entry.getKey()): str(entry.getValue()) for entry in data}
        return Mark(int(found.get("run", 0)), found.get("after", ""), finished=found.get("finished") == "yes")

    def add(self, item: Item) -> None:
        """Adds a document."""
        self._batches[self._current].documents[self._filled].fill(item)
        self._filled += 1
        if self._filled == _BATCH:
            self._send()

    def delete(self, field: str, value: str) -> None:
        """Deletes the documents that have a term, among those added before."""
        self._writer.deleteDocuments(java_class("org.apache.lucene.index.Term")(field, value))

    def commit(self, mark: Mark, *, purge: bool = False) -> None:
        """Makes all added documents durable, with a mark of the progress.

        With `purge`, merges remove deleted documents, so that the statistics do not include them.
        """
        self._send()
        for batch in self._batches:
            batch.done.result()
        # A commit alone writes the buffers of all threads one after the other.
        for flushed in [self._pool.submit(self._writer.flushNextBuffer) for _ in range(_THREADS)]:
            flushed.result()
        if purge:
            self._purge()
        data = {"run": str(mark.run), "after": mark.after, "finished": "yes" if mark.finished else "no"}
        self._writer.setLiveCommitData(java_class("java.util.HashMap")(data).entrySet())
        self._writer.commit()

    def _purge(self) -> None:
        # `forceMergeDeletes` skips segments that a background merge is working on, and such a merge keeps documents
        # that were deleted while it ran.
        while self._writer.hasDeletions():
            self._merges.sync()
            self._writer.forceMergeDeletes()

    def _send(self) -> None:
        if self._filled:
            batch = self._batches[self._current]
            listed = batch.listed if self._filled == _BATCH else batch.listed.subList(0, self._filled)
            batch.done = self._pool.submit(self._writer.addDocuments, listed)
            self._current = (self._current + 1) % _BATCHES
            self._filled = 0
            # The next batch is filled only when Java has finished with it.
            self._batches[self._current].done.result()


class _Batch:
    """Documents that go to Java together."""

    def __init__(self, make_document: Callable[[], ReusableDocument[Any]]) -> None:
        self.documents = [make_document() for _ in range(_BATCH)]
        self.listed = java_class("java.util.ArrayList")([document.document for document in self.documents])
        self.done: Future[int] = Future()
        self.done.set_result(0)


def count_documents(path: Path) -> int:
    """How many documents a Lucene index has; 0 if there is no index."""
    directory = open_directory(path)
    readers = java_class("org.apache.lucene.index.DirectoryReader")
    if not readers.indexExists(directory):
        return 0
    reader = readers.open(directory)
    try:
        return int(reader.numDocs())
    finally:
        reader.close()
