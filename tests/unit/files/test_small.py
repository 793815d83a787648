"""Small parts that all others use: texts, digests, registries, and how many bad records are too many."""

import hashlib
import json
import os
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from citerec.corpus.reading import QUARANTINE, BadRecord, quarantine_line, reading_lines, writing_lines
from citerec.diagnostics.families import FAMILIES
from citerec.drafts.check import CHECKS
from citerec.errors import BuildError, InputError
from citerec.files.hashing import digest_of, file_digest, hash_sample, identity
from citerec.files.progress import Rejected
from citerec.files.registry import Registry
from citerec.files.text import one_line, printable
from citerec.models.encoder import ENCODERS
from citerec.rerank.base import RERANKERS
from citerec.retrieve.base import RETRIEVERS
from citerec.sources.base import CORPORA
from citerec.write.drafting import PRESETS
from citerec.write.metrics import TEXT_METRICS
from citerec.write.writers.base import WRITERS

REGISTRIES = [*(CHECKS, CORPORA, ENCODERS, FAMILIES, PRESETS, RERANKERS, RETRIEVERS, TEXT_METRICS, WRITERS)]


@given(st.text(st.sampled_from("ab \t\n\x00\x7f\xa0\u2003\u200b\u00ad漢") | st.characters()))
def test_no_control_character_is_left_and_offsets_stay(text: str) -> None:
    shown = printable(text)
    assert len(shown) == len(text)
    for old, new in zip(text, shown, strict=True):
        assert (new in "\t\n " if unicodedata.category(old) == "Cc" else new == old) or old == new
        assert unicodedata.category(new) != "Cc" or new in "\t\n"
    assert one_line(text) == " ".join(shown.split())
    assert printable("a\n\nb\x1b]0;x\x07\x9b31m") == "a\n\nb ]0;x  31m"


def test_samples_that_were_published_stay_what_they_are() -> None:
    """Contexts of diagnostic sets, dev splits of training and splits of data sets were drawn by these numbers."""
    assert hash_sample(3, "paper 1", between="\t") == 16493377930287559496
    assert hash_sample(3, "paper 1") == 3689436902012300001
    assert hash_sample(0, "x", "y") == 7723644038609828039
    shares = [hash_sample(0, str(number)) / 2**64 for number in range(10_000)]
    assert 0.09 < sum(share < 0.1 for share in shares) / len(shares) < 0.11


def test_digests_do_not_hang_on_the_order_of_keys_and_files_are_known_again(tmp_path: Path) -> None:
    assert digest_of({"a": 1, "b": [2, None]}) == digest_of({"b": [2, None], "a": 1})
    assert digest_of({"a": 1}) != digest_of({"a": "1"})
    path = tmp_path / "file"
    path.write_bytes(b"text")
    assert file_digest(path) == hashlib.sha256(b"text").hexdigest()
    assert file_digest(path, "blake2b") == hashlib.blake2b(b"text").hexdigest()
    before = identity(path)
    assert before == identity(tmp_path / "." / "file")
    os.utime(path, ns=(0, before[2] + 1000))
    assert identity(path) != before


def test_lines_are_the_same_bytes_wherever_they_are_written(tmp_path: Path) -> None:
    lines = [b"one", b"", QUARANTINE + b"two", "grün".encode()]
    for name in ("a.gz", "b"):
        with writing_lines(tmp_path / name) as write:
            for line in lines:
                write(line)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b").read_bytes()
    assert list(reading_lines(tmp_path / "a.gz")) == lines
    line = json.loads(quarantine_line("s2orc-0.gz", 7, BadRecord("no corpusid", '{"x"')))
    assert line == {"shard": "s2orc-0.gz", "line": 7, "reason": "no corpusid", "beginning": '{"x"'}


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: str(registry.kind))
def test_every_name_leads_to_the_part_of_that_name(registry: Registry[Any]) -> None:
    names = [(name, part.name) for name, part in registry.items()]
    assert names == [(name, name.rpartition(".")[2]) for name in registry]


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


@pytest.mark.parametrize(
    ("bad", "total", "max_bad", "found"),
    [
        (20, 100, 0.05, None),
        (21, 100, 0.05, "21 of 100 records are bad, more than 5%"),
        (50, 1000, 0.05, None),
        (51, 1000, 0.05, "51 of 1,000 records are bad, more than 5%"),
        (1, 1000, 0, "1 of 1,000 records are bad, more than 0%"),
        (1, 1, 0.05, "1 of 1 records are bad: none is good"),
        (999, 1000, 1, None),
    ],
)
def test_how_many_bad_records_are_too_many(bad: int, total: int, max_bad: float, found: str | None) -> None:
    rejected = Rejected(max_bad)
    rejected.check()
    rejected.add(total - bad, bad, "a.jsonl, line 3: no id")
    if found is None:
        rejected.check()
    else:
        with pytest.raises(BuildError, match=rf"^{found}; the first is a\.jsonl, line 3: no id\. "):
            rejected.check()


def test_while_there_is_more_to_read_its_size_counts_and_a_bad_beginning_is_allowed() -> None:
    rejected = Rejected(0.05)
    rejected.add(bad=999)
    rejected.check(0.5)  # of so few nothing follows
    rejected.add(good=1)
    rejected.check(0.05)  # at most 1,000 of 20,000
    with pytest.raises(BuildError, match="999 of 1,000 records are bad, more than 5%"):
        rejected.check(0.06)
