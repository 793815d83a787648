"""The short form of `make torture`."""

from pathlib import Path

import pytest

from tests.torture.__main__ import torture

pytestmark = pytest.mark.slow

SEED = 72  # commands that need no model: `make torture` draws all


def test_nothing_is_lost_and_nothing_torn(tmp_path: Path) -> None:
    tally = torture(0, SEED, tmp_path)
    assert not tally.faults
    assert {"kills", "crash points", "opens", "builds"} <= tally.tried.keys(), "each part had a turn"
