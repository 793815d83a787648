"""The examples run as they stand, on data in BEIR's form; and their parts on the command line, by --plugin."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import DEMO, Citerec, write_lines

GROUP = Path("examples/group.py").resolve()


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture(scope="module")
def beir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's papers and contexts in BEIR's form."""
    folder = tmp_path_factory.mktemp("beir")
    papers = [one for path in sorted(DEMO.glob("papers/*.jsonl")) for one in read_lines(path)]
    write_lines(
        folder / "corpus.jsonl", [{"_id": str(one["corpusid"]), "title": one["title"], "text": ""} for one in papers]
    )
    contexts = read_lines(DEMO / "contexts.jsonl")[:80]
    write_lines(folder / "queries.jsonl", [{"_id": one["context_id"], "text": one["text"]} for one in contexts])
    (folder / "qrels").mkdir()
    lines = [f"{one['context_id']}\t{paper}\t1" for one in contexts for paper in one["cited_ids"]]
    (folder / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *lines, ""]))
    return folder


@pytest.mark.slow
def test_a_groups_day(beir: Path, tmp_path: Path) -> None:
    command = [sys.executable, GROUP, beir, tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    table = (tmp_path / "out" / "table.tex").read_text()
    assert "short-first" in table and "title-words" in table and "tabular" in table
    assert (tmp_path / "out" / "results" / "report.html").exists()
    record = json.loads((tmp_path / "out" / "results" / "meta.json").read_text())
    assert [one["name"] for one in record["columns"]] == ["first", "recall@10", "ndcg@10", "precision@10"]
    assert "group" in record["systems"]["title-words"]["digests"]  # the file of the plug-in


def test_a_plug_in_and_qrels_of_trec(beir: Path, tmp_path: Path, citerec: Citerec) -> None:
    citerec("index", "build", beir / "corpus.jsonl", "--out", "index")
    topics = [f"{one['_id']}\t{one['text'].replace('<REF>', ' ')}\n" for one in read_lines(beir / "queries.jsonl")]
    (tmp_path / "topics.tsv").write_text("".join(topics))
    qrels = [line.split("\t") for line in (beir / "qrels" / "test.tsv").read_text().splitlines()[1:]]
    (tmp_path / "qrels.txt").write_text("".join(f"{query} 0 {paper} {grade}\n" for query, paper, grade in qrels))
    plugin, index = ("--plugin", GROUP), ("--index", "index")
    own = ("--system", "title-words", "--system", "bm25+short-first", "--metrics", "P_5,recip_rank", "--workers", "2")
    shown = citerec(
        *("eval", "--contexts", "topics.tsv", "--qrels", "qrels.txt", *plugin, *index, *own, "--out", "results")
    ).stdout
    assert "precision@5" in shown and re.search(r"^title-words +80 +0\.\d+", shown, re.MULTILINE)
    record = json.loads((tmp_path / "results" / "meta.json").read_text())
    assert "group" in record["systems"]["title-words"]["digests"]
    found = citerec("recommend", "attention is all you need <REF>", "--system", "title-words", *plugin, *index)
    assert "Attention Is All You Need" in found.stdout
    (tmp_path / "broken.py").write_text("import nothing_of_this_name\n")
    broken = citerec("recommend", "x <REF>", "--plugin", "broken.py", *index)
    assert "the plug-in broken.py cannot be run: ModuleNotFoundError" in broken.stderr


def test_a_plug_in_hides_no_other_module(tmp_path: Path, citerec: Citerec, demo_index: Path) -> None:
    (tmp_path / "statistics.py").write_text("")
    refused = citerec("recommend", "x <REF>", "--plugin", "statistics.py", "--index", demo_index)
    assert refused.returncode == 2 and "statistics is the name of another module: rename the file" in refused.stderr
