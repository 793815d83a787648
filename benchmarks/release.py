"""Writes a synthetic S2AG and S2ORC release, with every known trap at a known rate and the truth beside it.

    python benchmarks/release.py --papers 20000 --out DIR [--texts N] [--shards N] [--seed N]

Made-up words in real shapes: `papers/`, `abstracts/`, `citations/`, `s2orc/` (v1), `s2orc_v2/` (the same texts), each
in gzip shards; `truth.jsonl`, one line a usable context; `traps.json`, how many of each trap were planted. The same
arguments give the same bytes. Memory grows by some 50 bytes a paper, not with the texts.

A context is usable, and has its line of truth, if its sentence ends in . ? or !, does not begin with a footnote's
digit, and holds exactly one citation, to one paper, in a regular style; if the bibliography has the entry and it names
a paper; and if `papers` has that paper with authors, title and venue (a journal's name is a venue). Field, year and
number of citations of the cited paper do not matter, nor whether the citing paper is in `papers`.

A line of truth: citing_id, cited_id; text (the sentence with <REF>: `release_sentences.marked` has the rule), before
and after (the neighbours in the paragraph as they stand, "" where there is none); section (the nearest header above,
null if there is none or the layer is null); marker (the citation's text); style; intent (`release_shapes.true_intent`
has the rule; null as well where the pair has no row or its row no contexts); start, end (of the marker, in the text of
either version).
"""

import argparse
import gzip
import io
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, BinaryIO, Self, cast

import orjson
from release_papers import Papers
from release_rates import Rates
from release_shapes import Rows, Shapes, abstract_record
from release_text import PLANTED, Text, Texts
from release_words import Words

DATASETS = ("papers", "abstracts", "citations", "s2orc", "s2orc_v2")
_BAD = ("broken_json", "no_id", "array")
_FIRST_UNUSED_ID = 900_000_000


@dataclass(frozen=True, slots=True)
class Release:
    """What was written.

    Attributes:
        folder: Where it lies.
        contexts: How many lines `truth.jsonl` has.
        traps: What `traps.json` holds.
    """

    folder: Path
    contexts: int
    traps: dict[str, Any]


class Shards:
    """The shards of one dataset, with bad lines among them.

    Args:
        folder: The release.
        dataset: Its name.
        shards: How many there are.
        units: How many units of work are told of by `turn`; each shard gets an equal part of them.
        key: The field that names the record.
        rate: Share of bad lines.
    """

    def __init__(self, folder: Path, dataset: str, shards: int, units: int, key: str, rate: float) -> None:
        self._folder, self._dataset, self._shards, self._units, self._key = (
            folder / dataset,
            dataset,
            shards,
            units,
            key,
        )
        self._folder.mkdir(parents=True)
        # What is bad in a record depends on its shape: only full texts can lack a text.
        self._kinds = (*_BAD, "content_null", "text_null") if dataset.startswith("s2orc") else _BAD
        self._every = max(1, round(1 / rate)) if rate else 0
        self._stack = ExitStack()
        self._file: BinaryIO | None = None
        self._last: dict[str, Any] | None = None
        self.shard = -1
        self.records = 0
        self.bad: Counter[str] = Counter()

    def __enter__(self) -> Self:
        self.turn(0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            for shard in range(self.shard + 1, self._shards):
                self._open(shard)
            if self._every and self._last is not None:
                for name in self._kinds:
                    if not self.bad[name]:
                        self._write_bad(name, self._last)
        self._stack.close()

    def turn(self, unit: int) -> bool:
        """Goes on to the shard of that unit; whether it is another than before."""
        before = self.shard
        while self.shard < min(unit * self._shards // max(self._units, 1), self._shards - 1):
            self._open(self.shard + 1)
        return self.shard != before

    def write(self, record: dict[str, Any]) -> None:
        """Writes a record, and a bad one now and then."""
        self._line(orjson.dumps(record))
        self.records += 1
        self._last = record
        if self._every and self.records % self._every == 0:
            self._write_bad(self._kinds[self.bad.total() % len(self._kinds)], record)

    def _open(self, shard: int) -> None:
        self._stack.close()
        self.shard = shard
        path = self._folder / f"{self._dataset}-{shard:05d}.jsonl.gz"
        raw = self._stack.enter_context(path.open("wb"))
        # No name and no time in the header: the same release is the same bytes. Level 4 halves the time of 6.
        packed = self._stack.enter_context(gzip.GzipFile("", "wb", 4, raw, mtime=0))
        self._file = self._stack.enter_context(io.BufferedWriter(cast("Any", packed), 1 << 18))

    def _line(self, line: bytes) -> None:
        assert self._file
        self._file.write(line)
        self._file.write(b"\n")

    def _write_bad(self, kind: str, record: dict[str, Any]) -> None:
        """A bad line made of a good record, so that what it holds must not be taken a second time."""
        unused = {**record, self._key: _FIRST_UNUSED_ID + self.bad.total()}
        holder = "content" if "content" in record else "body"
        line = orjson.dumps(record)
        if kind == "broken_json":
            line = line[: len(line) // 2]
        elif kind == "no_id":
            nameless = {key: value for key, value in record.items() if key != self._key}
            # Missing and null in turns.
            line = orjson.dumps(nameless if self.bad[kind] % 2 == 0 else {self._key: None, **nameless})
        elif kind == "array":
            line = orjson.dumps([record[self._key]])
        elif kind == "content_null":
            line = orjson.dumps({**unused, holder: None})
        elif kind == "text_null":
            line = orjson.dumps({**unused, holder: {**record[holder], "text": None}})
        self.bad[kind] += 1
        self._line(line)


def write_release(
    out: Path, *, papers: int, texts: int | None = None, shards: int = 2, seed: int = 7, rates: Rates | None = None
) -> Release:
    """Writes a release into a folder that is not there or empty.

    Args:
        out: The folder.
        papers: How many papers, 200 at least.
        texts: How many of them (or of papers beside them) have a full text; three in ten if not given.
        shards: How many files each dataset has.
        seed: Another seed, another release.
        rates: How often each trap occurs.

    Raises:
        ValueError: The numbers do not fit together, or the folder holds something.
    """
    rates = rates or Rates()
    texts = papers * 3 // 10 if texts is None else texts
    if shards < 1:
        raise ValueError(f"{shards} shards: one at least")
    if out.exists() and any(out.iterdir()):
        raise ValueError(f"{out} is not empty")
    words = Words(seed)
    listed = Papers(words, rates, papers=papers, texts=texts, seed=seed)
    out.mkdir(parents=True, exist_ok=True)
    writer = _Writer(out, words, listed, rates, shards=shards, seed=seed)
    traps: dict[str, Any] = {
        "arguments": {"papers": papers, "texts": texts, "shards": shards, "seed": seed},
        "papers": writer.papers(),
        "abstracts": writer.abstracts(),
        **writer.texts_and_citations(),
        "bad_records": writer.bad,
        "rates": asdict(rates),
    }
    (out / "traps.json").write_bytes(orjson.dumps(traps, option=orjson.OPT_INDENT_2) + b"\n")
    return Release(out, traps["contexts"], traps)


class _Writer:
    """Writes one release, dataset by dataset; full texts and citations in one go."""

    def __init__(self, out: Path, words: Words, papers: Papers, rates: Rates, *, shards: int, seed: int) -> None:
        self._out, self._words, self._papers, self._rates, self._shards, self._seed = (
            out, words, papers, rates, shards, seed
        )  # fmt: skip
        self.bad: dict[str, dict[str, int]] = {}

    def _dataset(self, name: str, units: int, key: str = "corpusid") -> Shards:
        return Shards(self._out, name, self._shards, units, key, self._rates.bad_record)

    def papers(self) -> dict[str, int]:
        as_strings = 0
        with self._dataset("papers", self._papers.listed) as shards:
            for row in range(self._papers.listed):
                shards.turn(row)
                record, as_string = self._papers.record(row)
                as_strings += as_string
                shards.write(record)
        self.bad["papers"] = dict(shards.bad)
        return {"records": shards.records, "ids_as_strings": as_strings, **self._papers.counts()}

    def abstracts(self) -> dict[str, int]:
        random, planted = Random(f"{self._seed}/abstracts"), Counter[str]()
        with self._dataset("abstracts", self._papers.listed) as shards:
            for row in range(self._papers.listed):
                shards.turn(row)
                if random.random() >= self._rates.abstract:
                    continue
                record = abstract_record(self._papers, row)
                if random.random() < 0.01:
                    record["abstract"] = None
                    planted["null"] += 1
                shards.write(record)
                if random.random() < self._rates.abstract_doubled_record:
                    shards.write(record)
                    planted["doubled"] += 1
        self.bad["abstracts"] = dict(shards.bad)
        return {"records": shards.records, **planted}

    def texts_and_citations(self) -> dict[str, Any]:
        papers, count = self._papers, len(self._papers.text_rows)
        texts = Texts(self._words, papers, self._rates, self._seed)
        shapes, rows = Shapes(papers, self._rates, self._seed), Rows(self._words, papers, self._rates, self._seed)
        planted: dict[str, Counter[str]] = {name: Counter() for name in PLANTED}
        flags, doubled, contexts = Counter[str](), list[int](), 0
        without_text = sorted(set(range(papers.listed)) - set(papers.text_rows.tolist()))
        with (
            self._dataset("s2orc", count) as first, self._dataset("s2orc_v2", count) as second,
            self._dataset("citations", count + len(without_text), "citingcorpusid") as citations,
            (self._out / "truth.jsonl").open("wb") as truth,
        ):  # fmt: skip

            def write(text: Text) -> None:
                first.write(shapes.version_1(text))
                second.write(shapes.version_2(text))

            for number in range(count):
                citations.turn(number)
                early = len(doubled)
                if first.turn(number) and number:
                    # The second copy comes a shard later, composed anew: nothing is kept in memory.
                    for again in doubled[flags["doubled_written"] : early]:
                        write(texts.compose(again))
                    flags["doubled_written"] = early
                second.turn(number)
                text = texts.compose(number)
                write(text)
                records, intents = rows.of_text(text)
                for record in records:
                    citations.write(record)
                truth.writelines(self._truth(text, intents))
                contexts += len(text.contexts)
                flags.update(text.flags)
                flags.update(self._sizes(text))
                for name, counter in text.planted.items():
                    planted[name].update(counter)
                if "doubled_text" in text.flags:
                    doubled.append(number)
            for again in doubled[flags["doubled_written"] :]:
                write(texts.compose(again))
            for at, row in enumerate(without_text, count):
                citations.turn(at)
                for record in rows.of_paper(row):
                    citations.write(record)
        for name, shards in (("citations", citations), ("s2orc", first), ("s2orc_v2", second)):
            self.bad[name] = dict(shards.bad)
        del flags["doubled_written"]
        return {
            "contexts": contexts,
            "texts": {"records": first.records, **dict(sorted(flags.items()))},
            **{name: dict(sorted(counter.items())) for name, counter in planted.items()},
            "citations": dict(rows.planted),
        }

    def _truth(self, text: Text, intents: dict[int, str | None]) -> Iterable[bytes]:
        citing = int(self._papers.ids[text.row])
        for row, line in text.contexts:
            where = {key: line.pop(key) for key in ("start", "end")}
            ids = {"citing_id": citing, "cited_id": int(self._papers.ids[row])}
            yield orjson.dumps({**ids, **line, "intent": intents.get(row), **where}) + b"\n"

    def _sizes(self, text: Text) -> dict[str, int]:
        return {
            "not_in_papers": int(text.row >= self._papers.listed),
            "paragraphs": len(text.layers["paragraph"] or ()),
            "bib_refs": len(text.layers["bib_ref"] or ()),
            "bib_entries": len(text.entries),
            "matched_entries": sum(entry.status != "unmatched" for entry in text.entries),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a synthetic S2AG and S2ORC release.")
    parser.add_argument("--papers", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--texts", type=int, help="full texts; three for ten papers if not given")
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    try:
        release = write_release(given.out, papers=given.papers, texts=given.texts, shards=given.shards, seed=given.seed)
    except ValueError as error:
        parser.error(str(error))
    texts = release.traps["arguments"]["texts"]
    print(f"{given.papers:,} papers, {texts:,} texts, {release.contexts:,} usable contexts: {release.folder}")


if __name__ == "__main__":
    main()
