"""The files of a draft: as they were read, and as they will be."""

import codecs
import contextlib
import difflib
import io
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from citerec.drafts.packed import KINDS, Packed
from citerec.errors import InputError
from citerec.files.writing import write_bytes, write_failures

_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",  # before UTF-16's, which it begins with
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_DECLARED = re.compile(
    rb"\\usepackage\s*\[\s*(?P<inputenc>[\w-]+)\s*\]\s*\{inputenc\}|%\s*!TEX\s+encoding\s*=\s*(?P<tex>[\w-]+)|"
    rb"-\*-.{0,80}coding:\s*(?P<emacs>[\w-]+)",
    re.IGNORECASE,
)
_NAMES = {"ansinew": "cp1252", "applemac": "mac-roman", "utf8x": "utf-8", "isolatin": "latin-1"}
_HEAD = 1 << 14  # bytes in which an encoding is declared


@dataclass
class _File:
    """A file as it was, and its text as it is now; one whose text was given has no encoding, and is never written."""

    before: str
    text: str
    encoding: str | None = None
    data: bytes = b""
    packed: Packed | None = None

    def written(self, path: Path) -> bytes:
        """The bytes of the file as it is now."""
        return self.packed.data() if self.packed else self.encoded(path, self.text)

    def encoded(self, path: Path, text: str) -> bytes:
        if self.encoding is None:
            return b""
        try:
            return text.encode(self.encoding)
        except UnicodeError as error:
            sign = repr(text[error.start]) if isinstance(error, UnicodeEncodeError) else "such text"
            raise InputError(f"{path} is {self.encoding}, which has no {sign}", "Save it as UTF-8.") from error


State = Mapping[Path, tuple[str, Packed | None]]
"""The texts of files at a time."""


class Files:
    r"""The texts of files, which can be changed, compared and written.

    Args:
        encoding: Of all files; by default a byte-order mark says, or the file is UTF-8, or LaTeX's `inputenc` says.
        texts: Texts of files that differ from the disk, such as those of an editor; they are never written.
        disk: Whether files are read from the disk. Without it there are only `texts`, and `\input` finds nothing else.

    Attributes:
        reads_disk: Whether files are read from the disk.
    """

    def __init__(
        self, encoding: str | None = None, texts: Mapping[Path, str] | None = None, *, disk: bool = True
    ) -> None:
        if encoding is not None and _encoded("", encoding) is None:
            raise InputError(f"Python knows no encoding {encoding!r}", "Give one such as latin-1.")
        self._encoding, self.reads_disk = encoding, disk
        self._files = {self._place(path): _File(text, text) for path, text in (texts or {}).items()}

    def text(self, path: Path) -> str:
        """The text of a file with its ends of lines, as it is now: with the changes so far.

        Raises:
            InputError: It cannot be read, or not in its encoding.
        """
        place = self._place(path)
        if place not in self._files:
            if not self.reads_disk:
                raise InputError(f"there is no file {path}", "Give its text.")
            self._files[place] = self._read(path)
        return self._files[place].text

    def text_if_any(self, path: Path) -> str:
        """The same; empty if it cannot be read."""
        with contextlib.suppress(InputError):
            return self.text(path)
        return ""

    def change(self, path: Path, start: int, end: int, new: str) -> None:
        """Replaces some characters of a file; a file that is missing begins empty.

        Raises:
            InputError: The file cannot be read, or its encoding lacks a character of the new text.
        """
        place = self._place(path)
        if not self.exists(path):
            self._files[place] = _File("", "", self._encoding or "utf-8")
        text, file = self.text(path), self._files[place]
        file.encoded(place, new)  # if it can be
        file.text = text[:start] + new + text[end:]
        if file.packed:
            file.packed = file.packed.changed(start, end, new)

    def state(self) -> State:
        """The texts as they are now, which `restore` takes back to."""
        return {path: (file.text, file.packed) for path, file in self._files.items()}

    def restore(self, state: State) -> None:
        """Takes all files back to a state; one that was made since is emptied."""
        for path, file in self._files.items():
            file.text, file.packed = state.get(path, ("", None))

    def exists(self, path: Path) -> bool:
        """Whether there is such a file, on the disk or among what was given or changed."""
        place = self._place(path)
        return place in self._files or (self.reads_disk and place.is_file())

    @property
    def changed(self) -> tuple[Path, ...]:
        """The files that differ from what was read."""
        return tuple(path for path, file in self._files.items() if file.text != file.before)

    def diff(self) -> str:
        """What changed, as a unified diff."""
        parts = []
        for path in self.changed:
            # A line of a diff ends with a line feed only: `splitlines` ends it with a form feed too.
            file = self._files[path]
            before, after = (list(io.StringIO(text, newline="\n")) for text in (file.before, file.text))
            for line in difflib.unified_diff(before, after, _named(path), _named(path)):
                parts.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
        return "".join(parts)

    def reload(self) -> bool:
        """Reads those files again that others have saved and nothing was changed in; whether there were any."""
        saved = self._saved()
        for path in saved:
            del self._files[path]
        return bool(saved)

    def is_stale(self, changed: Path | None = None) -> bool:
        """Whether others have saved a file in which nothing was changed, or the one that may be `changed`."""
        return bool(self._saved(changed))

    def _saved(self, changed: Path | None = None) -> list[Path]:
        place = changed and self._place(changed)
        files = ((path, one) for path, one in self._files.items() if one.encoding)
        unchanged = ((path, one) for path, one in files if path == place or one.text == one.before)
        return [path for path, file in unchanged if _bytes_of(path) != file.data]

    def write(self) -> None:
        """Writes all changed files, or none.

        A crash between two of them leaves each whole, but some may be new and some old.

        Raises:
            InputError: A file was changed by others since it was read.
            BuildError: A file cannot be written.
        """
        files = {path: self._files[path] for path in self.changed if self._files[path].encoding}
        new = {path: file.written(path) for path, file in files.items()}
        for path, file in files.items():
            if path.exists() and not os.access(path, os.W_OK):  # or it would be replaced all the same
                raise InputError(f"{path} may not be changed", "Nothing was written. Mend its permissions.")
            if _bytes_of(path) != file.data:
                raise InputError(f"{path} was changed while it was open", "Nothing was written. Start again.")
        existed = [path for path in files if path.exists()]
        try:
            for path, data in new.items():
                with write_failures(path, "Nothing was changed. Make room, or mend its permissions."):
                    write_bytes(path, data)
        except BaseException:
            for path, file in files.items():
                if path not in existed:
                    path.unlink(missing_ok=True)
                elif _bytes_of(path) != file.data:
                    write_bytes(path, file.data)
            raise
        for path, file in files.items():
            file.before, file.data = file.text, new[path]

    def _place(self, path: Path) -> Path:
        # Following symbolic links would read the disk.
        return path.resolve() if self.reads_disk else path

    def _read(self, path: Path) -> _File:
        try:
            data = path.read_bytes()
        except OSError as error:
            remedy = "Check its name." if isinstance(error, FileNotFoundError) else "Give a text file."
            raise InputError(f"cannot read {path}: {error.strerror or error}", remedy) from error
        if path.suffix.lower() in KINDS:
            packed = Packed(path, data)
            return _File(packed.text, packed.text, "utf-8", data, packed)
        encoding = self._encoding_of(data)
        try:
            text = data.decode(encoding)
        except UnicodeError as error:
            if b"\0" in data:
                raise InputError(f"{path} is not a text file", "Give a draft as text, such as LaTeX.") from error
            where = f" (byte {error.start})" if isinstance(error, UnicodeDecodeError) else ""
            remedy = "Name its encoding: --encoding latin-1. Or save it as UTF-8."
            raise InputError(f"{path} is not {encoding.upper()}{where}", remedy) from error
        if _encoded(text, encoding) != data:
            raise InputError(f"{path} cannot be kept byte for byte as {encoding}", "Save it as UTF-8.")
        return _File(text, text, encoding, data)

    def _encoding_of(self, data: bytes) -> str:
        if known := self._encoding or next((name for mark, name in _MARKS.items() if data.startswith(mark)), ""):
            return known
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            if declared := _DECLARED.search(data[:_HEAD]):
                name = declared[declared.lastgroup or 0].decode().lower()
                if _encoded("", name := _NAMES.get(name, name)) == b"":
                    return codecs.lookup(name).name
        return "utf-8"


def _encoded(text: str, encoding: str) -> bytes | None:
    """The bytes of a text in an encoding; None if that lacks a character, or there is none of this name for texts."""
    try:
        return text.encode(encoding)
    except (LookupError, UnicodeError):
        return None


def _bytes_of(path: Path) -> bytes:
    """What is in a file; nothing if there is none."""
    return path.read_bytes() if path.exists() else b""


def _named(path: Path) -> str:
    """A path as a person would type it."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
