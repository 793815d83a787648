"""The short form of `make torture`."""

from pathlib import Path

import pytest

from tests.torture.__main__ import PARTS, torture

pytestmark = pytest.mark.slow

SECONDS = 0  # each part has one turn
SEED = 86  # commands that need no model: `make torture` draws all


def test_nothing_is_lost_and_nothing_torn(tmp_path: Path) -> None:
    tally = torture(SECONDS, SEED, tmp_path, PARTS)
    assert tally.sound, tally.faults
    # Each part had a turn.
    assert {"kills", "crash points", "opens", "builds"} <= tally.tried.keys()
