"""Papers of several sources made one record each."""

import gzip
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, strategies as st

from citerec.corpus.ingest import merge_corpora, paper_line
from citerec.corpus.matching import keys_of
from citerec.errors import InputError
from citerec.files.progress import no_progress
from citerec.records import Paper

BERT = "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding"
LSTM = "Long Short-Term Memory in Recurrent Networks"


def lines_of(folder: Path, what: str) -> list[dict[str, Any]]:
    raw = b"".join(gzip.decompress(path.read_bytes()) for path in sorted(folder.glob(f"{what}-*")))
    return list(map(orjson.loads, raw.splitlines()))


def write(path: Path, *records: object) -> Path:
    path.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records))
    return path


def merge(out: Path, **sources: Path) -> dict[str, dict[str, object]]:
    merge_corpora(sources, out, no_progress, workers=1)
    return {str(line["paper_id"]): line for line in lines_of(out, "papers")}


def test_one_paper_of_three_sources_is_one_record(tmp_path: Path) -> None:
    s2ag = tmp_path / "s2ag"
    (s2ag / "papers").mkdir(parents=True)
    (s2ag / "citations").mkdir()
    ids = {"DOI": "10.18653/v1/N19-1423", "ArXiv": "1810.04805"}
    authors = [{"name": "Jacob Devlin"}]
    paper = {"corpusid": 1, "title": BERT, "year": 2018, "venue": "arXiv.org", "authors": authors, "externalids": ids}
    write(s2ag / "papers" / "0.jsonl", {**paper, "citationcount": 9}, {"corpusid": 2, "title": LSTM, "year": 1997})
    cites = {"citingcorpusid": 1, "citedcorpusid": 2, "contexts": ["As LSTM does [1]."], "intents": [["method"]]}
    write(s2ag / "citations" / "0.jsonl", {"citationid": 7, **cites})
    anthology = write(
        tmp_path / "anthology.jsonl",
        {"paper_id": "N19-1423", "title": BERT, "year": 2019, "venue": "NAACL", "abstract": "We introduce BERT.",
         "authors": ["Jacob Devlin"], "external_ids": {"DOI": "10.18653/V1/n19-1423"}},
    )  # fmt: skip
    mine = tmp_path / "mine.bib"
    mine.write_text(f"@article{{lstm, title = {{{LSTM}}}, year = 1997, author = {{Sepp Hochreiter}}}}\n")
    found = merge(tmp_path / "out", s2ag=s2ag, **{"acl-anthology": anthology}, mine=mine)
    with pytest.raises(InputError, match="nothing to merge"):
        merge(tmp_path / "out", mine=mine)
    # The second record of LSTM names no author, and its year is the same.
    assert set(found) == {"1", "2"}
    assert found["1"] == {
        "paper_id": "1", "title": BERT, "abstract": "We introduce BERT.", "year": 2019, "venue": "NAACL",
        "authors": ["Jacob Devlin"], "citation_count": 9,
        "external_ids": {**ids, "CorpusId": "1", "ACL": "N19-1423"},
        "origins": {"title": "s2ag", "abstract": "acl-anthology", "year": "acl-anthology", "venue": "acl-anthology",
                    "authors": "s2ag", "citation_count": "s2ag"},
    }  # fmt: skip
    assert found["2"]["authors"] == ["Sepp Hochreiter"]
    assert found["2"]["bibtex"] == mine.read_text().strip()
    (citation,) = lines_of(tmp_path / "out", "citations")
    assert citation == {
        **cites,
        "citationid": "s2ag:7",
        "isinfluential": False,
        "citingcorpusid": "1",
        "citedcorpusid": "2",
    }


ARXIV = {"ArXiv": "2001.00001"}


def paper(paper_id: str = "p", title: str = LSTM, year: int | None = 2000, **more: object) -> Paper:
    return Paper(paper_id, title, year=year, authors=("Ada Roe",), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (paper(external_ids={"DOI": "10.1/A"}), paper(title="O", external_ids={"doi": "doi:10.1/a"}), True),
        (paper(external_ids={"DOI": "10.48550/arXiv.2001.00001"}), paper(title="O", external_ids=ARXIV), True),
        (paper(venue="SIGIR"), paper(year=2001, external_ids=ARXIV), True),  # a preprint
        (paper(venue="SIGIR"), paper(year=2001, venue="TOIS"), False),  # the article after the talk
        (paper(external_ids={"DOI": "10.1/a"}), paper(external_ids={"DOI": "10.1/b"}), False),
        (paper(title="Introduction"), paper(title="Introduction"), False),
        (paper(), Paper("q", LSTM, year=2000, authors=("Ben Doe",)), False),
    ],
)
def test_what_is_one_work(one: Paper, other: Paper, same: bool, tmp_path: Path) -> None:
    sources = [write(tmp_path / f"{at}.jsonl", paper_line(each)) for at, each in enumerate((one, other))]
    for first, second in itertools.permutations(sources):
        assert len(merge(tmp_path / "out", a=first, b=second)) == (1 if same else 2)


IDENTIFIERS = st.dictionaries(
    st.sampled_from(["DOI", "ArXiv", "ACL"]), st.sampled_from(["10.1/a", "10.1/b", "2001.00001"])
)
PAPERS = st.lists(
    st.builds(
        Paper, paper_id=st.sampled_from("abcdef"), title=st.sampled_from([LSTM, BERT, "Notes"]),
        year=st.sampled_from([None, 1999, 2000]), authors=st.sampled_from([(), ("Ada Roe",)]), external_ids=IDENTIFIERS,
    ), min_size=1, max_size=6, unique_by=lambda one: one.paper_id,
)  # fmt: skip


@given(PAPERS, PAPERS)
def test_no_record_is_lost_and_no_identifier_is_in_two_papers(
    tmp_path_factory: pytest.TempPathFactory, first: Sequence[Paper], second: Sequence[Paper]
) -> None:
    folder = tmp_path_factory.mktemp("merge")
    sources = {
        name: write(folder / f"{name}.jsonl", *map(paper_line, papers))
        for name, papers in (("x", first), ("y", second))
    }
    found = merge(folder / "out", **sources)
    outputs = [Paper("", str(line["title"]), external_ids=line["external_ids"]) for line in found.values()]  # type: ignore[arg-type]
    keys = [key for one in outputs for key in keys_of(one)]
    assert len(keys) == len(set(keys))
    assert frozenset(keys) <= frozenset.union(*map(keys_of, (*first, *second)))
    stated = orjson.loads((folder / "out" / "merged.json").read_bytes())
    assert (stated["records"], stated["works"]) == (len(first) + len(second), len(found))
