"""Built things are directories: written beside their place, and put there when they are whole."""

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from citerec.errors import BuildError, InputError


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of directory.

    Attributes:
        name: What to call it in an error.
        mark: The file by which one is known.
        names: The names of all that is in one.
    """

    name: str
    mark: str
    names: frozenset[str]

    def check_place(self, out: Path) -> None:
        """Whether one can be written here: what stands here is replaced, and must be of this kind and nothing else.

        Raises:
            InputError: Something else stands here.
        """
        if not out.exists():
            return
        if not out.is_dir() or (any(out.iterdir()) and not (out / self.mark).is_file()):
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
        out = out.resolve()  # a link is followed, not replaced
        self.check_place(out)
        partial = out.parent / f".{out.name}.writing"
        try:
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            yield partial
            if out.exists():
                shutil.rmtree(out)
            partial.rename(out)
        except OSError as error:
            raise BuildError(
                f"cannot write {out}: {error.strerror or error}", "Make room, or give another --out."
            ) from error
        finally:
            shutil.rmtree(partial, ignore_errors=True)
