"""Named parts: every name of a table leads to a part of that name, and nothing else is imported for it."""

from typing import Any

import pytest

from citerec.diagnostics.families import FAMILIES
from citerec.drafts.check import CHECKS
from citerec.errors import InputError
from citerec.files.registry import Registry
from citerec.models.encoder import ENCODERS
from citerec.rerank.base import RERANKERS
from citerec.retrieve.base import RETRIEVERS
from citerec.sources.base import CORPORA
from citerec.write.drafting import PRESETS
from citerec.write.metrics import TEXT_METRICS
from citerec.write.writers.base import WRITERS

REGISTRIES = [*(CHECKS, CORPORA, ENCODERS, FAMILIES, PRESETS, RERANKERS, RETRIEVERS, TEXT_METRICS, WRITERS)]


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: str(registry.kind))
def test_every_name_leads_to_the_part_of_that_name(registry: Registry[Any]) -> None:
    assert [(name, part.name) for name, part in registry.items()] == [
        (name, name.rpartition(".")[2]) for name in registry
    ]


def test_a_part_joins_the_table_of_its_process_once() -> None:
    class Mine:
        name = "mine"

    retrievers: Registry[Any] = Registry("retriever", {"words": "citerec.retrieve.words:WordsRetriever"})
    assert retrievers.register(Mine) is Mine
    assert retrievers["mine"] is Mine and list(retrievers)[-1] == "mine"
    with pytest.raises(ValueError, match="there are two retrievers named 'mine'"):
        retrievers.register(type("Other", (), {"name": "mine"}))
    with pytest.raises(InputError, match=r"there is no retriever 'word'. Did you mean words\? Choose: words"):
        retrievers["word"]
