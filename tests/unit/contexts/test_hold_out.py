"""Contexts in three parts: no citing paper in two of them, no line lost or changed, the same parts each time."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from citerec.contexts.provenance import PARTS, split_contexts
from citerec.contexts.read import read_contexts
from citerec.errors import InputError, SourceError
from citerec.records import citing_name
from tests.conftest import DEMO, Citerec, write_lines


def record(number: int, **fields: Any) -> dict[str, Any]:
    return {"context_id": f"c{number}", "text": f"Sentence {number} <REF>.", "cited_ids": [1], "mine": "é", **fields}


def lines_of(folder: Path) -> dict[str, list[bytes]]:
    found = {part: folder / f"{part}.jsonl" for part in PARTS}
    return {part: file.read_bytes().splitlines() for part, file in found.items() if file.exists()}


citing = st.one_of(
    st.builds(lambda number: {"citing_id": number}, st.integers(1, 12)),
    # S2AG's papers stand in sets as keys: the same paper by another name.
    st.builds(lambda number: {"citing_key": f"CorpusId:{number}"}, st.integers(1, 12)),
    st.builds(lambda name: {"citing_key": f"Paper {name}"}, st.integers(1, 5)),
    st.just({}),
)
size = st.one_of(st.floats(0, 0.49), st.integers(1, 8))  # two shares leave some for train


@given(st.lists(citing, min_size=5, max_size=40), size, size, st.integers(0, 3))
def test_no_citing_paper_is_on_two_sides(
    tmp_path_factory: pytest.TempPathFactory, names: list[dict[str, Any]], dev: float, test: float, seed: int
) -> None:
    folder = tmp_path_factory.mktemp("split")
    file = write_lines(folder / "contexts.jsonl", [record(number, **name) for number, name in enumerate(names)])
    try:
        counts = split_contexts(file, folder / "out", dev=dev, test=test, seed=seed)
    except InputError as error:
        assert "would be empty" in str(error)
        assert not (folder / "out").exists()
        return
    lines = lines_of(folder / "out")
    assert sorted(line for part in lines.values() for line in part) == sorted(file.read_bytes().splitlines())
    papers = [
        {
            citing_name(context.citing_id, context.citing_key) or context.text
            for context in read_contexts(folder / "out" / f"{part}.jsonl")
        }
        for part in lines
    ]
    assert sum(map(len, papers)) == len(set().union(*papers))
    for part, wanted in (("dev", dev), ("test", test)):
        assert counts[part].contexts == len(lines.get(part, ()))
        assert wanted < 1 or counts[part].contexts >= wanted


def test_the_seed_decides_and_not_the_order(tmp_path: Path) -> None:
    records = [record(number, citing_id=number // 3) for number in range(90)]
    one, other = (write_lines(tmp_path / name, part) for name, part in (("a", records), ("b", records[::-1])))
    counts = split_contexts(one, tmp_path / "one", dev=0.2, test=30)
    assert (counts["dev"].citing_papers, counts["test"].contexts, counts["train"].contexts) == (6, 30, 42)
    split_contexts(other, tmp_path / "other", dev=0.2, test=30)
    assert lines_of(tmp_path / "other") == {part: lines[::-1] for part, lines in lines_of(tmp_path / "one").items()}
    split_contexts(one, tmp_path / "one", dev=0.2, test=30, seed=1)  # in place of the split that stands there
    assert lines_of(tmp_path / "other")["test"] != lines_of(tmp_path / "one")["test"][::-1]


def test_a_compressed_file_and_lines_of_windows(tmp_path: Path) -> None:
    records = [record(number, citing_id=number) for number in range(30)]
    plain, windows = write_lines(tmp_path / "plain.jsonl", records), tmp_path / "windows.jsonl"
    windows.write_bytes(plain.read_bytes().replace(b"\n", b"\r\n\r\n"))
    compressed = write_lines(tmp_path / "contexts.jsonl.gz", records, compress=True)
    for file in (plain, windows, compressed):
        split_contexts(file, tmp_path / file.name.partition(".")[0])
    assert lines_of(tmp_path / "plain") == lines_of(tmp_path / "windows") == lines_of(tmp_path / "contexts")


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "contexts.jsonl", [record(number, citing_id=1) for number in range(9)])
    with pytest.raises(InputError, match="too few citing papers"):
        split_contexts(file, tmp_path / "out")
    with pytest.raises(InputError, match=r"neither a share such as 0.1 nor a number"):
        split_contexts(file, tmp_path / "out", dev=1.5)
    with pytest.raises(SourceError):
        split_contexts(tmp_path / "none.jsonl", tmp_path / "out")
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("Dear")
    with pytest.raises(InputError, match="letters"):
        split_contexts(file, tmp_path / "letters")
    write_lines(file, [record(1, citing_id=1), {"text": "no marker"}])
    with pytest.raises(InputError, match="line 2"):
        split_contexts(file, tmp_path / "out", dev=0, test=0)
    assert not (tmp_path / "out").exists()


def test_from_outside(citerec_here: Citerec, tmp_path: Path) -> None:
    command = ("contexts", "split", DEMO / "contexts.jsonl", "--dev")
    done = citerec_here(*command, "100", "--test", "0.2", "--out", "split")
    assert done.returncode == 0, done.stderr
    assert "split/train.jsonl       404" in done.stdout
    assert json.loads((tmp_path / "split" / "manifest.json").read_text())["parts"]["test"]["contexts"] == 126
    refused = citerec_here(*command, "1.5", "--out", "other")
    assert refused.returncode == 2 and "neither a share such as 0.1 nor a number" in refused.stderr
