"""How far the work on a folder of vectors has come, so that a stopped one goes on."""

import os
import shutil
from pathlib import Path
from typing import Any

import orjson

JOURNAL = "journal.json"


class Journal:
    """Notes kept on disk, for one plan: a folder that was begun after another is emptied.

    Args:
        folder: Where the work is done; made where it is not there.
        plan: What is to be done, as JSON has it.
    """

    def __init__(self, folder: Path, plan: dict[str, Any]) -> None:
        self._path = folder / JOURNAL
        try:
            self._notes: dict[str, Any] = orjson.loads(self._path.read_bytes())
        except (OSError, orjson.JSONDecodeError):
            self._notes = {}
        if self._notes.get("plan") != orjson.loads(orjson.dumps(plan)):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            self._notes = {}
            self.note(plan=plan)

    def get(self, name: str) -> Any:
        """A note; None where there is none."""
        return self._notes.get(name)

    def note(self, **notes: Any) -> None:
        """Keeps notes, durably and all at once."""
        self._notes |= notes
        written = self._path.with_suffix(".partial")
        with written.open("wb") as file:
            file.write(orjson.dumps(self._notes))
            file.flush()
            os.fsync(file.fileno())
        written.replace(self._path)
