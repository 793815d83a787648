"""Services on loopback, and a cache of their own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.services import Services, demo_papers


@pytest.fixture
def services() -> Iterator[Services]:
    """Both services, which know the papers of the demo corpus."""
    found = Services(demo_papers())
    yield found
    found.stop()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache folder, empty; nor are there keys."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("S2_API_KEY", "OPENALEX_API_KEY", "CITEREC_EMAIL"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "cache" / "citerec" / "live"
