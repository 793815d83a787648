"""Small parts that all others use: texts, digests, registries, and how many bad records are too many."""

import unicodedata
from typing import Any

import pytest
from hypothesis import given, strategies as st

from citerec.errors import BuildError, InputError
from citerec.files.progress import Rejected
from citerec.files.registry import Registry
from citerec.files.resume import hash_sample
from citerec.files.text import one_line, printable


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
        (51, 1000, 0.05, "51 of 1,000 records are bad, more than 5%"),
        (1, 1, 0.05, "1 of 1 records are bad: none is good"),
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
