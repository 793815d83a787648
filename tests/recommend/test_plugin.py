"""Parts of another package: named in entry points, used by every command, without a line changed in citerec."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import DEMO, Citerec
from tests.loopback import Server, send

pytestmark = pytest.mark.slow

SENTENCE = "Attention is all you need to translate <REF>."


FILES = {
    "mine.py": '''
"""A retriever, a reranker, a format, a look-up and a family."""

from pydantic import Field

from citerec import Candidate, Reranker, Retriever, reranked
from citerec.corpus.base import Format
from citerec.corpus.reading import Line, RecordError, raw_lines, tried
from citerec.corpus.tabular import parse_paper
from citerec.diagnostics.families import MEDIUM, Family
from citerec.records import NO_FILTERS, Paper
from citerec.settings import PartSettings
from citerec.sources.look_up import LookUp


class TitleWordsSettings(PartSettings):
    least: float = Field(default=0.2, description="share of the words of a title that the sentence must have")


class TitleWords(Retriever):
    """It leaves filters, leak rules and k to the pipeline."""

    name, label, Settings = "title-words", "words of the title", TitleWordsSettings

    @classmethod
    def open(cls, index, settings):
        self = cls()
        self.titles = {text.paper_id: set(text.title.casefold().split()) for text in index.store.all_papers()}
        self.least = settings.least
        return self

    def search(self, topic, k, filters=None, prepared=None):
        words = set(topic.text.casefold().split())
        shares = {one: len(words & title) / len(title) for one, title in self.titles.items() if title}
        found = {one: share for one, share in shares.items() if share >= self.least}
        return [Candidate(one, share, signals={"title-words": share}) for one, share in found.items()]


class NewestFirstSettings(PartSettings):
    depth: int = Field(default=10, description="how many candidates are put in order")


class NewestFirst(Reranker):
    name, Settings = "newest-first", NewestFirstSettings

    @classmethod
    def open(cls, index, folder, settings):
        self = cls()
        self.depth = settings.depth
        return self

    def rerank(self, topic, candidates, papers, citances, *, explain=0):
        years = [papers[paper_id].year or 0 for paper_id in candidates[: self.depth].paper_ids()]
        return reranked(candidates, years, self.name)


def parse(text):
    cells = text.rstrip().split("\\t")
    if len(cells) != 3:
        raise RecordError("three cells should be here")
    return Paper(paper_id=cells[0], title=cells[1], year=int(cells[2]))


def read_tsv(path):
    for number, raw, bytes_read in raw_lines(path):
        yield Line(number, tried(lambda raw=raw: parse(raw.decode()), raw), bytes_read)


TSV = Format("tsv", read_tsv, (".tsv",))


class GroupLibrary(LookUp):
    name, title, url = "group-library", "our library", "https://library.example.org"
    lists, by_doi, paper_of = "papers", "doi/{}", staticmethod(parse_paper)

    def search(self, query, filters=NO_FILTERS, offset=0):
        return self.page("search", {"q": query, "from": str(offset)})


FAMILY = Family(
    name="together",
    title="Papers cited together",
    classes=lambda _: ("one", "several"),
    class_of=lambda facts: "one" if len(facts.context.cited_ids) == 1 else "several",
    conditions=(MEDIUM,),
)
''',
    "mine-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n",
    "mine-1.0.dist-info/entry_points.txt": """
[citerec.retrievers]
title-words = mine:TitleWords
[citerec.rerankers]
newest-first = mine:NewestFirst
[citerec.formats]
tsv = mine:TSV
[citerec.look_ups]
group-library = mine:GroupLibrary
[citerec.families]
together = mine:FAMILY
""",
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which citerec finds the package."""
    folder = tmp_path_factory.mktemp("site")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text.lstrip())
    return {"PYTHONPATH": os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])}


def test_its_parts_are_listed_asked_set_and_measured(
    citerec: Citerec, installed: dict[str, str], demo_index: Path, tmp_path: Path
) -> None:
    shown = citerec("systems", **installed).stdout
    assert "title-words" in shown and "hybrid+newest-first" in shown
    assert "title-words" not in citerec("systems").stdout

    def recommended(system: str, *more: object) -> list[dict[str, Any]]:
        command = ["recommend", SENTENCE, "--index", demo_index, "-k", 50, "--format", "json", "--system", system]
        done = citerec(*command, *more, **installed)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)  # type: ignore[no-any-return]

    everything = recommended("title-words")
    assert (everything[0]["title"], everything[0]["score"]) == ("Attention Is All You Need", 1.0)
    assert [hit["score"] for hit in recommended("title-words", "-c", "title_words.least=0.9")] == [1.0]
    # Its retriever is held to filters and leak rules.
    old = recommended("title-words", "--year-to", 2000)
    assert {hit["paper_id"] for hit in old} == {hit["paper_id"] for hit in everything if hit["year"] <= 2000}
    best = everything[0]
    without = recommended("title-words", "--citing", best["paper_id"])
    assert all(hit["paper_id"] != best["paper_id"] and hit["year"] <= best["year"] for hit in without)
    years = [hit["year"] for hit in recommended("title-words+newest-first")][:10]
    assert years == sorted(years, reverse=True)
    fused = recommended("bm25+title-words", "--explain")
    assert "words of the title" in {reason["name"] for reason in fused[0]["reasons"]}
    command = ["eval", "--diagnostic", "demo/intent", "--index", demo_index, "--format", "json", "--metrics", "mrr@10"]
    value = json.loads(citerec(*command, "--system", "title-words+newest-first", **installed).stdout)
    assert value["systems"]["title-words+newest-first"]["settings"]["newest_first"] == {"depth": 10}
    # Its format is read.
    (tmp_path / "mine.tsv").write_text("p1\tAttention Is All You Need\t2017\nno cells\np2\tOther things\t2001\n")
    built = citerec("index", "build", "mine.tsv", "--out", "mine", "--max-bad", 0.5, **installed)
    assert built.returncode == 0, built.stderr
    assert json.loads((tmp_path / "mine/1/quarantine.jsonl").read_text())["line"] == 2
    hits = json.loads(citerec("recommend", SENTENCE, "--index", "mine", "--format", "json", **installed).stdout)
    assert (hits[0]["paper_id"], hits[0]["year"]) == ("p1", 2017)


def test_its_look_up_is_asked_by_name(installed: dict[str, str], tmp_path: Path) -> None:
    """The client, its pace, its errors and its cache are citerec's."""
    code = """
import sys
from citerec.records import Paper
from citerec.sources.look_up import LOOK_UPS, Manners
library = LOOK_UPS["group-library"](Manners(url=sys.argv[1], pace=0.0))
print([paper.title for paper in library.search("attention").papers])
for doi in ("10.1/known", "10.1/unknown"):
    print(library.find([Paper("", external_ids={"DOI": doi})]))
"""
    paper = {"paper_id": "p1", "title": "Attention Is All You Need", "year": 2017}
    library = Server()
    library.answers = [send(body=json.dumps(one).encode()) for one in ({"papers": [paper], "next": False}, paper)]
    library.answers.append(send(404))
    environment = {**os.environ, **installed, "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-c", code, library.url]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    library.stop()
    assert result.returncode == 0, result.stderr
    titles, known, unknown = result.stdout.splitlines()
    assert titles == "['Attention Is All You Need']" and "year=2017" in known and unknown == "[None]"


def test_its_family_is_labelled_and_measured(
    citerec: Citerec, installed: dict[str, str], demo_index: Path, tmp_path: Path
) -> None:
    label = ("diagnostics", "label", DEMO / "contexts.jsonl", "--index", demo_index, "--out", "mine")
    result = citerec(*label, **installed)
    assert result.returncode == 0, result.stderr
    (found,) = re.findall(r"^together +(\d+) +one ([\d,]+), several (\d+)", result.stdout, re.MULTILINE)
    assert int(found[0]) == int(found[1]) + int(found[2]) > 0
    shown = citerec("diagnostics", "show", "mine/together", **installed).stdout
    assert "Papers cited together" in shown and "held constant: the sentence is of medium length" in shown
    assert "Papers cited together (`mine/together`)" in (tmp_path / "diagnostics/mine/DATASHEET.md").read_text()
    given = ("eval", "--set", "mine", "--diagnostic", "together", "--index", demo_index)
    result = citerec(*given, **installed)
    assert re.search(rf"^one +{found[1]} +0\.\d{{3}} ", result.stdout, re.MULTILINE), result.stderr
    # Who has the package no longer can read the set all the same.
    assert re.search(rf"^mine/together +{found[0]} ", citerec("diagnostics", "show").stdout, re.MULTILINE)
