"""`citerec index enrich`: what services know is filled in, citing sentences are found, kills lose nothing."""

import gzip
import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from citerec.contexts.read import read_contexts
from citerec.index.build import BuildOptions, build_index
from citerec.recommend import Recommender
from citerec.records import Context
from tests.conftest import Citerec, write_lines
from tests.live.services import Services, _address, graph_paper, sent

Papers = dict[int, dict[str, Any]]


class World(Services):
    """Semantic Scholar's batches, titles and citations too; `citing` has for each paper who cites it, and how."""

    def __init__(self, papers: list[dict[str, Any]], citing: Mapping[int, list[tuple[int, str]]]) -> None:
        super().__init__(papers)
        self.by_id: Papers = {one["corpusid"]: one for one in papers}
        self.citing = citing
        self.delay = 0.0  # seconds before an answer
        self.page = 1000  # papers that cite, of one answer
        self.counts: Counter[str] = Counter()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        path, parameters = _address(handler)
        time.sleep(self.delay)
        if self.bad:
            self.bad.pop(0)(handler)
        elif path == "/graph/v1/paper/batch":
            ids = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))["ids"]
            assert len(ids) <= 500
            self.counts.update(ids)
            known = {f"ACL:{one['externalids'].get('ACL')}": one for one in self.papers}
            known |= {f"DOI:{one['externalids'].get('DOI')}": one for one in self.papers}
            sent([graph_paper(known[one]) if one in known else None for one in ids])(handler)
        elif path == "/graph/v1/paper/search/match":
            self.counts[parameters["query"]] += 1
            words = parameters["query"].split()
            found = self._found(words, all)[:1]
            sent(
                {"data": [graph_paper(one) for one in found]} if found else {"error": "Title match not found"},
                200 if found else 404,
            )(handler)
        elif path.endswith("/citations"):
            self.counts[f"{path} {parameters['offset']}"] += 1
            number = int(path.split("CorpusId:")[1].split("/")[0])
            listed = [
                {"contexts": [said], "citingPaper": {**graph_paper(self.by_id[one])}}
                for one, said in self.citing.get(number, [])
            ]
            offset, page = int(parameters["offset"]), min(self.page, int(parameters["limit"]))
            answer: dict[str, Any] = {"offset": offset, "data": listed[offset : offset + page]}
            if offset + page < len(listed):
                answer["next"] = offset + page
            sent(answer)(handler)
        else:
            super()._answer(handler)

    @property
    def options(self) -> tuple[str, ...]:
        urls = f"s2.url={self.url}/graph/v1", f"openalex.url={self.url}/openalex"
        values = (*urls, "s2.pace=0", "openalex.pace=0")
        return tuple(part for value in values for part in ("-c", value))


def paper(number: int, title: str, **fields: Any) -> dict[str, Any]:
    ids = {"DOI": fields.pop("doi", None), "ACL": None}
    record = {"corpusid": number, "title": title, "year": 2010, "venue": "ACL", "citationcount": 7, "abstract": None}
    record |= {"authors": [{"name": "Ada Byron"}], "s2fieldsofstudy": [{"category": "Computer Science"}]}
    return {**record, "externalids": ids, **fields}


@pytest.fixture
def world() -> Iterator[World]:
    papers = [
        paper(1, "Parsing with lexical heads", doi="10.1/a", abstract="Heads decide how a sentence is parsed."),
        paper(2, "Tagging by hidden states", abstract="States that nobody sees explain the tags."),
        paper(3, "A later look at parsers", year=2015),
        paper(4, "Something else entirely", doi="10.1/d"),
    ]
    citing = {1: [(3, "The zebra corpus is parsed by the method of Byron (2010)."), (2, "See Byron (2010).")]}
    found = World(papers, citing)
    found.page = 1
    yield found
    found.stop()


BIB = """@article{heads, title={Parsing with lexical heads}, author={Ada Byron}, year={2010}, doi={10.1/a},
  abstract={My own abstract.}}
@article{states, title={Tagging by hidden states}, author={Ada Byron}, year={2010}}
@article{unknown, title={What nobody knows}, author={N. Body}, year={2001}}
"""


def test_what_is_lacking_is_filled_in_and_what_is_yours_stays(
    world: World, tmp_path: Path, citerec_here: Citerec
) -> None:
    (tmp_path / "my.bib").write_text(BIB)
    assert citerec_here("index", "build", "my.bib", "--out", "mine", "--vectors", "none").returncode == 0
    done = citerec_here("index", "enrich", "mine", *world.options)
    assert done.returncode == 0, done.stderr
    shown = " ".join(done.stdout.split())
    assert "known to Semantic Scholar 2 of 3" in shown and "abstract filled in 1" in shown
    assert "citing sentences 2 of 1 papers" in shown, shown
    with Recommender.open(tmp_path / "mine", "bm25+citances") as recommender:
        papers = recommender.store.papers(["heads", "states", "unknown"])
        assert papers["heads"].abstract == "My own abstract." and papers["heads"].bibtex
        assert papers["heads"].citation_count == 7 and papers["heads"].origins["citation_count"] == "s2"
        assert papers["states"].abstract == "States that nobody sees explain the tags."
        assert papers["unknown"].abstract is None
        context = Context(text="We take the zebra corpus <REF>.", citing_year=2016)
        assert recommender.search(context)[0].paper.paper_id == "heads"
        # Leak rules: what is newer is not known, and a paper of the index does not cite for itself.
        earlier = recommender.search(Context(text="The zebra corpus <REF>.", citing_year=2014))
        assert not any(hit.citance for hit in earlier[:1])
        (own,) = [one for one in recommender.store.searchable_citances() if one.citing_id == "states"]
        assert own.cited.paper_id == "heads"
    asked = Counter(world.counts)
    again = citerec_here("index", "enrich", "mine", *world.options)
    assert again.returncode == 0 and world.counts == asked
    assert "citing sentences 0 of 0 papers" in " ".join(again.stdout.split())
    assert citerec_here("index", "verify", "mine").returncode == 0
    # Built anew, it gets all of it without asking; what is new is asked for.
    assert citerec_here("index", "build", "my.bib", "--out", "mine", "--vectors", "none").returncode == 0
    (tmp_path / "more.bib").write_text("@article{d, title={Something else entirely}, doi={10.1/d}, year={2010}}")
    assert citerec_here("index", "add", "mine", "more.bib").returncode == 0
    last = citerec_here("index", "enrich", "mine", *world.options)
    assert "known to Semantic Scholar 3 of 4" in " ".join(last.stdout.split()), last.stderr
    assert "citing sentences 2 of 1 papers" in " ".join(last.stdout.split())
    assert sum((world.counts - asked).values()) == 2 and world.counts["DOI:10.1/d"] == 1


def test_a_service_that_fails_loses_nothing(world: World, tmp_path: Path, citerec_here: Citerec) -> None:
    (tmp_path / "my.bib").write_text(BIB)
    citerec_here("index", "build", "my.bib", "--out", "mine", "--vectors", "none")
    world.bad = [sent({"message": "no"}, 403)]
    failed = citerec_here("index", "enrich", "mine", *world.options)
    assert failed.returncode != 0 and "answered 403: no" in failed.stderr and "S2_API_KEY" in failed.stderr
    assert citerec_here("index", "enrich", "mine", "--service", "crossreff", *world.options).returncode == 2
    assert citerec_here("index", "enrich", "mine", *world.options).returncode == 0
    assert max(world.counts.values()) == 1


def records(folder: Path) -> Iterator[dict[str, Any]]:
    for file in sorted(folder.iterdir()):
        with gzip.open(file, "rt") as lines:
            yield from map(json.loads, lines)


@pytest.mark.slow
def test_titles_enriched_are_as_good_as_built_with_the_sentences_and_kills_lose_nothing(
    shared: Path, tmp_path: Path
) -> None:
    """On 800 papers of data/acl: killed 20 times, nothing is asked twice, and R@10 is that of a build with them."""
    data = shared / "acl"
    years = {one["corpusid"]: one for one in records(data / "papers")}
    citing: dict[int, list[tuple[int, str]]] = {}
    sentences = []
    for one in records(data / "citations"):
        for said in one["contexts"] if one["citingcorpusid"] in years else ():
            citing.setdefault(one["citedcorpusid"], []).append((one["citingcorpusid"], said))
            sentences.append((one["citingcorpusid"], one["citedcorpusid"], said))
    cited = sorted(citing)[:400]
    others = [number for number in sorted(years) if number not in citing][:400]
    kept = {number: years[number] for number in [*cited, *others]}
    (tmp_path / "titles" / "papers").mkdir(parents=True)
    write_lines(tmp_path / "titles" / "papers" / "papers.jsonl", kept.values())
    contexts = [
        {"text": f"{said.replace('<REF>', '')} <REF>", "context_id": str(at), "citing_id": who, "cited_ids": [whom]}
        | {"citing_year": years[who]["year"]}
        for at, (who, whom, said) in enumerate(sentences)
        if whom in kept
    ]
    file = write_lines(tmp_path / "sentences.jsonl", contexts)
    build_index([tmp_path / "titles"], tmp_path / "built", BuildOptions(citances=(file,)))
    build_index([tmp_path / "titles"], tmp_path / "enriched")
    wanted = {*kept, *(who for number in kept for who, _ in citing.get(number, ()))}
    world = World([years[number] | {"abstract": None} for number in sorted(wanted)], citing)
    world.delay = 0.01
    command = [sys.executable, "-m", "citerec.cli.main", "index", "enrich", str(tmp_path / "enriched"), *world.options]
    command += ["--sentences", "100000", "--service", "s2"]
    for kill in range(20):
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(1 + 0.05 * kill)
        run.send_signal(signal.SIGKILL)
        run.wait()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # What was under way at a kill was asked for, and its answer never came: at most one request each time.
    repeated = sum(count - 1 for name, count in world.counts.items() if "/citations" in name)
    assert repeated <= 20
    world.stop()

    def found(index: Path) -> float:
        dev = [one for one in read_contexts(data / "contexts-dev.jsonl", cited=True) if int(one.cited_ids[0]) in kept]
        with Recommender.open(index, "bm25+citances") as recommender:
            pairs = recommender.candidates(recommender.topics(dev), 10)
            hits = [bool({*topic.context.cited_ids} & {*hits.paper_ids()}) for topic, hits in pairs]
        assert len(hits) > 300
        return sum(hits) / len(hits)

    assert abs(found(tmp_path / "enriched") - found(tmp_path / "built")) <= 0.005
