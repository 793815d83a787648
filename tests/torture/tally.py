"""Counts of what was tried, and the faults that were found."""

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

KINDS = ("loss", "traceback", "hang", "torn read")


@dataclass
class Tally:
    """What was tried, by part; and the faults, each with what is needed to repeat it.

    Attributes:
        tried: How often, by name: "kills", "mutations", …
        faults: By kind, one of KINDS, descriptions of the faults.
    """

    tried: Counter[str] = field(default_factory=Counter)
    faults: dict[str, list[str]] = field(default_factory=lambda: {kind: [] for kind in KINDS})

    def fault(self, kind: str, description: str) -> None:
        """Notes a fault."""
        self.faults[kind].append(description)
        print(f"  {kind}: {description}", flush=True)

    @property
    def sound(self) -> bool:
        """Whether no fault was found."""
        return not any(self.faults.values())

    def __str__(self) -> str:
        tried = ", ".join(f"{count:,} {name}" for name, count in sorted(self.tried.items()))
        faults = ", ".join(
            f"{len(found)} {kind}{'es' if kind == 'loss' else 's'}" for kind, found in self.faults.items()
        )
        return f"{tried}\n{faults}"

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {"tried": dict(self.tried), "faults": self.faults}

    def write(self, path: Path) -> None:
        """Writes it as JSON."""
        path.write_text(json.dumps(self.to_json(), indent=2) + "\n", encoding="utf-8")
