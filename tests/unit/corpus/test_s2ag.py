import pytest

from citerec.corpus.base import FORMATS
from citerec.corpus.reading import RecordError
from citerec.corpus.s2ag import parse_citation, parse_paper, text_of
from citerec.records import Paper, PaperText

AGRICULTURE = "Agricultural and Food Sciences"


def test_a_full_paper() -> None:
    record = {
        "corpusid": 7,
        "externalids": {"DOI": "10.1/x", "ACL": None, "CorpusId": "7"},
        "title": "  A   title ",
        "authors": [{"authorId": "1", "name": "Ada Lovelace"}, {"authorId": None, "name": None}],
        "venue": "",
        "year": 1843,
        "citationcount": 12,
        "s2fieldsofstudy": [{"category": name} for name in (AGRICULTURE.title(), AGRICULTURE, "Biology")],
        "journal": {"name": "Notes", "pages": None},
    }
    assert parse_paper(record) == Paper(
        paper_id="7",
        title="A title",
        year=1843,
        venue="Notes",
        authors=("Ada Lovelace",),
        fields_of_study=(AGRICULTURE, "Biology"),
        citation_count=12,
        external_ids={"DOI": "10.1/x"},
    )


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"corpusid": None}, "corpusid is missing"),
        ({"corpusid": True}, "corpusid is a bool"),
        ({"title": 3}, "title is a int"),
        ({"year": "soon"}, "year is not a whole number"),
        ({"year": -4}, "year is not a whole number"),
        ({"citationcount": 2.5}, "citationcount is not a whole number"),
        ({"authors": "Ada"}, "authors is a str"),
        ({"authors": ["Ada"]}, "authors holds a str"),
        ({"s2fieldsofstudy": ["Biology"]}, "s2fieldsofstudy holds a str"),
        ({"externalids": []}, "externalids is a list"),
    ],
)
def test_what_cannot_be_read_says_why(fields: dict[str, object], reason: str) -> None:
    with pytest.raises(RecordError, match=reason):
        parse_paper({"corpusid": 1, **fields})


def test_what_is_written_in_another_way() -> None:
    ids = {"DOI": "10.1002/(SICI) 1097", "MAG": 5}
    paper = parse_paper({"corpusid": 1, "externalids": ids, "year": "2005", "citationcount": 3.0})
    assert dict(paper.external_ids) == {"DOI": "10.1002/(SICI) 1097", "MAG": "5"}
    assert (paper.year, paper.citation_count) == (2005, 3)
    record = {"citingcorpusid": 1, "citedcorpusid": 2, "contexts": ["one", None, " ", "two"]}
    flat = parse_citation({**record, "intents": ["methodology"]})
    assert (flat.contexts, flat.intents) == (("one", "two"), (("method",), ("method",)))
    nested = parse_citation({**record, "intents": [["background", "result"], None, None, ["unheard of"]]})
    assert nested.intents == (("background", "result"), ())
    unmatched = parse_citation({"citingcorpusid": 1, "citedcorpusid": None, "contexts": None, "intents": None})
    assert (unmatched.cited_id, unmatched.contexts) == (None, ())
    assert parse_paper({"corpusid": "42"}) == Paper(paper_id="42")
    assert text_of("abstracts", "abstract", {"corpusid": 1}) == PaperText("abstracts", "1", None)
    assert text_of("tldrs", "text", {"corpusid": 1, "text": " short "}) == PaperText("tldrs", "1", "short")


def test_records_show_their_dataset() -> None:
    records: dict[str | None, dict[str, object]] = {
        "s2ag-papers": {"corpusid": 1, "title": "t", "year": 2000},
        "s2ag-abstracts": {"corpusid": 1, "openaccessinfo": None, "abstract": "a"},
        "s2ag-tldrs": {"corpusid": 1, "model": "m", "text": "t"},
        "s2ag-citations": {"citationid": 1, "citingcorpusid": 2, "citedcorpusid": None},
        None: {"corpusid": 1, "title": "t", "body": {}},
    }
    for expected, record in records.items():
        assert next((name for name, form in FORMATS.items() if form.holds and form.holds(record)), None) == expected
