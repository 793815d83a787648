"""Splits a file of contexts into train, dev and test. No citing paper is in two of them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import orjson

from citerec.contexts.learnt import folded
from citerec.contexts.read import read_contexts
from citerec.corpus.json_lines import raw_lines
from citerec.errors import InputError
from citerec.files.hashing import hash_sample
from citerec.files.writing import Kind
from citerec.records import Context, citing_name
from citerec.version import __version__

PARTS = ("train", "dev", "test")
SPLIT = Kind(
    name="split of contexts",
    kind="citerec-split",
    manifest="manifest.json",
    names=frozenset({"manifest.json", *(f"{part}.jsonl" for part in PARTS)}),
)
_PAPER = "paper"


class PartCounts(NamedTuple):
    """The numbers of contexts, of known citing papers, and of contexts without a known citing paper in a part."""

    contexts: int
    citing_papers: int
    without_citing_paper: int


def split_contexts(
    path: Path, out: Path, *, dev: float = 0.1, test: float = 0.1, seed: int = 0
) -> dict[str, PartCounts]:
    """Writes `train.jsonl`, `dev.jsonl` and `test.jsonl` to a folder, and replaces a split that is already there.

    Digests of the citing papers' names and of the seed decide which papers go where; for a context without a
    citing paper, its sentence decides. Lines are copied as they are, in their order.

    Args:
        path: A file of contexts.
        out: The folder.
        dev: A share of the citing papers, below 1; or a number of contexts, from 1. Papers are not divided, so a part
            may get a few contexts more.
        test: The same for the test part.
        seed: Seed of the split.

    Returns:
        The counts of each part.

    Raises:
        SourceError: The file cannot be read.
        InputError: A size is neither a share nor a number, a line is not a context, a part that was asked for would be
            empty, or something else is at `out`.
        BuildError: The disk is full, or may not be written to.
    """
    for part, size in (("dev", dev), ("test", test)):
        if not (0 <= size < 1 or (size >= 1 and float(size).is_integer())):
            message = f"--{part} {size:g} is neither a share such as 0.1 nor a number of contexts such as 500"
            raise InputError(message, "Give one of them.")
    SPLIT.check_place(out)
    of_lines = [_paper(context) for context in read_contexts(path)]
    papers = Counter(of_lines)
    places = _places(papers, {"test": test, "dev": dev}, seed)
    counts = {part: _counts([paper for paper, place in places.items() if place == part], papers) for part in PARTS}
    for part, wanted in (("train", 1.0), ("dev", dev), ("test", test)):
        if wanted and not counts[part].contexts:
            raise InputError(
                f"{path} has too few citing papers for --dev {dev:g} and --test {test:g}: {part} would be empty",
                "Give other shares, another --seed, or more contexts.",
            )
    with SPLIT.writing(out) as folder:
        for part in (part for part in PARTS if counts[part].contexts):
            with (folder / f"{part}.jsonl").open("wb") as file:
                for paper, (_, line, _) in zip(of_lines, raw_lines(path), strict=True):
                    if places[paper] == part:
                        file.write(line.rstrip(b"\r\n") + b"\n")
        manifest = {
            "kind": SPLIT.kind,
            "version": 1,
            "citerec": __version__,
            "file": path.name,
            "dev": dev,
            "test": test,
            "seed": seed,
            "parts": {part: found._asdict() for part, found in counts.items()},
        }
        (folder / SPLIT.manifest).write_bytes(orjson.dumps(manifest, option=orjson.OPT_INDENT_2))
    return counts


def _counts(papers: Sequence[tuple[str, str]], contexts: Mapping[tuple[str, str], int]) -> PartCounts:
    known = [paper for paper in papers if paper[0] == _PAPER]
    whole = sum(contexts[paper] for paper in papers)
    return PartCounts(whole, len(known), whole - sum(contexts[paper] for paper in known))


def _paper(context: Context) -> tuple[str, str]:
    """The key of a context's citing paper; without one, the key is its sentence."""
    name = citing_name(context.citing_id, context.citing_key)
    return (_PAPER, name) if name else ("text", folded(context.text))


def _places(papers: Counter[tuple[str, str]], wanted: dict[str, float], seed: int) -> dict[tuple[str, str], str]:
    """The part of each citing paper: in the order of their digests, each part takes as many as it needs of the rest."""
    left = iter(sorted(papers, key=lambda paper: (hash_sample(seed, *paper), paper)))
    places = {}
    for part, size in wanted.items():
        whole = size if size >= 1 else round(size * len(papers))
        taken = 0
        while taken < whole and (paper := next(left, None)):
            places[paper] = part
            taken += papers[paper] if size >= 1 else 1
    return places | dict.fromkeys(left, "train")
