"""Built things are directories of a kind, each with a manifest, written whole or not at all."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

from citerec.errors import InputError
from citerec.groundwork.writing import beside, exchange, recover, write_failures


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of directory, as its manifest, a JSON object, says under `kind`."""

    name: str  # what to call it in an error
    kind: str
    manifest: str  # the name of that file
    names: frozenset[str]  # of all that is in one

    def is_at(self, path: Path) -> bool:
        """Whether a folder is of this kind by its manifest; one whose manifest is broken counts as one."""
        recover(path)
        try:
            return bool(orjson.loads((path / self.manifest).read_bytes()).get("kind") == self.kind)
        except OSError:
            return False
        except (orjson.JSONDecodeError, AttributeError):
            return True

    def check_place(self, out: Path) -> None:
        """Raises InputError where something else than a directory of this kind stands, or nothing may be written."""
        out = out.resolve()  # a link is followed, not replaced
        recover(out)
        if Path.cwd().is_relative_to(out):
            raise InputError(f"{out} is the current folder, or holds it", "Give another --out.")
        standing = next(folder for folder in (out, *out.parents) if folder.exists())
        if not os.access(standing, os.W_OK) or not (standing.is_dir() or standing == out):
            raise InputError(f"cannot write {out}: {standing} is no folder to write to", "Give another --out.")
        if not out.exists():
            return
        if not out.is_dir() or (any(out.iterdir()) and not self.is_at(out)):
            raise InputError(f"{out} exists and is no {self.name}", "Give another --out, or remove it first.")
        if others := sorted(path.name for path in out.iterdir() if path.name not in self.names):
            raise InputError(f"{out} holds other things too, such as {others[0]}", "Give another --out, or move them.")

    @contextlib.contextmanager
    def writing(self, out: Path) -> Iterator[Path]:
        """A directory to write to, which takes its place at the end; if anything fails, what stood there stays.

        Raises:
            InputError: Something else stands there.
            BuildError: The disk is full, or may not be written to.
        """
        self.check_place(out)
        out = out.resolve()
        partial = beside(out, "writing")
        try:
            with write_failures(out):
                shutil.rmtree(partial, ignore_errors=True)
                partial.mkdir(parents=True)
                yield partial
                exchange(partial, out)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
