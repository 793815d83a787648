"""Records of Semantic Scholar, OpenAlex, arXiv and the ACL Anthology, with the traps of their fields."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from citerec.corpus import arxiv, s2ag
from citerec.corpus.base import FORMATS, recognise
from citerec.corpus.bibtex import read_bibtex
from citerec.corpus.openalex import parse_work
from citerec.corpus.reading import BadRecord, RecordError
from citerec.records import Citation, Deletion, Paper, PaperText
from tests.source_records import ENTRY, HEADER, VOLUME, preprint, work

AGRICULTURE = "Agricultural and Food Sciences"


def test_a_paper_of_s2ag() -> None:
    record = {
        "corpusid": 7,
        "externalids": {"DOI": "10.1/x", "ACL": None, "CorpusId": "7", "MAG": 5},
        "title": "  A   title ",
        "authors": [{"authorId": "1", "name": "Ada Lovelace"}, {"authorId": None, "name": None}],
        "venue": "",
        "year": "1843",
        "citationcount": 12.0,
        "s2fieldsofstudy": [{"category": name} for name in (AGRICULTURE.title(), AGRICULTURE, "Biology")],
        "journal": {"name": "Notes", "pages": None},
    }
    assert s2ag.parse_paper(record) == Paper(
        paper_id="7",
        title="A title",
        year=1843,
        venue="Notes",
        authors=("Ada Lovelace",),
        fields_of_study=(AGRICULTURE, "Biology"),
        citation_count=12,
        external_ids={"DOI": "10.1/x", "MAG": "5"},
    )
    assert s2ag.parse_paper({"corpusid": "42"}) == Paper(paper_id="42")
    assert s2ag.text_of("abstracts", "abstract", {"corpusid": 1}) == PaperText("abstracts", "1", None)
    assert s2ag.text_of("tldrs", "text", {"corpusid": 1, "text": " short "}) == PaperText("tldrs", "1", "short")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"corpusid": None}, "corpusid is missing"),
        ({"title": 3}, "title is a int"),
        ({"year": "soon"}, "year is not a whole number"),
        ({"authors": ["Ada"]}, "authors holds a str"),
    ],
)
def test_what_cannot_be_read_of_s2ag_says_why(fields: dict[str, object], reason: str) -> None:
    with pytest.raises(RecordError, match=reason):
        s2ag.parse_paper({"corpusid": 1, **fields})


def test_citations_of_s2ag() -> None:
    record = {"citingcorpusid": 1, "citedcorpusid": 2, "contexts": ["one", None, " ", "two"]}
    flat = s2ag.parse_citation({**record, "intents": ["methodology"]})
    assert (flat.contexts, flat.intents) == (("one", "two"), (("method",), ("method",)))
    nested = s2ag.parse_citation({**record, "intents": [["background", "result"], None, None, ["unheard of"]]})
    assert nested.intents == (("background", "result"), ())
    unmatched = s2ag.parse_citation({"citingcorpusid": 1, "citedcorpusid": None, "contexts": None, "intents": None})
    assert (unmatched.cited_id, unmatched.contexts) == (None, ())


def paper_of(**changes: Any) -> Paper:
    paper = parse_work(work(**changes))[0]
    assert isinstance(paper, Paper)
    return paper


def test_a_work_of_openalex_is_a_paper_and_its_references() -> None:
    ids = {"DOI": "10.7717/peerj.4375", "MAG": "2741809807", "PubMed": "29456894", "PubMedCentral": "5815332"}
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
        external_ids={**ids, "ArXiv": "1802.01234"},
    )
    assert references == [Citation("W2741809807", one, citing_year=2018) for one in ("W1", "W22")]
    nulls = dict.fromkeys(work()) | {"id": "https://openalex.org/works/w7", "display_name": "T"}
    assert parse_work(nulls) == [Paper("W7", title="T")]


def test_fields_of_openalex_with_traps() -> None:
    indexes = {
        "a b": {"b": [1], "a": [0]},
        "early late": {"late": [900], "early": [3]},  # gaps
        "two words here": {"two": [0], "words": [0], "here": [1]},  # one position
        "Bold R&D": {"<b>Bold</b>": [0], "R&amp;D": [1]},
        None: {},
    }
    assert {paper_of(abstract_inverted_index=index).abstract: index for index in indexes.values()} == indexes
    years = {0: None, 2027: 2027, 2050: None}
    assert {year: paper_of(publication_year=year, updated_date="2026-01-03").year for year in years} == years
    assert paper_of(is_retracted=True, title="A study").title == "RETRACTED: A study"
    assert paper_of(is_retracted=True, title="Retraction notice to: A study").title == "Retraction notice to: A study"
    concepts = [{"display_name": "Computer science", "level": 0}, {"display_name": "Parsing", "level": 1}]
    early = {"primary_location": None, "primary_topic": None, "topics": None, "host_venue": {"display_name": "Nature"}}
    paper = paper_of(**early, concepts=concepts, doi="https://doi.org/10.48550/arXiv.1706.03762")
    assert (paper.venue, paper.fields_of_study) == ("Nature", ("Computer science",))
    assert paper.external_ids["ArXiv"] == "1706.03762"
    no_title = {"title": None, "display_name": " ", "abstract_inverted_index": None}
    for changes in ({"is_paratext": True}, {"type": "paratext"}, no_title):  # what is no paper is left out
        assert parse_work(work(**changes)) == []


def test_values_of_another_form_are_bad_records() -> None:
    for one in (None, 7, "", "A123", "https://openalex.org/A1", "W", "W1 2", "x" * 600):
        with pytest.raises(RecordError, match="id"):
            parse_work(work(id=one))
    for index in (["a"], 7, {"a": ["1"]}, {"a": [True]}, {"a": [1.5]}):
        with pytest.raises(RecordError, match="abstract_inverted_index"):
            parse_work(work(abstract_inverted_index=index))
    for one in (None, 704.0001, "704.0001", "0704.0001v2", "../../etc/passwd", "A" * 20, ["0704.0001"]):
        for parse, record in ((arxiv.parse_paper, preprint(id=one)), (arxiv.parse_deleted, {"id": one})):
            with pytest.raises(RecordError, match="id"):
                parse(record)
    with pytest.raises(RecordError, match="nothing to search"):
        arxiv.parse_paper(preprint(title=" ", abstract=None))


def test_a_line_of_arxiv_is_a_paper() -> None:
    assert arxiv.parse_paper(preprint()) == Paper(
        "0704.0001",
        title="Calculation of prompt diphoton production cross sections by Schrödinger",
        abstract="A differential calculation in perturbative chromodynamics is at $m_{\\gamma}$ of 5%.",
        year=2007,
        venue="Phys.Rev.D76:013009,2007",
        authors=("C. Balázs", "E. L. Berger Jr.", "P. M. Nadolsky"),
        fields_of_study=("Physics", "Computer Science", "Mathematics"),
        external_ids={"ArXiv": "0704.0001", "DOI": "10.1103/PhysRevD.76.013009"},
    )
    few = {"id": "cmp-lg/9404001", "title": "T", "categories": "cmp-lg  unknown.X", "doi": "10.1/a 10.1/b"}
    paper = arxiv.parse_paper(few)
    assert (paper.venue, paper.year, paper.fields_of_study) == ("arXiv", 1994, ("Computer Science",))
    assert paper.external_ids == {"ArXiv": "cmp-lg/9404001", "DOI": "10.1/a"}
    for versions, one, year in (
        ([{"created": "2009-10-11"}], "0704.0001", 2009),
        (None, "math.GT/0309136", 2003),
        ([{"created": "soon"}], "hep-th/9901001", 1999),
    ):
        assert arxiv.parse_paper(preprint(versions=versions, id=one)).year == year


def test_an_entry_of_the_acl_anthology_is_a_paper(tmp_path: Path) -> None:
    path = tmp_path / "anthology+abstracts.bib.gz"
    path.write_bytes(gzip.compress(f"{HEADER}{VOLUME}{ENTRY}".encode()))
    assert recognise(path) == "acl-anthology"
    (line,) = FORMATS["acl-anthology"].read(path)
    assert line.number == 3 + VOLUME.count("\n")
    assert line.record == Paper(
        "garcia-etal-2020-probing",
        title="Probing BERT for naïve & “other” parsers",
        abstract="We probe 30% of the parsers, and find that $x^2$ helps—sometimes.",
        year=2020,
        venue="Proceedings of the 58th Annual Meeting of the Association for Computational Linguistics",
        authors=("María García", "Bo Šimon"),
        external_ids={"DOI": "10.18653/v1/2020.acl-main.1", "ACL": "2020.acl-main.1"},
        bibtex=ENTRY.strip(),
    )
    # It reads what the reader of BibTeX reads, and a broken entry takes no other with it.
    other = ENTRY.replace("garcia-etal-2020-probing", "other").replace("2020.acl-main.1", "P19-1001")
    path = tmp_path / "some.bib"
    path.write_text(f"\n{ENTRY}\n{other}@article{{short, title={{One line}}}}\n", encoding="utf-8")
    assert recognise(path) == "bibtex"
    ours, theirs = ([line.record for line in read(path)] for read in (FORMATS["acl-anthology"].read, read_bibtex))
    assert ours == theirs and len(ours) == 3
    broken = ENTRY.replace('mputational Linguistics",\n    month', "mputational Linguistics,\n    month")
    unclosed = ENTRY[: ENTRY.index("    abstract")]
    path.write_text(f"{HEADER}{ENTRY}{broken}{unclosed}{ENTRY}{unclosed}", encoding="utf-8")
    records = [line.record for line in FORMATS["acl-anthology"].read(path)]
    assert [isinstance(record, BadRecord) for record in records] == [False, True, True, False, True]


def test_files_are_recognised_and_so_are_deleted_and_merged_ids(tmp_path: Path) -> None:
    (path := tmp_path / "part_000.gz").write_bytes(gzip.compress(json.dumps(work()).encode()))
    assert recognise(path) == "openalex"
    path = tmp_path / "deleted_ids.csv"
    path.write_text("work_id,deleted_date\nhttps://openalex.org/W4245566371,2026-08-14\nA7,2026-08-14\n\nx\n")
    assert recognise(path) == "openalex-deleted"
    first, *bad_lines = (line.record for line in FORMATS["openalex-deleted"].read(path))
    assert first == Deletion("papers", "W4245566371")
    assert [type(record) for record in bad_lines] == [BadRecord] * 2
    path.write_text("merge_date,id,merge_into_id\n2022-06-07,W2,W1\n")
    assert [line.record for line in FORMATS["openalex-deleted"].read(path)] == [Deletion("papers", "W2")]
    (path := tmp_path / "arxiv-metadata.json").write_text(json.dumps(preprint(id="0704.0002")))
    assert recognise(path) == "arxiv"
    path.write_text('{"id": "0704.0001"}\n')
    assert [line.record for line in FORMATS["arxiv-deleted"].read(path)] == [Deletion("papers", "0704.0001")]
