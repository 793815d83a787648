"""Several results side by side, as if their systems had been measured together."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from citerec.errors import InputError
from citerec.evaluation.compare import Grouping, compare
from citerec.evaluation.figures import Figures, Scores, SystemResult, members_of, robustness
from citerec.evaluation.items import Items
from citerec.evaluation.rank import FOUND_UNTIL
from citerec.evaluation.tables import said

Merged = TypeVar("Merged", bound=Figures)

_OVERLAP = "training_overlap"


def merge(parts: Mapping[str, Merged]) -> Merged:
    """Results with the systems of all parts; systems of the same name are renamed.

    If the parts are of the same contexts or tasks, their systems are compared as by `evaluate` or `evaluate_texts`.

    Raises:
        InputError: The parts have no metric in common, or are of ranked lists and of texts.
    """
    first, *others = parts.values()
    if any(other.of_texts != first.of_texts for other in others):
        raise InputError("some of the results are of ranked lists, others of texts", "Give results of one kind.")
    settings = {
        name: own for name, own in first.settings.items() if all(other.settings.get(name) == own for other in others)
    }
    columns = tuple(
        column
        for column in first.columns
        if all(column in other.columns for other in others) and (not first.of_texts or column.metric in settings)
    )
    if not columns:
        raise InputError("the results have no metric in common", "Evaluate them with the same --metrics and settings.")
    alike = all(_topics(other) == _topics(first) for other in others)
    systems = _systems(parts)
    k = min(part.k for part in parts.values())
    shared = {
        name: family
        for name, family in first.families.items()
        if all(name in other.families and other.families[name].classes == family.classes for other in others)
    }
    # The same contexts can be in other classes, by other bounds or without conditions.
    otherwise = [name for name in shared if alike and not all(_same_labels(first, other, name) for other in others)]
    families = {
        name: family if alike else replace(family, without_class=None)
        for name, family in shared.items()
        if name not in otherwise
    }
    kept = {
        name: _restricted(parts[part].systems[there], list(families), [column.name for column in columns], k)
        for name, (part, there) in systems.items()
    }
    notes = _differences(parts)
    if otherwise:
        notes.append(f"Left out, because the results assign contexts to classes differently: {', '.join(otherwise)}.")
    notes += [note for part in parts.values() for note in part.notes]
    name = " and ".join(dict.fromkeys(str(part.set["name"]) for part in parts.values() if "name" in part.set))
    of_set = dict(first.set)
    if any(part.set.get(_OVERLAP) != first.set.get(_OVERLAP) for part in parts.values()):
        of_set.pop(_OVERLAP, None)  # it is about the systems of one part; the notes of each part say the same in words
    merged = replace(
        first,
        set={**of_set, **({"name": name} if name else {}), **({} if alike else {"alike": False})},
        columns=columns,
        settings=settings,
        preset=first.preset if all(other.preset == first.preset for other in others) else None,
        k=k,
        families=families,
        systems=kept,
        targets=first.targets if alike else None,
        comparisons=(),
        items=Items(),
        notes=tuple(dict.fromkeys(notes)),
        rankings={},
        predictions=None,
    )
    if not alike:
        return merged
    items = _items(parts, systems, [column.name for column in columns])
    tested = {name: scores for name, scores in items.scores.items() if not kept[name].is_oracle}
    groups = merged.groups[1:]
    return replace(
        merged,
        items=items,
        comparisons=compare(
            tested,
            items.columns,
            Grouping(groups, members_of(items.labels, groups), items.citing),
            merged.seed,
            together="pairs" if merged.of_texts else "classes",
        ),
    )


def _restricted(system: SystemResult, names: Sequence[str], columns: Sequence[str], k: int) -> SystemResult:
    """A system limited to some families, columns and ranks."""

    def of_columns(scores: Scores) -> Scores:
        return Scores(scores.n, {column: scores.means[column] for column in columns})

    families = {name: {label: of_columns(scores) for label, scores in system.families[name].items()} for name in names}
    system = replace(system, overall=of_columns(system.overall), families=families)
    if not k:
        return system
    ranks = system.ranks[:k]
    outcomes = {
        **system.outcomes,
        "found": sum(ranks[:FOUND_UNTIL]),
        "ranked badly": sum(ranks[FOUND_UNTIL:]),
        "not retrieved": system.outcomes["not retrieved"] + sum(system.ranks[k:]),
    }
    lines = robustness(columns, system.overall, families)
    return replace(system, robustness=lines, outcomes=outcomes, ranks=ranks)


def _same_labels(first: Figures, other: Figures, family: str) -> bool:
    pairs = zip(first.items.labels, other.items.labels, strict=True)
    return all(one.get(family) == two.get(family) for one, two in pairs)


def _topics(results: Figures) -> tuple[object, ...]:
    datasets = [labels.get("dataset") for labels in results.items.labels] if results.of_texts else []
    return results.set.get("fingerprint"), list(results.items.ids), datasets


def _systems(parts: Mapping[str, Figures]) -> dict[str, tuple[str, str]]:
    """By new name of a system its part and its name there. A name in several parts gets the part's name appended."""
    names = [name for part in parts.values() for name in part.systems]
    return {
        name if names.count(name) == 1 else f"{name}@{part_name}": (part_name, name)
        for part_name, part in parts.items()
        for name in part.systems
    }


def _differences(parts: Mapping[str, Figures]) -> list[str]:
    """Differences that make the parts hard to compare."""
    first_name, first = next(iter(parts.items()))
    of_items = "tasks" if first.of_texts else "contexts"
    found = []
    for name, part in list(parts.items())[1:]:
        if _topics(part) != _topics(first):
            found.append(f"{name} and {first_name} used different {of_items}: no pair of systems is tested.")
        if part.index.get("fingerprint") != first.index.get("fingerprint"):
            found.append(f"{name} and {first_name} used different indexes.")
        for rule, value in part.rules.items():
            if value != first.rules[rule]:
                found.append(f"{name} had {rule} {said(value)}, {first_name} {said(first.rules[rule])}.")
        for metric, settings in part.settings.items():
            if settings != first.settings.get(metric, settings):
                found.append(f"{name} and {first_name} set {metric} differently: left out.")
        if part.k != first.k:
            found.append(f"{name} looked at {part.k} hits, {first_name} at {first.k}.")
    return found


def _items(parts: Mapping[str, Figures], systems: Mapping[str, tuple[str, str]], columns: Sequence[str]) -> Items:
    """The items of the first part, with the scores of the systems of all parts."""
    scores = {}
    for name, (part, there) in systems.items():
        items = parts[part].items
        scores[name] = items.scores[there][:, [items.columns.index(column) for column in columns]]
    first = next(iter(parts.values())).items
    ranks = {name: parts[part].items.ranks[there] for name, (part, there) in systems.items() if parts[part].items.ranks}
    return replace(first, scores=scores, columns=columns, ranks=ranks)
