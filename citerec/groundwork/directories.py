"""Kinds of built directories. Each has a manifest, and is written whole or not at all."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

from citerec.errors import InputError
from citerec.groundwork.writing import beside, exchange, recover, remove, write_failures


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of directory. Its manifest, a JSON object, names it under `kind`."""

    name: str  # its name in errors
    kind: str
    manifest: str  # the name of that file
    names: frozenset[str]  # of everything in such a directory

    def is_at(self, path: Path) -> bool:
        """Whether a folder is of this kind by its manifest; a broken manifest counts as of this kind."""
        recover(path)
        try:
            return bool(orjson.loads((path / self.manifest).read_bytes()).get("kind") == self.kind)
        except OSError:
            return False
        except (orjson.JSONDecodeError, AttributeError):
            return True

    def check_place(self, out: Path) -> None:
        """Raises InputError if anything but a directory of this kind is there, or it cannot be written."""
        out = out.resolve()  # a link is followed, not replaced
        recover(out)
        if Path.cwd().is_relative_to(out):
            raise InputError(f"{out} is the current folder, or holds it", "Give another --out.")
        standing = next(folder for folder in (out, *out.parents) if folder.exists())
        if not os.access(standing, os.W_OK) or not (standing.is_dir() or standing == out):
            raise InputError(f"cannot write {out}: {standing} is not a folder to write to", "Give another --out.")
        if not out.exists():
            return
        if not out.is_dir() or (any(out.iterdir()) and not self.is_at(out)):
            raise InputError(f"{out} exists and is no {self.name}", "Give another --out, or remove it first.")
        if others := sorted(path.name for path in out.iterdir() if path.name not in self.names):
            raise InputError(f"{out} holds other things too, such as {others[0]}", "Give another --out, or move them.")

    @contextlib.contextmanager
    def writing(self, out: Path) -> Iterator[Path]:
        """Yields a directory to write to, which becomes `out` at the end; if anything fails, the old one is kept.

        Raises:
            InputError: Something else is there.
            BuildError: The disk is full, or may not be written to.
        """
        self.check_place(out)
        out = out.resolve()
        partial = beside(out, "writing")
        try:
            with write_failures(out):
                remove(partial)
                partial.mkdir(parents=True)
                yield partial
                exchange(partial, out)
        finally:
            remove(partial)
