"""The manual check of a set: verdicts of reviewers, how well they agree, and the set without what they rejected.

Verdicts are in a folder beside the set's directory, which may be replaced: a file for each reviewer, a line for each
verdict. Lines are only appended, and the last one on a context counts.
"""

import contextlib
import itertools
import os
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

import orjson

from citerec.contexts.read import parse_context
from citerec.corpus.json_lines import BadRecord, parsed, raw_lines
from citerec.diagnostics import sets
from citerec.diagnostics.sets import CELL, CELLS, read_cells, states_of, write_cells
from citerec.errors import InputError
from citerec.files.hashing import hash_sample
from citerec.records import Context
from citerec.settings import shipped

Verdict = Literal["accept", "reject"]

_PACKAGE = Path(__file__).parents[1]
_REVIEWER = re.compile(r"\w[\w.@+-]{0,62}(?<!\.)")
_NO_RESERVE = "rejected in review, and no reserve was left"


class Review(NamedTuple):
    """A reviewer's verdict on a context, and its time (ISO 8601); None with a note only, or if taken back."""

    context_id: str
    verdict: Verdict | None
    note: str
    when: str


@dataclass(frozen=True, slots=True)
class Item:
    """A context to be judged, and its record as the file has it."""

    context: Context
    record: Mapping[str, Any]

    @property
    def context_id(self) -> str:
        """The id of the context."""
        return self.context.context_id

    @property
    def slot(self) -> tuple[str, ...] | None:
        """Field, years, citation count, family and class that it was chosen for; None if it was not sampled."""
        cell = self.record.get("cell")
        return tuple(str(cell.get(name)) for name in CELL) if isinstance(cell, dict) else None

    @property
    def classes(self) -> dict[str, str]:
        """The classes to check, by family: the one that it was chosen for, or all those of a labelled context."""
        return {self.slot[3]: self.slot[4]} if self.slot else dict(self.context.labels)


def check_may_review(path: Path) -> None:
    """Raises InputError for a set that came with citerec, in the package or as the demo of a checkout."""
    place = path.resolve()
    if place.is_relative_to(_PACKAGE) or place == shipped("diagnostics", sets.DEFAULT_SET).resolve():
        raise InputError(
            f"{path} comes with citerec and is not written to",
            f"Copy the set first: mkdir -p diagnostics/mine && cp {path}/*.* diagnostics/mine/",
        )


def check_reviewer(name: str) -> str:
    """The name of a reviewer; raises InputError if it cannot be a file name."""
    if not _REVIEWER.fullmatch(name):
        raise InputError(f"{name!r} is no reviewer's name", "Use letters, digits and . _ - + @ only: --reviewer ada")
    return name


def items_of(path: Path, name: str = sets.CONTEXTS) -> tuple[Item, ...]:
    """The contexts of a set in its order, or those of a file beside them: its reserves, or what was rejected.

    Raises:
        InputError: It is no set, or not complete: see read_set; or a line is no context.
    """
    if name == sets.CONTEXTS:
        sets.read_set(path)
    found = []
    for number, raw, _ in raw_lines(path / name) if (path / name).exists() else ():
        item = parsed(raw, lambda record: Item(parse_context(record), record))
        if isinstance(item, BadRecord):
            raise InputError(f"{path / name}, line {number}: {item.reason}", "Correct the line, or remove it.")
        found.append(item)
    return tuple(found)


def review_order(items: Iterable[Item]) -> list[Item]:
    """A shuffle in which the first n contexts, for every n, are a sample with a fair share of each class.

    The contexts of a class are at equal distances, from a random start. A context with several classes counts for its
    rarest. The order depends on ids and classes only, so that all reviewers have the same one.
    """
    items = list(items)
    sizes = Counter(label for item in items for label in item.classes.items())
    groups: defaultdict[tuple[str, str], list[tuple[int, Item]]] = defaultdict(list)
    for item in items:
        rarest = min(item.classes.items(), key=lambda label: (sizes[label], label), default=("", ""))
        groups[rarest].append((hash_sample(0, "review", item.context_id, between="\t"), item))
    places = []
    for label, group in groups.items():
        start = hash_sample(0, "review", *label, between="\t") / 2**64
        shuffled = sorted(group, key=lambda one: one[0])
        places += [((number + start) / len(group), chance, item) for number, (chance, item) in enumerate(shuffled)]
    return [item for _, _, item in sorted(places, key=lambda place: place[:2])]


def read_reviews(path: Path) -> dict[str, dict[str, Review]]:
    """The last review of each context by each reviewer of a set, in order of time.

    A line that is not JSON was cut off while it was written, and is left out.

    Raises:
        InputError: A line is JSON, but no verdict.
    """
    reviews: dict[str, dict[str, Review]] = {}
    for file in sorted(sets.reviews_of(path).glob("[!.]*.jsonl")):
        found = reviews.setdefault(file.stem, {})
        for number, line in enumerate(file.read_bytes().split(b"\n"), 1):
            with contextlib.suppress(orjson.JSONDecodeError):
                review = _parse(orjson.loads(line), f"{file}, line {number}")
                found.pop(review.context_id, None)
                found[review.context_id] = review
    return reviews


def _parse(value: Any, where: str) -> Review:
    if isinstance(value, dict) and "context_id" in value and value.get("verdict", "") in ("accept", "reject", None):
        texts = (str(value.get(key) or "") for key in ("note", "when"))
        return Review(str(value["context_id"]), value["verdict"], *texts)
    raise InputError(f"{where} is no verdict", 'Fix it: {"context_id": …, "verdict": "accept" or "reject", "note": …}')


def record_verdict(path: Path, reviewer: str, context_id: str, verdict: Verdict | None, note: str = "") -> Review:
    """Saves a reviewer's verdict on a context of a set durably.

    The verdict None takes an earlier one back, or goes with a note only.

    Raises:
        InputError: The set came with citerec, or the reviewer's name is not allowed.
    """
    check_may_review(path)
    file = sets.reviews_of(path) / f"{check_reviewer(reviewer)}.jsonl"
    review = Review(context_id, verdict, note, datetime.now(UTC).isoformat(timespec="seconds"))
    with sets.reviews_locked(path):
        file.parent.mkdir(exist_ok=True)
        with file.open("ab") as lines:
            torn = lines.tell() and not file.read_bytes().endswith(b"\n")
            lines.write(b"\n" * bool(torn) + orjson.dumps(review._asdict(), option=orjson.OPT_APPEND_NEWLINE))
            lines.flush()
            os.fsync(lines.fileno())
    return review


def tally(items: Iterable[Item], gone: Iterable[Item], verdicts: Mapping[str, Review]) -> tuple[int, int, int]:
    """How many contexts of a set, and of those taken out of it, a reviewer accepted and rejected; how many are left."""
    here, out = (
        Counter(verdicts[one.context_id].verdict if one.context_id in verdicts else None for one in some)
        for some in (items, gone)
    )
    return here["accept"] + out["accept"], here["reject"] + out["reject"], here[None]


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


def agreement(
    reviews: Mapping[str, Mapping[str, Review]],
) -> list[tuple[tuple[str, str], int, int, float | None]]:
    """How well each two reviewers agree; those who judged no context in common are left out.

    Returns:
        Their names, how many contexts both judged, how many with the same verdict, and Cohen's κ if it is defined.
    """
    found = []
    for one, other in itertools.combinations(sorted(reviews), 2):
        shared = ((mine, reviews[other].get(context_id)) for context_id, mine in reviews[one].items())
        pairs = [(mine.verdict, his.verdict) for mine, his in shared if his and mine.verdict and his.verdict]
        if pairs:
            found.append(((one, other), len(pairs), sum(mine == his for mine, his in pairs), cohens_kappa(pairs)))
    return found


class Applied(NamedTuple):
    """A set after review: how many contexts it has now, which were rejected, and which replace them."""

    contexts: int
    rejected: tuple[str, ...] = ()
    replacements: tuple[str, ...] = ()


def apply_reviews(path: Path) -> Applied:
    """Removes the contexts that any reviewer rejected from a set, and puts reserves in their place.

    A reserve is of the same cell and class, cites no paper that the set uses, and was rejected by nobody. The set is
    rewritten; the reviews and all other files are kept.

    Raises:
        InputError: The set came with citerec, is not complete, holds other things too, or nothing would be left of it.
        BuildError: The disk is full, or may not be written to.
    """
    check_may_review(path)
    sets.SET.check_place(path)
    with sets.reviews_locked(path):
        against, items = _rejections(path), items_of(path)
        gone = [item for item in items if item.context_id in against]
        if not gone:
            return Applied(len(items))
        instead, reserves = _replacements(items, items_of(path, sets.RESERVES), against)
        kept = [stands for item in items if (stands := instead.get(item.context_id, item))]
        if not kept:
            raise InputError(f"all contexts of {path} were rejected: none would be left", "Build the set again.")
        cells = read_cells(path / CELLS)
        lost = Counter(item.slot for item in gone if not instead[item.context_id])
        for row in cells:
            if fewer := lost[tuple(row[name] for name in CELL)]:
                row["chosen"] = str(int(row["chosen"]) - fewer)
                row["why"] = "; ".join(dict.fromkeys([*filter(None, row["why"].split("; ")), _NO_RESERVE]))

        def beside(folder: Path) -> None:
            written = (sets.MANIFEST, sets.CONTEXTS, sets.QRELS, sets.DATASHEET, sets.RESERVES)
            shutil.copytree(path, folder, ignore=shutil.ignore_patterns(*written), dirs_exist_ok=True)
            if (path / sets.RESERVES).exists():
                sets.write_records(folder / sets.RESERVES, (item.record for item in reserves))
            out = ({**one.record, "rejected_by": against[one.context_id]} for one in gone)
            sets.write_records(folder / sets.REJECTED, out)
            if cells:
                write_cells(folder / CELLS, cells)

        facts = dict(sets.SetManifest.read(path))
        if facts["sampling"] and cells:
            facts["sampling"] = facts["sampling"].model_copy(update={"cells": states_of(cells)})
        sets.write_set(path, [item.record for item in kept], facts, beside)
    return Applied(len(kept), tuple(instead), tuple(item.context_id for item in instead.values() if item))


def _rejections(path: Path) -> dict[str, list[dict[str, str]]]:
    """By context, who rejected it and why."""
    found = defaultdict(list)
    for reviewer, reviews in read_reviews(path).items():
        for one in (one for one in reviews.values() if one.verdict == "reject"):
            found[one.context_id].append({"reviewer": reviewer, "why": one.note, "when": one.when})
    return found


def _replacements(
    items: Sequence[Item], reserves: Sequence[Item], against: Container[str]
) -> tuple[dict[str, Item | None], list[Item]]:
    """The replacement of each rejected context, if there is one, and the reserves that are left."""
    here = {item.context_id for item in items}
    used = {paper for item in items if item.context_id not in against for paper in item.context.cited_ids}
    instead: dict[str, Item | None] = {}
    usable = [one for one in reserves if one.slot and one.context_id not in here and one.context_id not in against]
    for item in (item for item in items if item.context_id in against):
        free = (one for one in usable if one.slot == item.slot and used.isdisjoint(one.context.cited_ids))
        instead[item.context_id] = new = next(free, None)
        if new:
            usable.remove(new)
            used.update(new.context.cited_ids)
    return instead, [one for one in reserves if one not in instead.values()]
