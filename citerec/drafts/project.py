"""The project of a draft: `citerec.toml` in its folder, or in one above (docs/drafts.md#a-project-file)."""

import functools
import os
import re
from pathlib import Path

from pydantic import field_validator

from citerec.drafts.base import MARKS
from citerec.errors import SettingsError
from citerec.settings import PartSettings, flat, nearest, read_toml
from citerec.systems import Names

FILE = "citerec.toml"


class Project(PartSettings):
    """What holds for all drafts below a folder. Paths in the file are relative to its folder.

    Attributes:
        bib: Bibliographies of drafts that name none.
        index: The index that is searched.
        system: The system that searches.
        keys: The pattern of new keys.
        marks: Regular expressions of further marks of places.
    """

    bib: Names = ()
    index: str = ""
    system: str = ""
    keys: str = ""
    marks: tuple[str, ...] = ()
    folder: Path = Path()

    @field_validator("marks")
    @classmethod
    def _compiles(cls, marks: tuple[str, ...]) -> tuple[str, ...]:
        for mark in marks:
            try:
                is_empty = re.match(mark, "")
            except re.error as error:
                raise ValueError(f"{mark!r} is no regular expression: {error}") from error
            if is_empty:
                raise ValueError(f"{mark!r} matches the empty text")
        return marks

    @property
    def bibliographies(self) -> tuple[Path, ...]:
        """The bibliographies."""
        return tuple(self.folder / name for name in self.bib)

    @property
    def index_path(self) -> Path | None:
        """The index."""
        return self.folder / self.index if self.index else None

    @functools.cached_property
    def mark(self) -> re.Pattern[str]:
        """What marks a place in running text."""
        return re.compile("|".join([MARKS.pattern, *(f"(?:{one})" for one in self.marks)]))


def project_of(path: Path) -> Project:
    """The project of a file or a folder; an empty one if there is none.

    Raises:
        SettingsError: The project file cannot be read, or a setting is wrong.
    """
    place = path.absolute()
    for folder in (place, *place.parents):
        if os.path.exists(folder / FILE):  # noqa: PTH110 - that of `Path` fails in folders that may not be read
            return _read(folder / FILE)
    return Project()


def _read(file: Path) -> Project:
    try:
        table = read_toml(file)
        keys = [key for key in Project.model_fields if key != "folder"]
        if unknown := [key for key, _ in flat(table) if key not in keys]:
            raise SettingsError(f"{unknown[0]!r} is not a setting", nearest(unknown[0], lambda: keys))
        return Project.checked({**table, "folder": file.parent}, "", lambda: keys)
    except SettingsError as error:
        fault = error.message if str(file) in error.message else f"{file}: {error.message}"
        raise SettingsError(fault, "See docs/drafts.md, A project file.") from error
