"""The second pass over the full texts: usable sentences that cite drawn papers, measured by spaCy."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import orjson

from citerec.contexts.extract import Rules, Tally, extract_contexts
from citerec.contexts.read import read_contexts
from citerec.contexts.repeats import lost_lines
from citerec.contexts.s2orc import FullText, read_s2orc
from citerec.contexts.usable import Outcome, outcome_of_context
from citerec.contexts.write import as_record
from citerec.corpus.result_lines import Write, reading_lines, writing_lines
from citerec.diagnostics.build.survey import drawn_papers
from citerec.diagnostics.sentences import read_sentences
from citerec.files.resume import Step
from citerec.records import Context

TEXT = b"\x01"
"""Begins a line of a result that describes a text, not a context."""
_PART = 500


def extract_texts(shard: Path, out: Path, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Writes the contexts of a shard of S2ORC that cite drawn papers, and the paragraphs that contain them."""
    drawn = drawn_papers(parameters["drawn"])
    rules = Rules(single=parameters["single"], split=parameters["split"])
    tally = Tally()

    def contexts() -> Iterator[Context]:
        lost = lost_lines(parameters["repeated"], shard)
        for line in read_s2orc(shard):
            if line.number in lost:
                continue
            if isinstance(line.record, FullText) and not drawn.isdisjoint(line.record.cited_ids()):
                yield from extract_contexts(line.record, rules, is_wanted=drawn.__contains__, tally=tally)
                found.append(orjson.dumps(_text_of(line.record, drawn)))

    found: list[bytes] = []
    with writing_lines(out) as write:
        _write(contexts(), found, write, drawn, parameters["model"])
    return tally.as_counts()


def extract_given(shard: Path, out: Path, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same for a file of contexts: those whose sentence is usable."""
    drawn = drawn_papers(parameters["drawn"])
    tally = Tally()

    def contexts() -> Iterator[Context]:
        for given in read_contexts(shard, cited=True):
            # A paper is never recommended to itself.
            context = replace(given, cited_ids=tuple(paper for paper in given.cited_ids if paper != given.citing_id))
            if drawn.isdisjoint(context.cited_ids):
                continue
            tally.sentences += 1
            outcome = outcome_of_context(context, single=parameters["single"])
            tally.outcomes[outcome.value] += 1
            if outcome is Outcome.USABLE:
                tally.contexts += 1
                yield context

    with writing_lines(out) as write:
        _write(contexts(), [], write, drawn, parameters["model"])
    return tally.as_counts()


EXTRACT_TEXTS, EXTRACT_GIVEN = Step(extract_texts, version=2), Step(extract_given, version=2)


def measured(path: Path) -> Iterator[dict[str, Any]]:
    """The contexts of a result: `context`, `sentence` and the drawn paper `cited_id` that it was extracted for."""
    yield from (orjson.loads(line) for line in reading_lines(path) if not line.startswith(TEXT))


def texts(path: Path) -> Iterator[dict[str, Any]]:
    """The texts of a result, with the paragraphs that cite drawn papers."""
    yield from (orjson.loads(line[len(TEXT) :]) for line in reading_lines(path) if line.startswith(TEXT))


def _write(
    contexts: Iterable[Context], found: list[bytes], write: Write, drawn: frozenset[str], model: str | None
) -> None:
    remaining, last = iter(contexts), False
    while not last:
        part = list(itertools.islice(remaining, _PART))
        last = len(part) < _PART
        for context, sentence in zip(part, read_sentences(part, model), strict=True):
            measured = {"context": as_record(context), "sentence": asdict(sentence)}
            for paper_id in context.cited_ids:
                if paper_id in drawn:  # a group stands for each of its papers, in whatever round they are drawn
                    own = context.context_id if len(context.cited_ids) == 1 else f"{context.context_id}/{paper_id}"
                    write(orjson.dumps({"id": own, "cited_id": paper_id, **measured}))
        for text in found:
            write(TEXT + text)
        found.clear()


def _text_of(text: FullText, drawn: frozenset[str]) -> dict[str, Any]:
    wanted = {entry_id for entry_id, entry in text.bib_entries.items() if entry.paper_id in drawn}
    places = [ref.start for ref in text.bib_refs if ref.entry_id in wanted]
    paragraphs = [
        {"start": paragraph.start, "section": paragraph.section, "text": text.text[paragraph.start : paragraph.end]}
        for paragraph in text.paragraphs
        if any(paragraph.start <= place < paragraph.end for place in places)
    ]
    return {"id": text.paper_id, "paragraphs": paragraphs}
