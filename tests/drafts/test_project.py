"""Marks of places in each kind of draft, narrative citations, and the project file."""

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from citerec.drafts import Files, read_draft
from citerec.drafts.bibliography import Bibliography
from citerec.drafts.filling import Filling
from citerec.records import Paper
from tests.conftest import Citerec
from tests.drafts.mangled import ORG, TYPST

LAKES = Paper("1", title="Counting lakes", authors=("Ada Roe",), year=2001)


def filled(name: str, text: str) -> str:
    """A draft in which each place cites one paper."""
    path, bib = Path(name), Path("refs.bib")
    files = Files(texts={path: text, bib: ""}, disk=False)
    filling = Filling(path, bib, files)
    while filling.draft.places:
        filling.cite(0, [LAKES])
    return files.text(path)


@pytest.mark.parametrize("mark", ["[citation needed]", "[CITATION NEEDED]", "[?]", "[??]", "[CITE]", "(REF)", "<REF>"])
def test_marks_of_every_kind_of_draft(mark: str) -> None:
    text = f"Lakes freeze {mark} in winter, [see the appendix](#a) too."
    assert filled("a.md", text) == text.replace(mark, "[@roe2001counting]")
    assert filled("a.txt", text) == text.replace(mark, "[roe2001counting]")
    latex = rf"Ice \citep{{b}}. {text}"
    assert filled("a.tex", latex) == latex.replace(mark, r"\citep{roe2001counting}")


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.tex", r"Lakes freeze \needcite in winter.", r"Lakes freeze \cite{roe2001counting} in winter."),
        ("a.tex", r"Lakes \cite{} freeze.", r"Lakes \cite{roe2001counting} freeze."),
        ("a.tex", r"\item[?] Lakes \cite{?}", r"\item[?] Lakes \cite{roe2001counting}"),
        (
            "a.tex",
            r"\linebreak[?] Lakes \makebox[?]{x} \cite{?}",
            r"\linebreak[?] Lakes \makebox[?]{x} \cite{roe2001counting}",
        ),
        ("a.org", "Lakes [[https://a.b][?]] freeze [?].", "Lakes [[https://a.b][?]] freeze [cite:@roe2001counting]."),
        ("a.md", "@? showed that lakes freeze.", "@roe2001counting showed that lakes freeze."),
        (
            "a.tex",
            r"\usepackage{natbib} Ice. <REF> saw [?].",
            r"\usepackage{natbib} Ice. \citet{roe2001counting} saw \citep{roe2001counting}.",
        ),
        ("a.org", "<REF> saw ice.", "[cite/t:@roe2001counting] saw ice."),
        ("a.md", "Ice. As shown by @?, lakes @?.", "Ice. As shown by @roe2001counting, lakes [@roe2001counting]."),
        (
            "a.md",
            "[cite](http://a.b), [ref] and [CITE][1] stay, [?]: too.",
            "[cite](http://a.b), [ref] and [CITE][1] stay, [?]: too.",
        ),
    ],
)
def test_marks_of_one_kind(name: str, text: str, expected: str) -> None:
    assert filled(name, text) == expected


def test_a_project_file_answers_for_the_options(tmp_path: Path, demo_index: Path, citerec_here: Citerec) -> None:
    (tmp_path / "chapters").mkdir()
    draft = tmp_path / "chapters" / "one.md"
    draft.write_text("Attention alone suffices to translate sentences CITE-ME.\n")
    project = tmp_path / "citerec.toml"
    project.write_text(f'index = "{demo_index}"\nbib = "all.bib"\nkeys = "{{Auth}}{{year}}"\nmarks = ["CITE-ME"]\n')
    assert citerec_here("fill", draft, "--yes=any").returncode == 0
    assert draft.read_text() == "Attention alone suffices to translate sentences [@Vaswani2017].\n"
    assert (tmp_path / "all.bib").read_text().startswith("@inproceedings{Vaswani2017,")
    assert "nothing to mend" in citerec_here("check", draft).stdout
    assert read_draft(draft).bibliographies == (tmp_path / "all.bib",)
    for wrong, said in (
        ('marks = ["("]', "marks"),
        ('marks = [".*"]', "empty"),
        ('bibs = "a"', "bib"),
        ("bib = ", "TOML"),
    ):
        project.write_text(wrong)
        run = citerec_here("fill", draft)
        assert run.returncode == 2 and said in run.stderr and "citerec.toml" in run.stderr


def test_keys_that_are_no_names_in_typst_are_labels() -> None:
    path = Path("a.typ")
    draft = read_draft(path, Files(texts={path: "Lakes @?[p. 3], snow @? and ice <REF>.\n"}, disk=False))
    assert [draft.citation(place, ["10.1145/1", "b"]) for place in draft.places] == [
        '#cite(label("10.1145/1"), supplement: [p. 3]) @b[p. 3]',
        '#cite(label("10.1145/1")) @b',
        '#cite(label("10.1145/1")) #cite(<b>)',
    ]


def test_init_proposes_what_is_there(tmp_path: Path, citerec_here: Citerec) -> None:
    (tmp_path / "paper.tex").write_text(r"Lakes \cite{roe01}. \bibliography{lakes}")
    (tmp_path / "lakes.bib").write_text("@misc{roe01, title={Counting lakes}, author={Ada Roe}, year={2001}}\n")
    run = citerec_here("init", text="\nindexes/lakes\n\n")
    assert run.returncode == 0 and "citerec index build" in run.stderr
    written = (tmp_path / "citerec.toml").read_text()
    for line in ('bib = "lakes.bib"', 'index = "indexes/lakes"', 'keys = "{auth}{shortyear}"'):
        assert line in written
    assert read_draft(tmp_path / "paper.tex").bibliographies == (tmp_path / "lakes.bib",)
    example = written.partition("as regular expressions: ")[2]
    assert re.fullmatch(tomllib.loads(example)["marks"][0], "???")
    assert citerec_here("init").returncode == 2
    assert "there is no folder drafts" in citerec_here("init", "drafts").stderr


def test_a_sentence_may_have_any_mark(demo_index: Path, citerec_here: Citerec) -> None:
    said = set()
    for mark in (r"\cite{?}", "[@?]", "[?]", "<REF>"):
        sentence = f"Attention alone suffices to translate {mark}."
        said.add(citerec_here("recommend", sentence, "--index", demo_index, "--format", "json").stdout)
    assert len(said) == 1


@pytest.mark.parametrize(
    ("name", "text", "changes"),
    [
        (
            "a.typ",
            TYPST,
            {
                "so @?,": "so @roe2001counting,",
                "too <REF>": "too #cite(<roe2001counting>)",
                "#cite(<?>, form": "#cite(<roe2001counting>, form",
                "@?[p. 3]": "@roe2001counting[p. 3]",
            },
        ),
        (
            "a.org",
            ORG,
            {
                "[cite/t:see @lee02; @?]": "[cite/t:see @lee02; @roe2001counting]",
                "[citation needed]": "[cite:@roe2001counting]",
                "[cite:@?, p. 3]": "[cite:@roe2001counting, p. 3]",
            },
        ),
    ],
)
def test_typst_and_org(name: str, text: str, changes: dict[str, str]) -> None:
    draft = read_draft(Path(name), Files(texts={Path(name): text}, disk=False))
    assert draft.title == "On lakes" and draft.bibliographies == (Path("lakes.bib"),)
    assert [one.key for one in draft.cited] == ["roe01", "lee02"]
    assert [(place.line, place.section) for place in draft.places][-1][1] == "Snow"
    assert len(draft.places) == len(changes)
    for old, new in changes.items():
        text = text.replace(old, new)
    files_text = TYPST if name == "a.typ" else ORG
    assert filled(name, files_text) == text


@pytest.mark.parametrize(
    ("name", "place", "citation"),
    [
        ("a.org", "[cite:see @lee02; @?, p. 3; @?; @roe01]", "[cite:see @lee02; @x;@y, p. 3; @roe01]"),
        ("a.org", "[cite/t:@?;@?]", "[cite/t:@x;@y]"),
        ("a.md", "[see @lee02; @?, p. 3; @?]", "[see @lee02; @x; @y, p. 3]"),
    ],
)
def test_what_stands_around_several_missing_keys_stays(name: str, place: str, citation: str) -> None:
    draft = read_draft(Path(name), Files(texts={Path(name): f"Lakes are blue {place}."}, disk=False))
    (one,) = draft.places
    assert one.form is not None and one.form(["x", "y"]) == citation


def test_another_edition_of_an_added_paper_has_its_key() -> None:
    bib = Path("refs.bib")
    bibliography = Bibliography([bib], Files(texts={bib: ""}, disk=False))
    preprint = Paper("1", "Counting the lakes of the north", year=2001, authors=("Ann Roe",), venue="arXiv")
    assert bibliography.key_of(published := replace(preprint, paper_id="2", venue="Limnology")) is None
    assert bibliography.add(preprint) == bibliography.add(published)
