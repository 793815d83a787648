"""A tiny model for the tests, and a cache that is not in the home of whoever runs them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import base_of_run
from tests.tiny_models import write_tiny_scibert

WORDS = "a we use graphs trees neural parsing of the citation recommendation model with in and to"


@pytest.fixture(scope="package", autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = base_of_run(tmp_path_factory) / "cache-of-models"  # processes that run at once share it, as users' do
    folder.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT as transformers saves one, without modules of sentence-transformers."""
    return write_tiny_scibert(tmp_path_factory.mktemp("models") / "tiny", [WORDS])
