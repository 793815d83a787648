"""Writers trained with several seeds, a folder for each."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from citerec.errors import InputError
from citerec.files.progress import Note, Progress, no_note, no_progress
from citerec.generate.writers.seq2seq import WriterManifest
from citerec.models.loading import MANIFEST
from citerec.train.groups import Choice
from citerec.train.loop import Schedule
from citerec.train.writer import WriterOptions, finished_writer, train_writer


def train_seeds(
    choice: Choice,
    out: Path,
    options: WriterOptions,
    schedule: Schedule,
    seeds: Sequence[int],
    *,
    device: str | None = None,
    on_progress: Progress = no_progress,
    note: Note = no_note,
) -> dict[int, WriterManifest]:
    """Trains a writer for each seed, in `out/seed-N`; what is done already with these settings is kept.

    The seed sets the order of the examples and what is dropped out. Which tasks are learnt from, and which are
    measured on, depends on the seed of `choice`, and is the same for all.

    Raises:
        InputError: No seed is given, or one twice, or `out` is a writer itself.
        BuildError, ModelError, SourceError: As `train_writer`.
    """
    if not seeds or len(set(seeds)) < len(seeds):
        raise InputError(f"the seeds are {', '.join(map(str, seeds)) or 'none'}", "Give some, each once: 22,42,55.")
    if (out / MANIFEST).exists():
        raise InputError(f"{out} is a writer: seeds need a folder of their own", "Give another --out.")
    found = {}
    for seed in seeds:
        folder, own = out / f"seed-{seed}", replace(schedule, seed=seed)
        manifest = finished_writer(choice, folder, options, own)
        if manifest is None:
            note(f"seed {seed}:")
            manifest = train_writer(choice, folder, options, own, device=device, on_progress=on_progress, note=note)
        found[seed] = manifest
    return found
