"""Several results side by side, as if their systems had been measured together."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from citerec.errors import InputError
from citerec.evaluation.compare import compare
from citerec.evaluation.rank import FOUND_UNTIL
from citerec.evaluation.results import Comparison, Outcome, Results, Scores, SystemResult, robustness
from citerec.evaluation.statistics import total


def merge(parts: Mapping[str, Results]) -> Results:
    """Results that hold the systems of all parts.

    Where the parts asked the same contexts, their systems are compared as `evaluate` compares them.

    Args:
        parts: Results by the name that tells systems of one name apart.

    Raises:
        InputError: The parts have no metric in common.
    """
    first, *others = parts.values()
    metrics = tuple(metric for metric in first.metrics if all(metric in other.metrics for other in others))
    if not metrics:
        raise InputError("the results have no metric in common", "Evaluate them with the same --metrics.")
    alike = all(_question(other) == _question(first) for other in others)
    systems = _systems(parts)
    k = min(part.k for part in parts.values())
    shared = {
        name: family
        for name, family in first.families.items()
        if all(name in other.families and other.families[name].classes == family.classes for other in others)
    }
    # The same contexts can be sorted differently, by other bounds or without conditions: means of other classes.
    otherwise = [name for name in shared if alike and not all(_same_labels(first, other, name) for other in others)]
    families = {name: family for name, family in shared.items() if name not in otherwise}
    kept = {
        name: _restricted(system, {family: system.families[family] for family in families}, metrics, k)
        for name, (_, _, system) in systems.items()
    }
    merged = replace(
        first,
        set={**first.set, "name": " and ".join(dict.fromkeys(part.set["name"] for part in parts.values()))},
        metrics=metrics,
        k=k,
        families=families,
        systems=kept,
        comparisons=(),
        outcomes=(),
        notes=tuple(
            dict.fromkeys(
                [*_differences(parts), *_left_out(otherwise), *(note for part in parts.values() for note in part.notes)]
            )
        ),
    )
    if not alike:
        return replace(merged, set={**merged.set, "alike": False})
    outcomes = _outcomes(parts, systems, metrics)
    return replace(merged, outcomes=outcomes, comparisons=tuple(_comparisons(merged, outcomes)))


def _restricted(
    system: SystemResult, families: Mapping[str, Mapping[str, Scores]], metrics: Sequence[str], k: int
) -> SystemResult:
    """A system on some families, by some metrics and down to some rank only."""
    counted = any(scores.n for classes in families.values() for scores in classes.values())
    lines = [robustness(metric, system.overall, families) for metric in metrics] if counted else ()
    ranks = system.ranks[:k]
    fates = {
        **system.fates,
        "found": sum(ranks[:FOUND_UNTIL]),
        "ranked badly": sum(ranks[FOUND_UNTIL:]),
        "not retrieved": system.fates["not retrieved"] + sum(system.ranks[k:]),
    }
    return replace(system, families=families, robustness=lines, fates=fates, ranks=ranks)


def _same_labels(first: Results, other: Results, family: str) -> bool:
    pairs = zip(first.outcomes, other.outcomes, strict=True)
    return all(one.labels.get(family) == two.labels.get(family) for one, two in pairs)


def _question(results: Results) -> tuple[object, ...]:
    asked = tuple(outcome.context_id for outcome in results.outcomes)
    return results.set["fingerprint"], asked


def _systems(parts: Mapping[str, Results]) -> dict[str, tuple[str, str, SystemResult]]:
    """New name: part, name there, system. A name that several parts have is told apart by the part."""
    names = [name for part in parts.values() for name in part.systems]
    return {
        name if names.count(name) == 1 else f"{name}@{part_name}": (part_name, name, system)
        for part_name, part in parts.items()
        for name, system in part.systems.items()
    }


def _differences(parts: Mapping[str, Results]) -> list[str]:
    """What makes the parts hard to compare."""
    first_name, first = next(iter(parts.items()))
    found = []
    for name, part in list(parts.items())[1:]:
        if _question(part) != _question(first):
            found.append(f"{name} and {first_name} asked different contexts: no pair of systems is tested.")
        if part.index["fingerprint"] != first.index["fingerprint"]:
            found.append(f"{name} and {first_name} asked different indexes.")
        for rule, value in part.rules.items():
            if value != first.rules[rule]:
                found.append(f"{name} had {rule} {_said(value)}, {first_name} {_said(first.rules[rule])}.")
        if part.k != first.k:
            found.append(f"{name} looked at {part.k} hits, {first_name} at {first.k}.")
    return found


def _left_out(families: Sequence[str]) -> list[str]:
    if not families:
        return []
    return [f"Left out, as the results sort their contexts differently: {', '.join(families)}."]


def _said(value: object) -> str:
    return {True: "on", False: "off"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def _outcomes(
    parts: Mapping[str, Results], systems: Mapping[str, tuple[str, str, SystemResult]], metrics: Sequence[str]
) -> tuple[Outcome, ...]:
    rows = zip(*(part.outcomes for part in parts.values()), strict=True)
    merged = []
    for row in rows:
        by_part = dict(zip(parts, row, strict=True))
        merged.append(
            replace(
                row[0],
                ranks={name: by_part[part].ranks[there] for name, (part, there, _) in systems.items()},
                scores={
                    name: {metric: by_part[part].scores[there][metric] for metric in metrics}
                    for name, (part, there, _) in systems.items()
                },
            )
        )
    return tuple(merged)


def _comparisons(results: Results, outcomes: Sequence[Outcome]) -> Iterator[Comparison]:
    groups = [(name, label) for name, family in results.families.items() for label in family.classes]
    members = np.array([[True, *(outcome.labels.get(name) == label for name, label in groups)] for outcome in outcomes])
    clusters = np.array([outcome.citing for outcome in outcomes], np.int32)
    totals = {
        name: total(
            np.array([[outcome.scores[name][metric] for metric in results.metrics] for outcome in outcomes]),
            clusters,
            members,
        )
        for name in results.systems
    }
    return compare(totals, groups, results.metrics, results.seed)
