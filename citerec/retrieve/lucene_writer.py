"""Writing a Lucene index from Python, fast: Python fills one batch of documents while Java analyses another."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from citerec.retrieve.jvm import cast, class_object, java_class, java_list, java_lock, method_handle
from citerec.retrieve.lucene_fields import analyzer, open_directory

_BATCH = 128
_BATCHES = 4
_RAM_MB = 96.0
_THREADS = 2

Item = TypeVar("Item", contravariant=True)


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a run has come: all papers up to `after` are in, or all of them."""

    run: int
    after: str = ""
    finished: bool = False


class ReusableDocument(Protocol[Item]):
    """A Java document that can be filled again and again."""

    document: Any

    def fill(self, item: Item) -> None:
        """Makes it the document of an item."""


class LuceneWriter(Generic[Item]):
    """Writes documents into a Lucene index; what is committed survives a crash.

    Use it from one thread, as a context manager. What was not committed is lost.

    Args:
        path: Folder of the index; goes on from its last commit if there is one.
        make_document: Makes an empty document of the kind to be written.
    """

    def __init__(self, path: Path, make_document: Callable[[], ReusableDocument[Item]]) -> None:
        with java_lock:
            directory = open_directory(path)
            config = java_class("org.apache.lucene.index.IndexWriterConfig")(analyzer())
            config.setRAMBufferSizeMB(_RAM_MB)
            config.setCommitOnClose(False)
            # All deleted documents leave at the merge in `commit(purge=True)`: statistics are those of a fresh build.
            merges = java_class("org.apache.lucene.index.TieredMergePolicy")()
            merges.setForceMergeDeletesPctAllowed(0.0)
            config.setMergePolicy(merges)
            self._merges = java_class("org.apache.lucene.index.ConcurrentMergeScheduler")()
            config.setMergeScheduler(self._merges)
            self._writer = java_class("org.apache.lucene.index.IndexWriter")(directory, config)
            # Java's threads, not Python's: pyjnius is not safe to call from several (jvm.py).
            self._executor = java_class("java.util.concurrent.Executors").newFixedThreadPool(_THREADS)
            self._batches = [_Batch(self._writer, make_document) for _ in range(_BATCHES)]
            self._flush = _callable(_flush_next_buffer_handle(), self._writer)
            self._nothing = cast("java.lang.Iterable", java_list([]))
        self._current = 0
        self._filled = 0

    def __enter__(self) -> "LuceneWriter[Item]":
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        with java_lock:
            self._executor.close()  # waits for what it is at: Lucene must not be closed under it
            self._writer.rollback()  # closes too; what was committed stays

    @property
    def mark(self) -> Mark:
        """How far the work had come at the last commit."""
        found: dict[str, str] = {}
        with java_lock:
            data = self._writer.getLiveCommitData()
            entries = data.iterator() if data is not None else None
            while entries is not None and entries.hasNext():
                entry = cast("java.util.Map$Entry", entries.next())
                key = str(entry.getKey())
                found[key] = str(entry.getValue())
        return Mark(int(found.get("run", 0)), found.get("after", ""), finished=found.get("finished") == "yes")

    def add(self, item: Item) -> None:
        """Adds a document."""
        with java_lock:
            batch = self._batches[self._current]
            batch.documents[self._filled].fill(item)
            self._filled += 1
            if self._filled == _BATCH:
                self._send()

    def delete(self, field: str, value: str) -> None:
        """Deletes the documents that have a term, among those added before."""
        with java_lock:
            term = java_class("org.apache.lucene.index.Term")(field, value)
            # pyjnius cannot tell deleteDocuments(Term…) from deleteDocuments(Query…).
            self._writer.updateDocuments(term, self._nothing)

    def commit(self, mark: Mark, *, purge: bool = False) -> None:
        """Makes all that was added durable.

        Args:
            mark: How far the work has come.
            purge: Merge deleted documents away, so that no trace of them is left in the statistics.
        """
        with java_lock:
            self._send()
            for batch in self._batches:
                batch.wait()
            # A commit alone writes the buffers of all threads one after the other.
            for flushed in [self._executor.submit(self._flush) for _ in range(_THREADS)]:
                flushed.get()
            if purge:
                self._purge()
            data = java_class("java.util.HashMap")()
            data.put("run", str(mark.run))
            data.put("after", mark.after)
            data.put("finished", "yes" if mark.finished else "no")
            entries = cast("java.lang.Iterable", data.entrySet())
            self._writer.setLiveCommitData(entries)
            self._writer.commit()

    def _purge(self) -> None:
        # `forceMergeDeletes` passes over segments that a merge of the background has in hand, and such a merge keeps
        # what was deleted while it ran.
        while self._writer.hasDeletions():
            self._merges.sync()
            self._writer.forceMergeDeletes()

    def _send(self) -> None:
        if self._filled:
            self._batches[self._current].send(self._executor, self._filled)
            self._current = (self._current + 1) % _BATCHES
            self._filled = 0
            # The next batch is filled only when Java has finished with it.
            self._batches[self._current].wait()


class _Batch:
    """Documents that go to Java together."""

    def __init__(self, writer: Any, make_document: Callable[[], ReusableDocument[Any]]) -> None:
        self.documents = [make_document() for _ in range(_BATCH)]
        self._writer = writer
        self._list = java_list([document.document for document in self.documents])
        self._whole = _callable(_add_documents_handle(), writer, self._list)
        self._future: Any = None

    def send(self, executor: Any, count: int) -> None:
        if count == _BATCH:
            task = self._whole
        else:
            part = self._list.subList(0, count)
            task = _callable(_add_documents_handle(), self._writer, part)
        self._future = executor.submit(task)

    def wait(self) -> None:
        if self._future is not None:
            future, self._future = self._future, None
            future.get()


_INDEX_WRITER = "org.apache.lucene.index.IndexWriter"


@functools.cache
def _add_documents_handle() -> Any:
    return method_handle(_INDEX_WRITER, "addDocuments", class_object("long"), class_object("java.lang.Iterable"))


@functools.cache
def _flush_next_buffer_handle() -> Any:
    return method_handle(_INDEX_WRITER, "flushNextBuffer", class_object("boolean"))


def _callable(handle: Any, *arguments: Any) -> Any:
    """A `java.util.concurrent.Callable` that calls a method with these arguments: made in Java, run by Java."""
    bound = java_class("java.lang.invoke.MethodHandles").insertArguments(handle, 0, *arguments)
    proxies = java_class("java.lang.invoke.MethodHandleProxies")
    made = proxies.asInterfaceInstance(class_object("java.util.concurrent.Callable"), bound)
    return cast("java.util.concurrent.Callable", made)


def count_documents(path: Path) -> int:
    """How many documents a Lucene index has; none where there is no index."""
    with java_lock:
        directory = open_directory(path)
        readers = java_class("org.apache.lucene.index.DirectoryReader")
        if not readers.indexExists(directory):
            return 0
        reader = readers.open(directory)
        try:
            return int(reader.numDocs())
        finally:
            reader.close()
