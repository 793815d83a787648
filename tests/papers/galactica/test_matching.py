"""References that a model wrote, matched to papers of an index."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from citerec.corpus.matching import plain_title
from citerec.papers.diagnostic.galactica import match
from citerec.retrieve.base import OpenIndex
from citerec.retrieve.entries import title_search

Ids = Callable[..., list[str]]


@pytest.fixture(scope="module")
def ids(small_index: Path) -> Iterator[Ids]:
    with contextlib.closing(OpenIndex.open(small_index)) as index:
        search = title_search(index)
        yield lambda text, far=0.0: match(text, search, index.store, far)


def test_case_accents_and_punctuation_do_not_matter(ids: Ids) -> None:
    assert ids("the POINCARE style  embedding.") == ["13"]
    assert ids("The Poincaré-style embedding, Nickel") == ["13"]  # its author is unknown


def test_a_title_may_hold_commas_and_an_author_may_be_missing(ids: Ids) -> None:
    assert ids("A Study of Parsing: Methods, Data, Parley") == ["1"]
    assert ids("A study of parsing - methods, data") == ["1"]


def test_of_several_papers_of_one_title_the_surname_decides(ids: Ids) -> None:
    assert ids("Introduction, Roe") == ["11"]  # the first author's
    assert ids("Introduction, B. Poe") == ["12"]
    assert ids("Introduction, Someone") == ids("Introduction") == ["11", "12"]


def test_the_nearest_title_counts_up_to_the_stated_distance(ids: Ids) -> None:
    written = "A Study of Parsing: Method, Dat, Parley"
    assert ids(written, 0.15) == ["1"]
    assert ids(written, 0.01) == []
    assert ids("A Study of Bridges: Their Concrete, Roe", 0.15) == []
    assert ids("Nothing of the kind", 1.0) == ids("", 1.0) == ids("of the", 1.0) == []


def test_titles_of_words_that_are_never_searched_are_not_found(ids: Ids) -> None:
    assert ids("To be, or not to be, S.") == []  # a limit: stop words are left out


@given(st.text())
def test_normalising_twice_is_normalising_once(text: str) -> None:
    assert plain_title(plain_title(text)) == plain_title(text)
