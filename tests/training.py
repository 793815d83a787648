"""What tests of trainings share: settings with some changes, and trainings that are stopped and continued."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest


def made_of(kind: Any, changes: Mapping[str, Any], **defaults: Any) -> Any:
    """A dataclass of defaults, with those of the changes that it has a field for."""
    own = {name: value for name, value in changes.items() if name in kind.__dataclass_fields__}
    return kind(**{**defaults, **own})


def how_of(changes: Mapping[str, Any]) -> Any:
    """What the changes say of how training is watched."""
    return {name: changes[name] for name in ("on_progress", "note") if name in changes}


def stop_at(doing: str, step: float) -> Callable[[str, float, float], None]:
    """Progress that stops the work like Ctrl-C."""

    def progress(now: str, done: float, _whole: float) -> None:
        if now == doing and done >= step:
            raise KeyboardInterrupt

    return progress


def stopped_and_continued(train: Callable[..., Any], out: Path, *stops: tuple[str, float], **options: Any) -> Any:
    """The manifest of a training that is stopped at some steps, and continues where it was."""
    for doing, step in stops:
        with pytest.raises(KeyboardInterrupt):
            train(out, on_progress=stop_at(doing, step), **options)
        assert not out.exists()
    steps: list[float] = []

    def progress(doing: str, done: float, _whole: float) -> None:
        if doing == "training":
            steps.append(done)

    manifest = train(out, on_progress=progress, **options)
    assert min(steps) > 0
    assert not out.with_name(f".{out.name}.training").exists()
    return manifest
