"""Contexts of many full texts: shards of S2ORC to one file of JSON Lines, in several processes, resumable by shard."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from citerec.contexts.extract import Rules, Tally, extract_contexts
from citerec.contexts.repeats import full_texts, run_over_texts
from citerec.contexts.s2orc import find_texts
from citerec.contexts.split import splitter, splitter_identity
from citerec.contexts.write import as_record
from citerec.corpus.json_lines import (
    QUARANTINE,
    quarantine_of,
    reading_lines,
    writing_lines,
    writing_records,
)
from citerec.errors import InputError
from citerec.files.addresses import is_address
from citerec.files.parallel import Parallelism
from citerec.files.resume import Step
from citerec.files.writing import alone, beside, write_failures


@dataclass(frozen=True, slots=True)
class Extracted:
    """Counts of an extraction, and its quarantine.

    Attributes:
        sentences: Citing sentences, in paragraphs that cite a matched paper.
        outcomes: The outcomes of these sentences; without `single`, of the citations in them.
        bad: Lines that are not a full text.
        faults: Annotations that did not fit their text.
        quarantine: The file that lists bad lines and faults; None if there are none.
    """

    texts: int
    contexts: int
    sentences: int
    outcomes: dict[str, int]
    bad: int
    faults: int
    quarantine: Path | None


def extract_shards(
    sources: Sequence[Path],
    out: Path,
    rules: Rules,
    *,
    work: Path | None = None,
    max_bad: float = 0.05,
    workers: Parallelism = None,
    on_progress: Callable[[float, float], None] = lambda _done, _whole: None,
) -> Extracted:
    """Writes the contexts of all full texts of some shards. An interrupted run is resumed by the next call.

    The result of each shard is kept in `work`, so a second run repeats nothing. All of these can be at addresses.

    Args:
        sources: Folders of S2ORC shards, or shards; v1 or v2.
        out: The file to write, JSON Lines.
        rules: Which sentences make contexts.
        work: Where the results of shards are kept; by default in `.OUT.work` beside the file.
        max_bad: Share of bad texts above which nothing is written.
        workers: Processes, by default one for each processor; or Ray.
        on_progress: Called with the bytes of shards done, and the bytes of all.

    Raises:
        InputError: A source is missing, or `out` is a folder.
        BuildError: Too many texts are bad, or the disk is full.
    """
    if out.is_dir():
        raise InputError(f"{out} is a folder", "Give a file: --out contexts.jsonl")
    splitter(rules.split)  # a missing model is an error before any work
    shards = find_texts(sources)
    if out.exists() and any(_is_same(out, shard) for shard in shards):
        raise InputError(f"{out} is one of the sources", "Give another --out.")
    work = work or beside(out, "work")
    with alone(work / "lock", f"another process is writing {out}"), write_failures(out):
        parameters = {"single": rules.single, "split": rules.split, "split_is": splitter_identity(rules.split)}
        made = run_over_texts(
            work, shards, _EXTRACT, parameters, max_bad=max_bad, workers=workers, on_progress=on_progress
        )
        with writing_records(out) as (write, set_aside):
            for result in made.results:
                for line in reading_lines(result.path):
                    (set_aside if line.startswith(QUARANTINE) else write)(line.removeprefix(QUARANTINE))
    return Extracted(
        **{name: made.counts[name] for name in ("texts", "contexts", "sentences", "bad", "faults")},
        outcomes=dict(made.outcomes.most_common()),
        quarantine=quarantine if (quarantine := quarantine_of(out)).exists() else None,
    )


def _is_same(one: Path, other: Path) -> bool:
    return one == other or (not (is_address(one) or is_address(other)) and one.samefile(other))


def _extract(shard: Path, out: Path, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    rules, tally = Rules(single=parameters["single"], split=parameters["split"]), Tally()
    counts = Counter[str]()
    with writing_lines(out) as write:
        for text in full_texts(shard, parameters, counts, write):
            for context in extract_contexts(text, rules, tally=tally):
                write(orjson.dumps(as_record(context)))
    return {**counts, **tally.as_counts()}


_EXTRACT = Step(_extract, version=2)
