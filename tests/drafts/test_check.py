"""Checking a draft: each finding, in LaTeX and Markdown; what is well is left alone; nothing ends in a traceback."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from citerec.drafts import Files, read_draft
from citerec.drafts.bibliography import read_entries
from citerec.drafts.check import CHECKS, Finding, Options, check_draft, sarif
from citerec.errors import CiterecError
from citerec.index.build import build_index
from citerec.retrieve.base import OpenIndex
from tests.conftest import s2ag_paper, write_lines

AUTHORS = [{"name": "Ada Roe"}, {"name": "Wei Lee"}]
WATER = "Rivers as Graphs of Water"
DAMS = {"DOI": "10.1000/dams", "ArXiv": "1801.00007", "ACL": "P05-1007"}
PAPERS = [
    s2ag_paper(1, "Counting Lakes by Night and by Day", year=2001, venue="SIGIR", authors=AUTHORS),
    s2ag_paper(2, WATER, year=2019, venue="arXiv.org", authors=AUTHORS),
    s2ag_paper(3, WATER, year=2020, venue="ACL", authors=AUTHORS),
    s2ag_paper(4, "RETRACTED ARTICLE: Maps without any Rivers", year=2010, venue="Maps", authors=AUTHORS),
    s2ag_paper(5, "Bridges over Troubled Deep Rivers", year=2011, venue="Maps", authors=AUTHORS),
    s2ag_paper(6, 'Retraction Notice to "Bridges over Troubled Deep Rivers"', year=2012, venue="Maps", authors=AUTHORS),
    s2ag_paper(7, "Dams and their Ponds", year=2005, venue="X", authors=AUTHORS, externalids=DAMS),
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenIndex]:
    folder = tmp_path_factory.mktemp("check")
    build_index([write_lines(folder / "papers.jsonl", PAPERS)], folder / "index")
    opened = OpenIndex.open(folder / "index")
    yield opened
    opened.close()


def entry(key: str, title: str, year: int = 2001, author: str = "Ada Roe and Wei Lee", more: str = "") -> str:
    return f"@article{{{key}, title = {{{title}}}, author = {{{author}}}, year = {{{year}}}{more}}}\n"


def checked(
    tmp_path: Path, text: str, bib: str, index: OpenIndex | None = None, name: str = "draft.tex", **options: object
) -> list[Finding]:
    """What is found in a draft and a bibliography that are only in memory."""
    path, refs = tmp_path / name, tmp_path / "refs.bib"
    files = Files(texts={path: text, refs: bib})
    chosen = Options(**{"year": 2026, **options})  # type: ignore[arg-type]
    return check_draft(read_draft(path, files), read_entries([refs], files), index, chosen, files)


def codes(found: list[Finding]) -> list[str]:
    return [one.code for one in found]


FORMS = [("draft.tex", r"\cite{%s}", r"\cite{?}"), ("draft.md", "[@%s]", "[@?]")]


@pytest.mark.parametrize(("name", "cite", "place"), FORMS)
def test_keys_and_places(tmp_path: Path, name: str, cite: str, place: str) -> None:
    bib = entry("lakes", "Lakes") + entry("dams", "Dams") + entry("dams", "Ponds")
    found = checked(tmp_path, f"Rain falls {cite % 'lakes'}.\nWater flows {cite % 'lake'} on {place}.", bib, name=name)
    assert [(one.code, one.line) for one in found] == [("key-unknown", 2), ("place-open", 2), ("key-duplicate", 3)]
    unknown, open_place, twice = found
    begins = len("Water flows ") + cite.index("%") + 1
    assert (unknown.column, unknown.end_column) == (begins, begins + 4) and "lakes" in unknown.remedy
    assert open_place.severity == "note" and twice.path.name == "refs.bib" and "refs.bib:2" in twice.message


def test_cross_references_of_markdown_are_no_citations(tmp_path: Path) -> None:
    assert not checked(tmp_path, "Rain as in @fig-lakes and [@tbl:dams].", entry("a", "Lakes"), name="draft.md")


NIGHT, GREAT = entry("a", "Counting Lakes by Night"), entry("a", "Dams of the Great Rivers")
NORTH = entry("a", "Lakes of the North", more=", crossref = {b}") + entry("b", "Dams") + entry("c", "Rivers")
WORKS = entry("a", "Counting Lakes by Night", 2027) + entry("b", "Rivers and Dams", more=", doi = {10.1000/X}")
WORKS += entry("c", "Other Words", more=", doi = {https://doi.org/10.1000/x}")
WORKS += entry("d", "Counting lakes, by night", 2026)
SUMMARY = entry("a", "Seas (Summary)", 2001, "Roe, A.", ", doi = {10.1000/unknown}")
SUMMARY += entry("b", "{S}eas (Summary): Tides and Winds, Waves and Storms", more=", doi = {10.1000/unknown}")


def editions(first: str, second: str, year: int = 2012) -> str:
    bib = entry("a", "Counting Lakes by Night", year, more=f", journal = {{{first}}}")
    return bib + entry("b", "Counting Lakes by Night", 2012, more=f", journal = {{{second}}}")


@pytest.mark.parametrize(
    ("text", "bib", "options", "expected"),
    [
        (r"Rain falls as in \cite{fig:lakes}.", NIGHT, {}, "key-unknown"),
        (r"Rain \cite{a}.", NORTH, {}, ""),
        (r"Rain \cite{a}.", NORTH, {"select": frozenset({"entry-uncited"})}, "entry-uncited"),
        (r"Rain \cite{a,b,c,d}.", WORKS, {}, "newer-than-draft other-work work-twice"),
        (r"Rain \cite{a,b,c,d}.", WORKS, {"year": 2027}, "other-work work-twice"),
        (r"Rain \cite{a,b}.", editions("ICWE", "Lakes and Waters", 2010), {}, ""),
        (r"Rain \cite{a,b}.", editions("CoRR", "ICWE", 2011), {}, "work-twice"),
        (r"Rain \cite{a,b}.", editions("Lakes and Waters", "LW"), {}, "work-twice"),
        (r"Rain \cite{a,b}.", SUMMARY, {}, "work-twice"),
        (r"Rain \cite{a,b}.", NIGHT + GREAT + NIGHT.replace("{a,", "{b,"), {}, "key-duplicate work-twice"),
    ],
)
def test_drafts_without_an_index(tmp_path: Path, text: str, bib: str, options: dict[str, Any], expected: str) -> None:
    assert " ".join(sorted(codes(checked(tmp_path, text, bib, **options)))) == expected


def test_bibliographies_that_cannot_be_read(tmp_path: Path) -> None:
    found = checked(tmp_path, r"Rain \cite{bad}.", "\n@article{bad, title = {A} author = {B}}\n")
    assert [(one.code, one.line) for one in found] == [("key-unknown", 1), ("entry-unreadable", 2)]
    assert "cannot be read" in found[0].remedy and "comma" in found[1].message
    (tmp_path / "draft.tex").write_text("Rain \\cite{a}.\\bibliography{gone}")
    draft = read_draft(tmp_path / "draft.tex")
    assert codes(check_draft(draft, read_entries(draft.bibliographies))) == ["bibliography-unreadable"]
    assert not check_draft(draft)  # whether the key has an entry is not known


LAKES, DOI, CORR = "Counting Lakes by Night and by Day", ", doi = {10.1000/DAMS}", ", journal = {CoRR}"
PONDS = "Dams and their Ponds"


@pytest.mark.parametrize(
    ("bib", "expected"),
    [
        ("@misc{a, howpublished = {A letter}}", ""),
        (entry("a", LAKES.lower()), ""),
        (entry("a", f"{LAKES}: A Study", author="Roe, Ada and others"), ""),
        (entry("a", LAKES, 2008), "year-differs"),
        (entry("a", "Counting Laks by Night and by Day"), "title-differs"),
        (entry("a", LAKES, author="Wei Lee and Ada Roe"), "authors-differ"),
        (entry("a", "Seas of the Moon are Dry", author="Ola Nowak"), "not-in-index"),
        (entry("a", "Counting Laks by Night and by Day", author="Wei Lee and Ada Roe"), "not-in-index"),
        (entry("a", "Seas of the Moon are Dry", more=DOI), "other-work"),
        (entry("a", LAKES, more=", journal = {X}, eprint = {1801.00007}"), "other-work"),
        (entry("a", LAKES, more=", url = {https://aclanthology.org/P05-1007}"), "other-work"),
        (entry("a", "D\\'ams and their ponds: a Study", 2006, "A. Roe and others", DOI), ""),
        (entry("a", PONDS, 2004, more=f"{CORR}, eprint = {{1801.00007v2}}"), "preprint-published"),
        (entry("a", "Ponds and their Dams", 2005, more=DOI), ""),
        (entry("a", WATER, 2019, more=CORR), "preprint-published"),
        (entry("a", WATER, 2018, more=", eprint = {1801.1}, archiveprefix = {arXiv}"), "preprint-published"),
        (entry("a", WATER, 2020, more=", booktitle = {ACL}"), ""),
        (entry("a", "Maps without any Rivers", 2010), "retracted"),
        (entry("a", "Bridges over Troubled Deep Rivers", 2011), "retracted"),
    ],
)
def test_entries_against_an_index(tmp_path: Path, index: OpenIndex, bib: str, expected: str) -> None:
    assert " ".join(codes(checked(tmp_path, r"Rain \cite{a}.", bib, index))) == expected


def test_remedies_name_the_nearest_paper_and_the_one_that_has_the_doi(tmp_path: Path, index: OpenIndex) -> None:
    bib = entry("near", "Counting Lakes by Night and Hand", author="Ola Nowak")
    bib += entry("wrong", LAKES, author="Ola Nowak", more=DOI)
    options = {"ignore": frozenset({"authors-differ", "two-works"})}
    lacking, other = checked(tmp_path, r"Rain \cite{near,wrong}.", bib, index, **options)
    assert (lacking.code, other.code, other.severity, other.line) == ("not-in-index", "other-work", "error", 2)
    assert LAKES in lacking.remedy and f"“{LAKES}” by Ada Roe and others, 2001 (1)" in other.remedy
    assert "year 2001, there 2005; first author Ola Nowak, there Ada Roe" in other.message


def test_sarif_says_all_that_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = checked(tmp_path, "Rain \\cite{?} \\cite{gone}.", entry("a", "Lakes"), name="my draft.tex")
    log = json.loads(json.dumps(sarif(found)))
    assert log["version"] == "2.1.0" and log["$schema"].endswith("sarif-schema-2.1.0.json")
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result, finding in zip(run["results"], found, strict=True):
        (location,) = result["locations"]
        place = location["physicalLocation"]
        assert place["artifactLocation"]["uri"] == "my%20draft.tex"
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"] == finding.code
        assert result["level"] == finding.severity and finding.message in result["message"]["text"]
        span = (finding.line, finding.column, finding.end_line, finding.end_column)
        assert tuple(place["region"].values()) == span


WORDS = r"\cite{|}|{|a|b,|@article{a,| title = {|year = 2030|[@a]|[@?]| et al. show|. |% |$|\section{|\begin{abstract}"
PIECES = st.sampled_from(
    [*WORDS.split("|"), "\\", "@string{", '"', "ä", "<REF>", "# ", "\n\n", "\r\n", "\x00", "---\n"]
)
TEXTS = st.lists(PIECES, max_size=30).map("".join)


@given(TEXTS, TEXTS, st.sampled_from(["a.tex", "a.md"]))
def test_mangled_files_end_in_findings_or_one_error(text: str, bib: str, name: str) -> None:
    path, refs = Path(name), Path("a.bib")
    files = Files(texts={path: text, refs: bib})
    try:
        draft = read_draft(path, files)
    except CiterecError:
        return
    every = Options(frozenset(CHECKS), year=2026)
    for finding in check_draft(draft, read_entries([refs], files), None, every, files):
        assert finding.line >= 1 and finding.column >= 1 and finding.message and finding.remedy
        assert (finding.end_line, finding.end_column) >= (finding.line, finding.column)
