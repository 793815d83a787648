"""Lines of arXiv's metadata file, with the traps of their fields."""

import json
from pathlib import Path
from typing import Any

import pytest

from citerec.corpus.arxiv import parse_deleted, parse_paper
from citerec.corpus.base import FORMATS, recognise
from citerec.corpus.reading import RecordError
from citerec.records import Deletion, Paper
from tests.source_records import preprint


def test_a_line_is_a_paper() -> None:
    assert parse_paper(preprint()) == Paper(
        "0704.0001",
        title="Calculation of prompt diphoton production cross sections by Schrödinger",
        abstract="A differential calculation in perturbative chromodynamics is at $m_{\\gamma}$ of 5%.",
        year=2007,
        venue="Phys.Rev.D76:013009,2007",
        authors=("C. Balázs", "E. L. Berger Jr.", "P. M. Nadolsky"),
        fields_of_study=("Physics", "Computer Science", "Mathematics"),
        external_ids={"ArXiv": "0704.0001", "DOI": "10.1103/PhysRevD.76.013009"},
    )


def test_the_year_is_that_of_the_first_version_and_what_may_be_missing() -> None:
    for versions, one, year in (
        ([{"created": "2009-10-11"}], "0704.0001", 2009),
        (..., "0704.0001", 2007),
        (None, "math.GT/0309136", 2003),
        ([{"created": "soon"}], "hep-th/9901001", 1999),
    ):
        assert parse_paper(preprint(versions=versions, id=one)).year == year
    few = {"id": "cmp-lg/9404001", "title": "T", "categories": "cmp-lg  unknown.X", "doi": "10.1/a 10.1/b"}
    paper = parse_paper(few)
    assert (paper.venue, paper.fields_of_study) == ("arXiv", ("Computer Science",))
    assert paper.external_ids == {"ArXiv": "cmp-lg/9404001", "DOI": "10.1/a"}
    with pytest.raises(RecordError, match="nothing to search"):
        parse_paper(preprint(title=" ", abstract=None))


@pytest.mark.parametrize(
    "one", [None, 704.0001, "704.0001", "0704.0001v2", "../../etc/passwd", "A" * 20, ["0704.0001"]]
)
def test_other_ids_are_bad_records(one: Any) -> None:
    with pytest.raises(RecordError, match="id"):
        parse_paper(preprint(id=one))
    with pytest.raises(RecordError, match="id"):
        parse_deleted({"id": one})


def test_files_are_recognised_and_read(tmp_path: Path) -> None:
    path = tmp_path / "arxiv-metadata-oai-snapshot.json"
    path.write_text("\n".join(json.dumps(preprint(id=f"0704.000{one}")) for one in range(3)))
    assert recognise(path) == "arxiv"
    ids = [line.record.paper_id for line in FORMATS["arxiv"].read(path) if isinstance(line.record, Paper)]
    assert ids == ["0704.0000", "0704.0001", "0704.0002"]
    path.write_text('{"id": "0704.0001"}\n')
    assert [line.record for line in FORMATS["arxiv-deleted"].read(path)] == [Deletion("papers", "0704.0001")]
