"""Take citing sentences from full texts, and split files of them.

Example: citerec contexts extract s2orc --out contexts.jsonl
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from citerec.cli.console import counts_table, note_set_aside, say
from citerec.cli.options import Address, Out, Seed, Tuning, Work, working
from citerec.contexts.extract import Rules, extract_shards
from citerec.contexts.provenance import split_contexts
from citerec.evaluation.tables import Column, Table, right
from citerec.files.addresses import path_of
from citerec.files.text import counted

_Size = Annotated[float, Parameter(metavar="SHARE|NUMBER")]


def split(file: Path, /, *, out: Out, dev: _Size = 0.1, test: _Size = 0.1, seed: Seed = 0) -> None:
    """Split FILE, JSON Lines of contexts, into train.jsonl, dev.jsonl and test.jsonl.

    No citing paper is in two of them, so that a system trained on one can be measured on another. The
    same file and seed give the same parts.

    Example: citerec contexts split contexts.jsonl --dev 0.1 --test 0.1 --out split

    Args:
        file: The contexts.
        out: Where to write the parts.
        dev: Contexts to tune on: a share of the citing papers, or a number of contexts.
        test: Contexts to measure on: a share or a number, as for --dev.
    """
    counts = split_contexts(file, out, dev=dev, test=test, seed=seed)
    columns = [Column("file", style="strong"), *right("contexts", "citing papers", "without one", format=",")]
    rows = [[str(out / f"{part}.jsonl"), *count] for part, count in counts.items() if count.contexts]
    say(Table(columns, rows))


@dataclass(frozen=True, slots=True)
class Shards:
    """What is kept of shards.

    Attributes:
        work: Where the results of shards are kept: a folder, or an address; by default beside --out.
    """

    work: str | None = None


def extract(
    sources: tuple[Address, ...],
    /,
    *,
    out: Annotated[Address, Parameter(name=("--out", "-o"))],
    work: Work = Work(),
    tuning: Tuning = Tuning(),
) -> None:
    """Extract contexts from the full texts of SOURCES: usable sentences with <REF> for a citation.

    A source is a folder of S2ORC shards, v1 or v2, or one shard; also at an address such as
    s3://bucket/s2orc. Repeat the command to resume an interrupted run, with another --on too. Settings (-c):
    single=false makes a context for each citation, with all papers that share its marker; split, the splitter of
    texts into sentences, if the source does not mark them: pysbd, spacy, or a spaCy model; work, where the results
    of shards are kept: a folder, or an address that all machines of a cluster reach.

    Example: citerec contexts extract ../shared/data/acm/s2orc --out contexts.jsonl

    Args:
        sources: Full texts.
        out: The file to write, JSON Lines.
    """
    settings = tuning.settings(Rules, Shards)
    kept = settings.of(Shards).work
    with working(work.on, work.workers) as (parallelism, on_progress):
        extracted = extract_shards(
            sources,
            out,
            settings.of(Rules),
            workers=parallelism,
            max_bad=work.max_bad,
            work=path_of(kept) if kept else None,
            on_progress=lambda done, whole: on_progress("reading MB", done / 1e6, whole / 1e6),
        )
    seen = f"{extracted.texts:,} texts, {extracted.sentences:,} sentences that cite"
    say(f"{out}: {counted(extracted.contexts, 'context')} of {seen}.", counts_table(extracted.outcomes))
    note_set_aside(extracted.bad, extracted.faults, extracted.quarantine)
