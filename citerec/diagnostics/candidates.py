"""Candidates of a build: what is read of shards, the usable sentences that cite drawn papers.

Each job reads one shard and writes one file of lines, so that many run side by side and none is done twice.
"""

import functools
import heapq
import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import orjson

from citerec.contexts.extract import Rules, Tally, extract_contexts
from citerec.contexts.read import read_contexts
from citerec.contexts.repeats import full_texts
from citerec.contexts.usable import OUTCOMES, Outcome, outcome_of_context
from citerec.contexts.write import as_record
from citerec.corpus.base import FORMATS
from citerec.corpus.json_lines import QUARANTINE, BadRecord, quarantine_line, reading_lines, writing_lines
from citerec.diagnostics.sentences import read_sentences
from citerec.files.addresses import path_of
from citerec.files.parts import in_parts
from citerec.files.resume import Result, Step
from citerec.records import Citation, Context

_PART = 500


def _survey(shard: Path, out: Path, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Writes the bad records of a shard of S2ORC, and the papers that its texts cite, in order."""
    counts, cited = Counter[str](), set[str]()
    with writing_lines(out) as write:
        for text in full_texts(shard, parameters, counts, write):
            cited |= text.cited_ids()
        for paper_id in sorted(cited):
            write(paper_id.encode())
    return {**counts, OUTCOMES: {}}


def _read_citations(shard: Path, out: Path, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Writes `[citing, cited, intents]` of the drawn papers of a shard of S2AG's `citations`, and the bad records."""
    drawn, counts = drawn_papers(parameters["drawn"]), Counter(citations=0, bad=0)
    with writing_lines(out) as write:
        for line in FORMATS["s2ag-citations"].read(shard):
            if isinstance(line.record, BadRecord):
                counts["bad"] += 1
                write(QUARANTINE + quarantine_line(shard.name, line.number, line.record))
            elif isinstance(line.record, Citation):
                counts["citations"] += 1
                if line.record.cited_id in drawn:
                    intents = sorted(set(itertools.chain.from_iterable(line.record.intents)))
                    write(orjson.dumps([line.record.citing_id, line.record.cited_id, intents]))
    return counts


def _extract(shard: Path, out: Path, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Writes the usable sentences of a shard of S2ORC that cite drawn papers, and the bad records."""
    drawn, counts, tally = drawn_papers(parameters["drawn"]), Counter[str](), Tally()
    rules = Rules(single=parameters["single"], split=parameters["split"])
    with writing_lines(out) as write:
        contexts = (
            context
            for text in full_texts(shard, parameters, counts, write)
            if not drawn.isdisjoint(text.cited_ids())
            for context in extract_contexts(text, rules, is_wanted=drawn.__contains__, tally=tally)
        )
        for row in measured(contexts, drawn, parameters["model"]):
            write(orjson.dumps(row))
    return {**tally.as_counts(), **counts, "citing_texts": tally.texts}


SURVEY, CITATIONS, EXTRACT = Step(_survey, version=1), Step(_read_citations, version=1), Step(_extract, version=1)


@functools.cache
def drawn_papers(path: str) -> frozenset[str]:
    """The ids in a file of drawn papers; read once a process."""
    return frozenset(line.decode() for line in reading_lines(path_of(path)))


def usable_contexts(path: Path, drawn: Collection[str], tally: Tally, *, single: bool) -> Iterator[Context]:
    """The contexts of a file that cite drawn papers and whose sentence is usable; they are counted."""
    for given in read_contexts(path, cited=True):
        # A paper is never recommended to itself.
        context = replace(given, cited_ids=tuple(one for one in given.cited_ids if one != given.citing_id))
        if any(paper_id in drawn for paper_id in context.cited_ids):
            tally.sentences += 1
            outcome = outcome_of_context(context, single=single)
            tally.outcomes[outcome.value] += 1
            if outcome is Outcome.USABLE:
                yield context


Measured = tuple[str, str, tuple[Any, ...], dict[str, Any]]
"""The id of a sentence, a drawn paper that it cites, its numbers (`Sentence`), and its context as JSON."""


def measured(contexts: Iterable[Context], drawn: Collection[str], model: str | None) -> Iterator[Measured]:
    """The contexts, measured by spaCy, once for each drawn paper that they cite."""
    for part in in_parts(contexts, _PART):
        for context, sentence in zip(part, read_sentences(part, model), strict=True):
            for paper_id in context.cited_ids:
                if paper_id in drawn:
                    own = context.context_id if len(context.cited_ids) == 1 else f"{context.context_id}/{paper_id}"
                    yield own, paper_id, astuple(sentence), as_record(context)


def _good_lines(result: Result) -> Iterator[bytes]:
    """The lines of a result without the bad records."""
    return (line for line in reading_lines(result.path) if not line.startswith(QUARANTINE))


def rows_of(results: Iterable[Result]) -> Iterator[Any]:
    """The lines of results, read as JSON."""
    return map(orjson.loads, itertools.chain.from_iterable(map(_good_lines, results)))


def cited_papers(surveyed: Sequence[Result]) -> Iterator[str]:
    """The papers that any text cites, in order of id; memory stays constant."""
    return (paper_id.decode() for paper_id, _ in itertools.groupby(heapq.merge(*map(_good_lines, surveyed))))
