"""Works of OpenAlex, with the traps of their fields."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from citerec.corpus.base import FORMATS, recognise
from citerec.corpus.openalex import parse_deleted, parse_work
from citerec.corpus.reading import BadRecord, RecordError
from citerec.records import Citation, Deletion, Paper
from tests.source_records import work


def paper_of(**changes: Any) -> Paper:
    paper = parse_work(work(**changes))[0]
    assert isinstance(paper, Paper)
    return paper


def test_a_work_is_a_paper_and_its_references() -> None:
    paper, *references = parse_work(work())
    assert paper == Paper(
        "W2741809807",
        title="The state of OA & its prevalence",
        abstract="Open access is growing. Open",
        year=2018,
        venue="PeerJ",
        authors=("Heather Piwowar", "Jason Priem"),
        fields_of_study=("Computer Science", "Medicine"),
        citation_count=1300,
        external_ids={
            "DOI": "10.7717/peerj.4375",
            "MAG": "2741809807",
            "PubMed": "29456894",
            "PubMedCentral": "5815332",
            "ArXiv": "1802.01234",
        },
    )
    assert references == [Citation("W2741809807", one, citing_year=2018) for one in ("W1", "W22")]
    nulls = dict.fromkeys(work()) | {"id": "https://openalex.org/works/w7", "display_name": "T"}
    assert parse_work(nulls) == [Paper("W7", title="T")]


@pytest.mark.parametrize(
    ("index", "text"),
    [
        ({"b": [1], "a": [0]}, "a b"),
        ({"late": [900], "early": [3]}, "early late"),  # gaps
        ({"two": [0], "words": [0], "here": [1]}, "two words here"),  # one position
        ({"<b>Bold</b>": [0], "R&amp;D": [1]}, "Bold R&D"),
        ({}, None),
    ],
)
def test_abstracts_from_their_index(index: Any, text: str | None) -> None:
    assert paper_of(abstract_inverted_index=index).abstract == text


def test_impossible_years_are_unknown_and_what_is_no_paper_is_left_out() -> None:
    years = {0: None, 2027: 2027, 2050: None}
    assert {year: paper_of(publication_year=year, updated_date="2026-01-03").year for year in years} == years
    assert paper_of(publication_year=2050, updated_date=None).year == 2050
    no_title = {"title": None, "display_name": " ", "abstract_inverted_index": None}
    for changes in ({"is_paratext": True}, {"type": "paratext"}, no_title):
        assert parse_work(work(**changes)) == []


def test_a_retracted_work_says_so_and_early_records_are_read() -> None:
    assert paper_of(is_retracted=True, title="A study").title == "RETRACTED: A study"
    assert paper_of(is_retracted=True, title="Retraction notice to: A study").title == "Retraction notice to: A study"
    concepts = [{"display_name": "Computer science", "level": 0}, {"display_name": "Parsing", "level": 1}]
    early = {"primary_location": None, "primary_topic": None, "topics": None, "host_venue": {"display_name": "Nature"}}
    paper = paper_of(**early, concepts=concepts)
    assert (paper.venue, paper.fields_of_study) == ("Nature", ("Computer science",))
    assert paper_of(doi="https://doi.org/10.48550/arXiv.1706.03762").external_ids["ArXiv"] == "1706.03762"


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("id", [None, 7, "", "A123", "https://openalex.org/A1", "W", "W1 2", "x" * 600]),
        ("abstract_inverted_index", [["a"], 7, {"a": ["1"]}, {"a": [True]}, {"a": [1.5]}]),
    ],
)
def test_values_of_another_form_are_bad_records(field: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(RecordError, match=field):
            parse_work(work(**{field: value}))


def test_files_are_recognised_and_so_are_deleted_and_merged_ids(tmp_path: Path) -> None:
    path = tmp_path / "part_000.gz"
    path.write_bytes(gzip.compress(b"\n".join([json.dumps(work()).encode(), b'{"id": 1}'])))
    assert recognise(path) == "openalex"
    sound, bad = FORMATS["openalex"].read(path)
    assert isinstance(sound.record, Paper) and isinstance(bad.record, BadRecord) and bad.number == 2
    path = tmp_path / "deleted_ids.csv"
    path.write_text("work_id,deleted_date\nhttps://openalex.org/W4245566371,2026-08-14\nA7,2026-08-14\n\nx\n")
    assert recognise(path) == "openalex-deleted"
    found = [line.record for line in FORMATS["openalex-deleted"].read(path)]
    assert found[0] == Deletion("papers", "W4245566371")
    assert [isinstance(record, BadRecord) for record in found] == [False, True, True]
    path.write_text("merge_date,id,merge_into_id\n2022-06-07,W2,W1\n")
    assert [line.record for line in FORMATS["openalex-deleted"].read(path)] == [Deletion("papers", "W2")]
    assert parse_deleted(b"W3,2026-08-14") == Deletion("papers", "W3")  # kept lines have no header
