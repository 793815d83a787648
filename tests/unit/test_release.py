import gzip
import hashlib
import importlib
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

BENCHMARKS = str(Path(__file__).parent.parent.parent / "benchmarks")
# Not as a package: another distribution already calls one of its own `benchmarks`.
sys.path.insert(0, BENCHMARKS)
try:
    release = importlib.import_module("release")
    rates_module = importlib.import_module("release_rates")
    true_intent = importlib.import_module("release_shapes").true_intent
    Words = importlib.import_module("release_words").Words
finally:
    sys.path.remove(BENCHMARKS)

PAPERS, TEXTS, SHARDS, SEED = 1200, 400, 3, 7
RATES = rates_module.Rates()
Read = dict[str, Any]


class Written:
    """A release, read back by hand."""

    def __init__(self, folder: Path, traps: Read) -> None:
        self.folder, self.traps = folder, traps
        self.truth = [orjson.loads(line) for line in (folder / "truth.jsonl").read_bytes().splitlines()]
        self.papers = {int(one["corpusid"]): one for one in self.good("papers")}
        self.first = {int(one["corpusid"]): one for one in self.good("s2orc")}
        self.second = {int(one["corpusid"]): one for one in self.good("s2orc_v2")}

    def lines(self, dataset: str) -> Iterator[bytes]:
        for path in sorted((self.folder / dataset).iterdir()):
            yield from gzip.decompress(path.read_bytes()).splitlines()

    def good(self, dataset: str) -> Iterator[Read]:
        key = "citingcorpusid" if dataset == "citations" else "corpusid"
        for line in self.lines(dataset):
            try:
                record = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            if not isinstance(record, dict) or record.get(key) is None:
                continue
            holder = record.get("content") or record.get("body") or {}
            if dataset.startswith("s2orc") and not holder.get("text"):
                continue
            yield record


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    out = tmp_path_factory.mktemp("release") / "out"
    done = release.write_release(out, papers=PAPERS, texts=TEXTS, shards=SHARDS, seed=SEED)
    assert done.contexts == done.traps["contexts"]
    return Written(out, done.traps)


def layer(annotations: Read, name: str) -> list[tuple[int, int, Read]] | None:
    value = annotations.get(name)
    value = orjson.loads(value) if isinstance(value, str) else value
    if value is None:
        return None
    return [(int(one["start"]), int(one["end"]), one.get("attributes") or {}) for one in value]


def digest(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def is_complete(paper: Read) -> bool:
    names = [author["name"] for author in paper["authors"] or [] if author["name"]]
    venue = paper["venue"] or (paper["journal"] or {}).get("name")
    return bool(names and venue and (paper["title"] or "").strip())


def near(count: int, of: int, rate: float) -> bool:
    """Whether a count of independent draws is within five standard deviations of what its rate says."""
    return abs(count - of * rate) <= 5 * (of * rate * (1 - rate)) ** 0.5 + 1


def test_the_same_arguments_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "other"):
        release.write_release(tmp_path / name, papers=200, texts=20, shards=2, seed=3)
    release.write_release(tmp_path / "third", papers=200, texts=20, shards=2, seed=4)
    assert digest(tmp_path / "one") == digest(tmp_path / "other")
    different = digest(tmp_path / "third")
    assert not set(digest(tmp_path / "one").values()) & set(different.values())


def test_the_number_of_shards_changes_no_truth(tmp_path: Path) -> None:
    for shards in (1, 4):
        release.write_release(tmp_path / str(shards), papers=200, texts=20, shards=shards, seed=3)
        assert len(list((tmp_path / str(shards) / "s2orc").iterdir())) == shards
    truths = [(tmp_path / str(shards) / "truth.jsonl").read_bytes() for shards in (1, 4)]
    assert truths[0] == truths[1]


def test_a_text_that_stands_twice_is_the_same_in_another_shard(written: Written) -> None:
    places: dict[int, list[tuple[int, Read]]] = {}
    for shard, path in enumerate(sorted((written.folder / "s2orc").iterdir())):
        for line in gzip.decompress(path.read_bytes()).splitlines():
            try:
                record = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            if isinstance(record, dict) and record.get("corpusid") and (record["content"] or {}).get("text"):
                places.setdefault(int(record["corpusid"]), []).append((shard, record))
    twice = [found for found in places.values() if len(found) > 1]
    assert len(twice) == written.traps["texts"]["doubled_text"] > 0
    for (early, one), (late, other) in twice:
        assert one == other
        assert early < late or early == late == SHARDS - 1


def test_the_truth_points_into_both_versions(written: Written) -> None:
    for line in written.truth:
        first, second = written.first[line["citing_id"]]["content"], written.second[line["citing_id"]]["body"]
        here = slice(line["start"], line["end"])
        assert first["text"][here] == second["text"][here] == line["marker"]
        assert line["text"].count("<REF>") == 1
        assert line["text"][-1] in ".?!"
        assert not re.match(r"[\d⁰¹²³⁴-⁹]", line["text"])
        assert line["text"] == " ".join(line["text"].split())


def test_the_truth_follows_from_the_annotations(written: Written) -> None:
    """Each line has one bib ref within its marker, which leads to a complete paper; no other bib ref lies beside it."""
    entries: dict[int, Read] = {}
    for number, record in written.first.items():
        listed = layer(record["content"]["annotations"], "bibentry") or []
        entries[number] = {one["id"]: one.get("matched_paper_id") for _, _, one in listed}
        assert all(record["content"]["text"][end - 1] == "." for _, end, _ in listed)
    narrow = 0
    for line in written.truth:
        record = written.first[line["citing_id"]]["content"]
        refs = layer(record["annotations"], "bibref") or []
        paragraph = next(one for one in layer(record["annotations"], "paragraph") or [] if inside(line, one))
        own = [one for one in refs if line["start"] <= one[0] < one[1] <= line["end"]]
        assert len(own) == 1
        assert own[0][1] == line["end"]
        assert paragraph[1] <= len(record["text"])
        narrow += own[0][0] > line["start"]
        cited = int(entries[line["citing_id"]][own[0][2]["ref_id"]])
        assert cited == line["cited_id"] != line["citing_id"]
        assert is_complete(written.papers[cited])
    in_text = written.traps["styles"]["author-year-text"]
    assert near(narrow, in_text, RATES.narrow)


def inside(line: Read, span: tuple[int, int, Read]) -> bool:
    return 0 <= span[0] <= line["start"] and line["end"] <= span[1]


def test_both_versions_say_the_same(written: Written) -> None:
    shapes: Counter[str] = Counter()
    for number, one in written.first.items():
        other = written.second[number]
        text, body, bibliography = one["content"]["text"], other["body"], other["bibliography"]
        assert text == body["text"] + bibliography["text"]
        first, second = one["content"]["annotations"], body["annotations"]
        assert all(value is None or isinstance(value, str) for value in first.values())
        for name in ("title", "abstract", "section_header", "paragraph", "bib_ref"):
            assert layer(first, name.replace("_", "")) == layer(second, name)
            shapes[type(second[name]).__name__] += 1
        entries, shifted = layer(bibliography["annotations"], "bib_entry"), layer(first, "bibentry")
        assert (entries is None) == (shifted is None)
        for (start, end, attributes), (start_1, end_1, attributes_1) in zip(entries or [], shifted or [], strict=True):
            assert bibliography["text"][start:end] == text[start_1:end_1]
            assert attributes == attributes_1
        assert "sentence" not in first
    assert set(shapes) == {"str", "list", "NoneType"}


def test_the_truths_intent_is_that_of_the_pairs_row(written: Written) -> None:
    rows: dict[tuple[int, int], Read] = {}
    for record in written.good("citations"):
        if record["citedcorpusid"] is not None:
            pair = int(record["citingcorpusid"]), int(record["citedcorpusid"])
            assert pair not in rows
            rows[pair] = record
    for line in written.truth:
        row = rows.get((line["citing_id"], line["cited_id"]))
        assert line["intent"] == (true_intent(row["intents"]) if row else None)
        if row and row["contexts"]:
            sentence = next(one for one in row["contexts"] if line["marker"] in one)
            assert sentence in written.first[line["citing_id"]]["content"]["text"]
            assert row["intents"] is None or row["intents"] == [] or isinstance(row["intents"][0], str | list | None)
    planted = written.traps["citations"]
    assert near(planted["cited_null"], planted["rows"], RATES.cited_null)
    assert planted["with_contexts"] < planted["rows"] / 2
    assert min(planted[f"intents_{form}"] for form in ("flat", "nested", "null")) > 0
