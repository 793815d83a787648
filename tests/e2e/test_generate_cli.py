"""`citerec write` and `recommend --tldr`, without a model."""

import json
from pathlib import Path

from citerec.write.tasks import terms_of
from tests.conftest import Citerec, write_lines
from tests.e2e.test_cli import one_line

SENTENCE = "Attention alone, without recurrence or convolution, suffices to translate well <REF>."
ATTENTION, LSTM = "900000041", "900000032"


def test_a_citation_text(citerec_here: Citerec, demo_index: Path) -> None:
    write = ("write", "citation", SENTENCE, "--index", demo_index)
    found = citerec_here(*write, "-k", 2, code=0)
    text, _, rest = found.stdout.partition("— attributed")
    assert "suffices to translate well [0, 1]." in text and "[0]" in text.split("well [0, 1].")[1]
    assert "[0]  Attention Is All You Need" in rest and "title = {{Attention Is All You Need}}" in rest
    value = json.loads(citerec_here(*write, "--papers", f"{LSTM},{ATTENTION}", "--format", "json").stdout)
    assert [paper["paper_id"] for paper in value["papers"]] == [int(LSTM), int(ATTENTION)]
    assert [sentence["drawn_from"] for sentence in value["sentences"]] == [[0], [1]]
    assert all(sentence["unknown"] == [] for sentence in value["sentences"])
    assert value["text"] == " ".join(sentence["text"] for sentence in value["sentences"])
    assert len(value["bibtex"]) == 2
    value = json.loads(citerec_here(*write, "--citing", ATTENTION, "--format", "json").stdout)
    assert int(ATTENTION) not in [paper["paper_id"] for paper in value["papers"]]  # it is the one that is written


def test_tldrs(citerec_here: Citerec, demo_index: Path) -> None:
    found = citerec_here("write", "tldr", LSTM, ATTENTION, "--index", demo_index)
    assert found.stdout.count("TLDR: ") == 2, found.stderr
    assert " ".join(found.stdout.split()).count("from its abstract, by the writer trained") == 2
    (one,) = json.loads(citerec_here("write", "tldr", LSTM, "--index", demo_index, "--format", "json").stdout)
    assert (one["origin"], one["paper_id"]) == ("trained", int(LSTM))
    ask = ("recommend", SENTENCE, "--index", demo_index, "-k", 2, "--tldr")
    assert citerec_here(*ask).stdout.count("TLDR: ") == 2
    hits = json.loads(citerec_here(*ask, "--format", "json").stdout)
    assert [hit["tldr_origin"] for hit in hits] == ["trained"] * 2
    assert all(set(terms_of(hit["tldr"])) <= set(terms_of(hit["abstract"])) for hit in hits)


def test_a_corpus_s_own_tldr_is_shown_as_such(citerec_here: Citerec, tmp_path: Path) -> None:
    paper = {"paper_id": "own", "title": "Trees", "abstract": "Trees are cut.", "tldr": "Cut them."}
    index = tmp_path / "index"
    citerec_here("index", "build", write_lines(tmp_path / "papers.jsonl", [paper]), "--out", index, code=0)
    assert "Cut them.  — of the corpus" in citerec_here("write", "tldr", "own", "--index", index).stdout
    anew = citerec_here("write", "tldr", "own", "--index", index, "--anew").stdout
    assert "Trees are cut.  — from its abstract" in anew


def test_related_work(citerec_here: Citerec, demo_index: Path, tmp_path: Path) -> None:
    write = ("write", "related-work", "--papers", f"{LSTM},{ATTENTION}", "--index", demo_index, "--writer", "lead-each")
    sentences = json.loads(citerec_here(*write, "--format", "json").stdout)["sentences"]
    assert [sentence["drawn_from"] for sentence in sentences] == [[0], [1]] and "[0]" in sentences[0]["text"]
    entries = citerec_here(*write, "--format", "bibtex").stdout
    (tmp_path / "refs.bib").write_text(f"{entries}\n@misc{{other, title = {{A paper that no index has}}}}\n")
    write = ("write", "related-work", "--papers", "refs.bib", "--index", demo_index, "--writer", "lead-each")
    done = citerec_here(*write, "--format", "json")
    assert f"{demo_index} has 2 of the 3 papers of refs.bib." in done.stderr
    assert json.loads(done.stdout)["sentences"] == sentences


def test_a_batch_comes_out_in_the_same_format(citerec_here: Citerec, tmp_path: Path) -> None:
    tasks = [
        {"id": "a", "input": ["<abs> We. </abs>", "We propose saws. They cut."], "target": "[0] cut.", "note": 1},
        {"id": "b", "input": ["Trees fall."], "target": "[0] fall."},
    ]
    write_lines(tmp_path / "t.jsonl", tasks)
    done = citerec_here("write", "batch", "t.jsonl", "--writer", "lead-each", "--out", "out.jsonl")
    assert "2 texts by lead-each" in done.stdout, done.stderr
    records = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [{name: record[name] for name in task} for task, record in zip(tasks, records, strict=True)] == tasks
    assert [record["prediction"] for record in records] == ["We propose saws [0].", "Trees fall [0]."]
    assert all(record["settings"] == {"writer": "lead-each"} for record in records)
    oracle = citerec_here("write", "batch", "out.jsonl", "--writer", "ext-oracle", "--out", "oracle.jsonl")
    assert "an upper bound, not a system" in oracle.stderr
    assert (tmp_path / "oracle.jsonl").read_text().count('"knows_target":true') == 2


def test_bad_input_is_one_line(citerec_here: Citerec, demo_index: Path, tmp_path: Path) -> None:
    citation = ("citation", SENTENCE)
    for arguments, said in [
        ((*citation, "--writer", "leed"), "there is no writer 'leed'"),
        (("tldr", "1"), "has no paper '1'"),
    ]:
        one_line(citerec_here("write", *arguments, "--index", demo_index), 2, said)
    one_line(citerec_here("write", *citation, "--writer", "ext-oracle", "--index", demo_index), 1, "needs a target")
    write_lines(tmp_path / "bad.jsonl", [{"target": "x"}])
    write_lines(tmp_path / "good.jsonl", [{"input": ["Trees fall."]}])
    write_lines(tmp_path / "contexts.jsonl", [{"text": "Trees fall <REF>.", "cited_ids": [1], "source": "s2orc"}])
    for name, out, said in [
        ("bad.jsonl", "out.jsonl", "line 1: input has no cited text"),
        ("good.jsonl", "good.jsonl", "is the file that is read"),
        ("contexts.jsonl", "out.jsonl", "line 1: input has no cited text"),
    ]:
        one_line(citerec_here("write", "batch", name, "--writer", "lead", "--out", out), 2, said)
    assert not (tmp_path / "out.jsonl").exists()
