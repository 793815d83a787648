"""What parts were trained on, and contexts split by citing paper."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from citerec.contexts.provenance import (
    NOTHING,
    PARTS,
    PROVENANCE,
    Provenance,
    digests_of,
    provenance_of_part,
    read_provenance,
    split_contexts,
)
from citerec.contexts.read import read_contexts
from citerec.errors import InputError, ModelError
from citerec.records import Context, citing_name
from tests.conftest import write_lines

ONE = Context(text="Words were counted by <REF>.", context_id="one", citing_id="12")
OTHER = Context(text="Vectors are compared (<REF>).", context_id="other", citing_key="CorpusId:12")


def test_what_was_trained_on_is_known_again(tmp_path: Path) -> None:
    again = replace(ONE, context_id="again", citing_id=None, text="words  were counted by <REF>")
    assert set(digests_of(again)) < set(digests_of(ONE))
    for stranger in (replace(again, text="Words were <REF> counted by."), replace(OTHER, citing_key="CorpusId:13")):
        assert set(digests_of(stranger)).isdisjoint(digests_of(ONE))
    assert len(set(digests_of(ONE)) & set(digests_of(OTHER))) == 1  # one paper, by id and by key
    unsaid = Provenance(unsaid=("old",))
    provenance = Provenance.of([ONE], [replace(OTHER, citing_key="B")]) | unsaid | unsaid
    assert (len(provenance.trained_on), len(provenance.tuned_on), provenance.unsaid) == (2, 2, ("old",))
    assert provenance_of_part(tmp_path) == provenance_of_part("allenai/scibert") == NOTHING  # made elsewhere
    (tmp_path / "manifest.json").write_text("{}")
    assert provenance_of_part(tmp_path).unsaid == (tmp_path.name,)
    assert read_provenance(tmp_path / "fusion.provenance.json", "fusion").unsaid == ("fusion",)
    provenance.write(tmp_path / PROVENANCE)
    assert provenance_of_part(tmp_path) == provenance
    assert "counted" not in (tmp_path / PROVENANCE).read_text()
    for text in ("", "[]", "{}", '{"kind": "citerec-provenance", "version": 2}', '{"kind": 1, "version": 1}'):
        (tmp_path / PROVENANCE).write_text(text)
        with pytest.raises(ModelError, match="is broken"):
            read_provenance(tmp_path / PROVENANCE, "part")


def record(number: int, **fields: Any) -> dict[str, Any]:
    return {"context_id": f"c{number}", "text": f"Sentence {number} <REF>.", "cited_ids": [1], "mine": "é", **fields}


def lines_of(folder: Path) -> dict[str, list[bytes]]:
    found = {part: folder / f"{part}.jsonl" for part in PARTS}
    return {part: file.read_bytes().splitlines() for part, file in found.items() if file.exists()}


# S2AG's papers stand in sets as keys: the same paper by another name.
citing = st.integers(1, 12).flatmap(
    lambda n: st.sampled_from([{"citing_id": n}, {"citing_key": f"CorpusId:{n}"}, {"citing_key": f"Paper {n}"}, {}])
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
        assert "would be empty" in str(error) and not (folder / "out").exists()
        return
    lines = lines_of(folder / "out")
    assert sorted(line for part in lines.values() for line in part) == sorted(file.read_bytes().splitlines())
    papers = []
    for part in lines:
        contexts = read_contexts(folder / "out" / f"{part}.jsonl")
        papers.append({citing_name(one.citing_id, one.citing_key) or one.text for one in contexts})
    assert sum(map(len, papers)) == len(set().union(*papers))
    for part, wanted in (("dev", dev), ("test", test)):
        assert counts[part].contexts == len(lines.get(part, ()))
        assert wanted < 1 or counts[part].contexts >= wanted


def test_the_seed_decides_and_neither_order_nor_form(tmp_path: Path) -> None:
    def split(file: Path, seed: int = 0) -> dict[str, list[bytes]]:
        counts = split_contexts(file, tmp_path / "out", dev=0.2, test=30, seed=seed)  # in place of what stands there
        assert (counts["dev"].citing_papers, counts["test"].contexts, counts["train"].contexts) == (6, 30, 42)
        return {part: sorted(lines) for part, lines in lines_of(tmp_path / "out").items()}

    records = [record(number, citing_id=number // 3) for number in range(90)]
    one, windows = write_lines(tmp_path / "one", records), tmp_path / "windows"
    windows.write_bytes(one.read_bytes().replace(b"\n", b"\r\n\r\n"))
    zipped = write_lines(tmp_path / "zipped.gz", records[::-1], compress=True)
    assert split(one) == split(windows) == split(zipped) != split(one, seed=1)
