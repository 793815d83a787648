"""Contexts of many full texts: shards of S2ORC to one file of JSON Lines, in several processes, resumable by shard."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from citerec.contexts.extract import Rules, Tally, extract_contexts
from citerec.contexts.repeats import list_texts, lost_lines, repeated, write_repeated
from citerec.contexts.s2orc import find_texts, read_s2orc
from citerec.contexts.split import splitter, splitter_identity
from citerec.contexts.write import as_record
from citerec.corpus.json_lines import BadRecord, bad_record
from citerec.corpus.result_lines import QUARANTINE, quarantine_line, reading_lines, writing_lines
from citerec.corpus.shard_work import alone_in, run_stage
from citerec.errors import BuildError, InputError


@dataclass(frozen=True, slots=True)
class Extracted:
    """What extraction gave.

    Attributes:
        texts: Full texts read.
        contexts: Contexts written.
        sentences: Sentences seen that cite, in paragraphs that cite a matched paper.
        fates: What became of them; without `single`, of the citations in them.
        bad: Lines that are no full text.
        faults: Annotations that did not fit their text.
        quarantine: Where these two are listed; None where there are none.
    """

    texts: int
    contexts: int
    sentences: int
    fates: dict[str, int]
    bad: int
    faults: int
    quarantine: Path | None


def extract_shards(
    sources: Sequence[Path],
    out: Path,
    rules: Rules,
    *,
    max_bad: float = 0.05,
    workers: int | None = None,
    on_progress: Callable[[float, float], None] = lambda _done, _whole: None,
) -> Extracted:
    """Writes the contexts of all full texts of some shards. What was stopped goes on where it stopped.

    Each shard's result is kept in `.OUT.work` beside the file: a second run redoes nothing.

    Args:
        sources: Folders of S2ORC shards, or shards; v1 or v2.
        out: The file to write, JSON Lines.
        rules: Which sentences make contexts.
        max_bad: Share of bad texts above which nothing is written.
        workers: Processes; None for one a processor.
        on_progress: Called with the bytes of shards done, and the bytes of all.

    Raises:
        InputError: A source is missing, or `out` is a folder.
        BuildError: Too many texts are bad, or the disk is full.
    """
    if out.is_dir():
        raise InputError(f"{out} is a folder", "Give a file: --out contexts.jsonl")
    splitter(rules.split)  # a model that is not there is told before any work
    shards = find_texts(sources)
    if out.exists() and any(out.samefile(shard) for shard in shards):
        raise InputError(f"{out} is one of the sources", "Give another --out.")
    work = out.parent / f".{out.name}.work"
    with alone_in(work, f"another process is writing {out}"):
        try:
            listed = run_stage(work, shards, list_texts, {}, workers=workers, on_progress=lambda *_: on_progress(0, 1))
            parameters = {
                "single": rules.single,
                "split": rules.split,
                "split_is": splitter_identity(rules.split),
                "repeated": str(write_repeated(repeated(listed), work)),
            }
            results = run_stage(work, shards, _extract, parameters, workers=workers, on_progress=on_progress)
            bad = sum(result.counts["bad"] for result in results)
            texts = sum(result.counts["texts"] for result in results)
            if bad > max_bad * (bad + texts):
                raise BuildError(
                    f"{bad:,} of {bad + texts:,} texts are bad, more than {max_bad:.0%}",
                    "Are these shards of S2ORC? Allow more with --max-bad 0.5",
                )
            quarantine = out.parent / f"{out.name}.quarantine.jsonl"
            partial, aside = work / "contexts", work / "quarantine"
            with partial.open("wb") as file, aside.open("wb") as aside_file:
                for result in results:
                    for line in reading_lines(result.path):
                        of_quarantine = line.startswith(QUARANTINE)
                        (aside_file if of_quarantine else file).write(line.removeprefix(QUARANTINE) + b"\n")
            quarantine.unlink(missing_ok=True)
            if aside.stat().st_size:
                aside.replace(quarantine)
            partial.replace(out)
        except OSError as error:
            raise BuildError(
                f"cannot write {out}: {error.strerror or error}", "Make room, or give another --out."
            ) from error
    fates: Counter[str] = Counter()
    for result in results:
        fates.update(result.counts["fates"])
    return Extracted(
        texts=texts,
        contexts=sum(result.counts["contexts"] for result in results),
        sentences=sum(result.counts["sentences"] for result in results),
        fates=dict(fates.most_common()),
        bad=bad,
        faults=sum(result.counts["faults"] for result in results),
        quarantine=quarantine if quarantine.exists() else None,
    )


def _extract(shard: Path, out: Path, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    rules, tally = Rules(single=parameters["single"], split=parameters["split"]), Tally()
    bad = faults = 0
    with writing_lines(out) as write:
        lost = lost_lines(parameters["repeated"], shard)
        for line in read_s2orc(shard):
            if line.number in lost:
                continue
            if isinstance(line.record, BadRecord):
                bad += 1
                write(QUARANTINE + quarantine_line(shard, line.number, line.record))
                continue
            for fault in line.record.faults:
                faults += 1
                write(QUARANTINE + quarantine_line(shard, line.number, bad_record(fault, line.beginning)))
            for context in extract_contexts(line.record, rules, tally=tally):
                write(orjson.dumps(as_record(context)))
    return {**tally.as_counts(), "bad": bad, "faults": faults}
