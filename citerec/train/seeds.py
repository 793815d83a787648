"""Writers trained with several seeds, a folder for each."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from citerec.errors import InputError
from citerec.files.progress import Note, Progress, no_note, no_progress
from citerec.files.resume import Journal
from citerec.files.writing import alone, beside
from citerec.generate.writers.seq2seq import WriterManifest
from citerec.models.find import find_model, model_identity
from citerec.models.loading import MANIFEST
from citerec.train.groups import Choice
from citerec.train.loop import Schedule
from citerec.train.writer import WriterOptions, train_writer


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
    out.mkdir(parents=True, exist_ok=True)
    plan = {
        **choice.plan("Give a file with one task per line."),
        "options": asdict(options),
        "schedule": asdict(replace(schedule, seed=0)),
        "base": model_identity(find_model(options.base)),
    }
    with alone(beside(out.resolve(), "seeds.lock"), f"another process trains {out}"):
        # Kept when all is done: the same command then does only what is missing.
        journal = Journal(beside(out.resolve(), "seeds"), plan)
        found = {}
        for seed in seeds:
            folder = out / f"seed-{seed}"
            if seed in journal.done and (folder / MANIFEST).is_file():
                found[seed] = WriterManifest.model_validate_json((folder / MANIFEST).read_bytes())
                continue
            note(f"seed {seed}:")
            found[seed] = train_writer(
                choice,
                folder,
                options,
                replace(schedule, seed=seed),
                device=device,
                on_progress=on_progress,
                note=note,
            )
            journal.finish(seed)
    return found
