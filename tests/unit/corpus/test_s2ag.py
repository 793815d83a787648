import pytest
from hypothesis import given
from hypothesis import strategies as st

from citerec.corpus.base import FORMATS
from citerec.corpus.json_lines import RecordError
from citerec.corpus.s2ag import DATASETS, parse_abstract, parse_citation, parse_paper, parse_tldr
from citerec.records import Abstract, Paper, Tldr


def test_a_full_paper() -> None:
    record = {
        "corpusid": 7,
        "externalids": {"DOI": "10.1/x", "ACL": None, "CorpusId": "7"},
        "title": "  A   title ",
        "authors": [{"authorId": "1", "name": "Ada Lovelace"}, {"authorId": None, "name": None}],
        "venue": "",
        "year": 1843,
        "citationcount": 12,
        "s2fieldsofstudy": [
            {"category": "Agricultural And Food Sciences", "source": "external"},
            {"category": "Agricultural and Food Sciences", "source": "s2-fos-model"},
            {"category": "Biology", "source": "external"},
        ],
        "journal": {"name": "Notes", "pages": None},
    }
    assert parse_paper(record) == Paper(
        paper_id="7",
        title="A title",
        year=1843,
        venue="Notes",
        authors=("Ada Lovelace",),
        fields_of_study=("Agricultural and Food Sciences", "Biology"),
        citation_count=12,
        external_ids={"DOI": "10.1/x"},
    )


def test_everything_but_the_id_may_be_missing() -> None:
    assert parse_paper({"corpusid": "42"}) == Paper(paper_id="42")
    assert parse_abstract({"corpusid": 1}) == Abstract("1", None)
    assert parse_tldr({"corpusid": 1, "text": " short "}) == Tldr("1", "short")


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({}, "corpusid is missing"),
        ({"corpusid": None}, "corpusid is missing"),
        ({"corpusid": True}, "corpusid is a bool"),
        ({"corpusid": 1.5}, "corpusid is a float"),
        ({"corpusid": 1, "title": 3}, "title is a int"),
        ({"corpusid": 1, "year": "soon"}, "year is not a whole number"),
        ({"corpusid": 1, "year": -4}, "year is not a whole number"),
        ({"corpusid": 1, "citationcount": 2.5}, "citationcount is not a whole number"),
        ({"corpusid": 1, "authors": "Ada"}, "authors is a str"),
        ({"corpusid": 1, "authors": ["Ada"]}, "authors holds a str"),
        ({"corpusid": 1, "s2fieldsofstudy": ["Biology"]}, "s2fieldsofstudy holds a str"),
        ({"corpusid": 1, "externalids": []}, "externalids is a list"),
    ],
)
def test_what_cannot_be_read_says_why(record: dict[str, object], reason: str) -> None:
    with pytest.raises(RecordError, match=reason):
        parse_paper(record)


def test_ids_of_others_are_taken_as_they_are() -> None:
    paper = parse_paper({"corpusid": 1, "externalids": {"DOI": "10.1002/(SICI) 1097", "MAG": 5}})
    assert dict(paper.external_ids) == {"DOI": "10.1002/(SICI) 1097", "MAG": "5"}


def test_numbers_written_as_text_are_numbers() -> None:
    paper = parse_paper({"corpusid": 1, "year": "2005", "citationcount": 3.0})
    assert (paper.year, paper.citation_count) == (2005, 3)


def test_intents_flat_and_nested() -> None:
    record = {"citingcorpusid": 1, "citedcorpusid": 2, "contexts": ["one", None, " ", "two"]}
    flat = parse_citation({**record, "intents": ["methodology"]})
    assert flat.contexts == ("one", "two")
    assert flat.intents == (("method",), ("method",))
    nested = parse_citation({**record, "intents": [["background", "result"], None, None, ["unheard of"]]})
    assert nested.intents == (("background", "result"), ())


def test_an_unmatched_citation_has_no_cited_paper() -> None:
    citation = parse_citation({"citingcorpusid": 1, "citedcorpusid": None, "contexts": None, "intents": None})
    assert (citation.cited_id, citation.contexts) == (None, ())


@pytest.mark.parametrize(
    ("record", "dataset"),
    [
        ({"corpusid": 1, "title": "t", "year": 2000}, "papers"),
        ({"corpusid": 1, "openaccessinfo": None, "abstract": "a"}, "abstracts"),
        ({"corpusid": 1, "model": "m", "text": "t"}, "tldrs"),
        ({"citationid": 1, "citingcorpusid": 2, "citedcorpusid": None}, "citations"),
        ({"corpusid": 1, "content": {}}, None),
        ({"corpusid": 1, "title": "t", "body": {}}, None),
    ],
)
def test_records_show_their_dataset(record: dict[str, object], dataset: str | None) -> None:
    holding = [name for name, form in FORMATS.items() if form.holds and form.holds(record)]
    assert next(iter(holding), None) == (dataset and f"s2ag-{dataset}")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)
KEYS = tuple(
    "corpusid title abstract text year venue authors externalids s2fieldsofstudy citationcount journal contexts "
    "intents citingcorpusid citedcorpusid citationid isinfluential model".split()
)


PARSERS = dict(zip(DATASETS, (parse_paper, parse_abstract, parse_tldr, parse_citation), strict=True))


@given(st.dictionaries(st.sampled_from(KEYS), json_values, max_size=8), st.sampled_from(DATASETS))
def test_any_json_object_is_read_or_refused_with_a_reason(record: dict[str, object], dataset: str) -> None:
    try:
        parsed = PARSERS[dataset](record)  # type: ignore[operator]
    except RecordError as error:
        assert str(error)
    else:
        assert type(parsed).__name__.lower() in (dataset, dataset[:-1])
