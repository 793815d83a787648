"""The manual check of a set: verdicts of reviewers, how well they agree, and the set without what they rejected.

Verdicts are in a folder beside the set's directory, which may be replaced: a file for each reviewer, a line for each
verdict. The last line on a context counts.
"""

import itertools
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

import orjson

from citerec.contexts.read import write_records
from citerec.corpus.reading import BadRecord, parsed, raw_lines
from citerec.diagnostics import sets
from citerec.diagnostics.families import FAMILIES
from citerec.errors import InputError
from citerec.files.resume import hash_sample
from citerec.files.writing import writing_file
from citerec.settings import shipped

Verdict = Literal["accept", "reject"]


class Review(NamedTuple):
    """A reviewer's verdict on a context, and its time (ISO 8601); None with a note only, or if taken back."""

    context_id: str
    verdict: Verdict | None
    note: str = ""
    when: str = ""


Item = Mapping[str, Any]
"""A context to be judged, as the file has it."""


def slot_of(item: Item) -> tuple[str, ...] | None:
    """Field, years, citation count, family and class that a context was chosen for; None if it was not sampled."""
    return tuple(str(item["cell"][name]) for name in sets.CELL) if "cell" in item else None


def classes_of(item: Item) -> Mapping[str, str]:
    """The classes to check, by family: the one that it was chosen for, or all those of a labelled context."""
    return {item["cell"]["family"]: item["cell"]["class"]} if "cell" in item else item["labels"]


def check_may_review(path: Path) -> None:
    """Raises InputError for the demo set, which came with citerec."""
    if path.resolve() == shipped("diagnostics", sets.DEFAULT_SET).resolve():
        remedy = f"Copy the set first: mkdir -p diagnostics/mine && cp {path}/*.* diagnostics/mine/"
        raise InputError(f"{path} comes with citerec and is not written to", remedy)


def items_of(path: Path, name: str = sets.CONTEXTS) -> list[Item]:
    """The contexts of a set in its order, or those of a file beside them: its reserves, or what was rejected.

    Raises:
        InputError: It is no set, or not complete: see read_set.
    """
    if name == sets.CONTEXTS:
        sets.read_set(path)
    return [orjson.loads(line) for _, line, _ in raw_lines(path / name)] if (path / name).exists() else []


def review_order(items: Iterable[Item]) -> list[Item]:
    """A shuffle in which each class has its share of the first n contexts, for every n.

    It depends on ids and classes only, so that all reviewers have the same one.
    """
    shuffled = sorted(items, key=lambda item: hash_sample(0, "review", item["context_id"], between="\t"))
    by_class = defaultdict[tuple[str, str], list[Item]](list)
    for item in shuffled:
        by_class[next(iter(classes_of(item).items()), ("", ""))].append(item)
    starts = {label: hash_sample(0, "review", *label, between="\t") / 2**64 for label in by_class}
    places = {
        item["context_id"]: (number + starts[label]) / len(members)
        for label, members in by_class.items()
        for number, item in enumerate(members)
    }
    return sorted(shuffled, key=lambda item: places[item["context_id"]])


def read_reviews(path: Path) -> dict[str, dict[str, Review]]:
    """The last review of each context by each reviewer of a set, in order of time.

    Raises:
        InputError: A line is no verdict.
    """
    reviews: dict[str, dict[str, Review]] = {}
    for file in sorted(sets.reviews_of(path).glob("[!.]*.jsonl")):
        of_reviewer = reviews.setdefault(file.stem, {})
        for number, line, _ in raw_lines(file):
            review = parsed(line, lambda record: Review(**{**record, "context_id": str(record["context_id"])}))
            if isinstance(review, BadRecord) or review.verdict not in ("accept", "reject", None):
                remedy = 'Fix it: {"context_id": …, "verdict": "accept" or "reject", "note": …, "when": …}'
                raise InputError(f"{file}, line {number} is no verdict", remedy)
            of_reviewer.pop(review.context_id, None)
            of_reviewer[review.context_id] = review
    return reviews


def record_verdict(path: Path, reviewer: str, context_id: str, verdict: Verdict | None, note: str = "") -> Review:
    """Saves a reviewer's verdict on a context of a set durably.

    The verdict None takes an earlier one back, or goes with a note only.

    Raises:
        InputError: The set came with citerec, or the reviewer's name cannot be a file name.
    """
    check_may_review(path)
    if not re.fullmatch(r"\w[\w.@+-]{0,62}(?<!\.)", reviewer):
        remedy = "Use letters, digits and . _ - + @ only: --reviewer ada"
        raise InputError(f"{reviewer!r} is no reviewer's name", remedy)
    file = sets.reviews_of(path) / f"{reviewer}.jsonl"
    review = Review(context_id, verdict, note, datetime.now(UTC).isoformat(timespec="seconds"))
    with sets.reviews_locked(path), writing_file(file) as partial:
        line = orjson.dumps(review._asdict(), option=orjson.OPT_APPEND_NEWLINE)
        partial.write_bytes((file.read_bytes() if file.exists() else b"") + line)
    return review


class Standing(NamedTuple):
    """How much a reviewer has judged: in all, which has no family, or of the contexts of a family."""

    reviewer: str
    family: str
    accepted: int
    rejected: int
    left: int


def standings(items: Sequence[Item], reviews: Mapping[str, Mapping[str, Review]]) -> Iterator[Standing]:
    """How much each reviewer has judged, in all and then by family, of some contexts with what was taken out."""
    for reviewer, verdicts in reviews.items():
        for family in ("", *FAMILIES):
            checked = [one for one in items if not family or family in classes_of(one)]
            answers = [verdicts[one["context_id"]].verdict for one in checked if one["context_id"] in verdicts]
            accepted, judged = answers.count("accept"), len(answers) - answers.count(None)
            if checked:
                yield Standing(reviewer, family, accepted, judged - accepted, len(checked) - judged)


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """Low and high end of the 95 % score interval of a share (E. B. Wilson, JASA 22, 1927); trials are at least 1."""
    from scipy.stats import binomtest

    interval = binomtest(successes, trials).proportion_ci(0.95, method="wilson")
    return float(interval.low), float(interval.high)


def cohens_kappa(pairs: Sequence[tuple[Any, Any]], **options: Any) -> float | None:
    """Agreement of two judges beyond chance (J. Cohen, 1960), at most 1; None if fewer than two verdicts occur.

    Options go to scikit-learn's `cohen_kappa_score`.
    """
    from sklearn.metrics import cohen_kappa_score

    if len(set(itertools.chain.from_iterable(pairs))) < 2:
        return None
    return float(cohen_kappa_score(*zip(*pairs, strict=True), **options))


def agreement(reviews: Mapping[str, Mapping[str, Review]]) -> list[tuple[tuple[str, str], int, int, float | None]]:
    """How well each two reviewers agree; those who judged no context in common are left out.

    Returns:
        Their names, how many contexts both judged, how many with the same verdict, and Cohen's κ if it is defined.
    """
    agreements = []
    for one, other in itertools.combinations(sorted(reviews), 2):
        shared = ((mine, reviews[other].get(context_id)) for context_id, mine in reviews[one].items())
        pairs = [(mine.verdict, his.verdict) for mine, his in shared if his and mine.verdict and his.verdict]
        if pairs:
            agreements.append(((one, other), len(pairs), sum(mine == his for mine, his in pairs), cohens_kappa(pairs)))
    return agreements


def apply_reviews(path: Path) -> dict[str, Item | None]:
    """Removes the contexts that any reviewer rejected from a set, and puts reserves in their place.

    A reserve is of the same cell and class, cites no paper that the set uses, and was rejected by nobody. The set is
    rewritten; the reviews and all other files are kept.

    Returns:
        The ids of the rejected contexts, each with its replacement, if there is one.

    Raises:
        InputError: The set came with citerec, is not complete, holds other things too, or nothing would be left of it.
        BuildError: The disk is full, or may not be written to.
    """
    check_may_review(path)
    sets.SET.check_place(path)
    with sets.reviews_locked(path):
        against = defaultdict[str, list[dict[str, str]]](list)  # by context, who rejected it and why
        for reviewer, reviews in read_reviews(path).items():
            for one in reviews.values():
                if one.verdict == "reject":
                    against[one.context_id].append({"reviewer": reviewer, "why": one.note, "when": one.when})
        items, reserves = items_of(path), items_of(path, sets.RESERVES)
        gone = [item for item in items if item["context_id"] in against]
        instead = _replacements(gone, [item for item in items if item not in gone], reserves, against)
        if not gone:
            return instead
        kept = [stands for item in items if (stands := instead.get(item["context_id"], item))]
        if not kept:
            raise InputError(f"all contexts of {path} were rejected: none would be left", "Build the set again.")
        cells = sets.read_cells(path / sets.CELLS)
        lost = Counter(slot_of(item) for item in gone if not instead[item["context_id"]])
        for row in cells:
            if fewer := lost[tuple(row[name] for name in sets.CELL)]:
                row["chosen"] = str(int(row["chosen"]) - fewer)
                row["why"] = "rejected in review, and no reserve was left"

        def beside(folder: Path) -> None:
            written = (sets.MANIFEST, sets.CONTEXTS, sets.QRELS, sets.DATASHEET, sets.RESERVES)
            shutil.copytree(path, folder, ignore=shutil.ignore_patterns(*written), dirs_exist_ok=True)
            write_records(folder / sets.RESERVES, reserves)
            out = ({**one, "rejected_by": against[one["context_id"]]} for one in gone)
            write_records(folder / sets.REJECTED, out)
            if cells:
                sets.write_cells(folder / sets.CELLS, cells)

        facts = dict(sets.SetManifest.read(path))
        if facts["sampling"]:
            facts["sampling"] = facts["sampling"].model_copy(update={"cells": sets.states_of(cells)})
        sets.write_set(path, kept, facts, beside)
    return instead


def _replacements(
    gone: Iterable[Item], kept: Iterable[Item], reserves: list[Item], against: Container[str]
) -> dict[str, Item | None]:
    """The replacement of each rejected context, if there is one, which is taken out of the reserves."""
    used = {paper for item in kept for paper in item["cited_ids"]}
    instead: dict[str, Item | None] = {}
    for item in gone:
        usable = (one for one in reserves if slot_of(one) == slot_of(item) and one["context_id"] not in against)
        instead[item["context_id"]] = new = next((one for one in usable if used.isdisjoint(one["cited_ids"])), None)
        if new:
            reserves.remove(new)
            used.update(new["cited_ids"])
    return instead
