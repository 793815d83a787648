"""Compares two folders of the yardstick: what answers otherwise, which figures are better or worse, what costs more."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

RESAMPLES = 2000
TOLERANCE, LIMIT = 0.005, 0.01
"""A figure may be worse by TOLERANCE, or by up to LIMIT if the interval of the difference includes 0."""
NOISE = 0.15
"""Costs within this share of each other are the same."""
SHOWN = 12


def compare(old: Path, new: Path) -> int:
    """Prints the comparison; 1 if a figure is worse than the tolerance allows, else 0."""
    for folder in (old, new):
        facts = read(folder / "record.json")
        print(f"{folder}: commit {facts['commit'][:12]}{' and changes' if facts['changed'] else ''}, {facts['date']}")
    worse = 0
    parts = (("runs.parquet", runs), ("answers.json", answers), ("figures.parquet", figures), ("cost.json", cost))
    for name, part in (*parts, ("faults.json", faults)):
        if missing := [str(folder) for folder in (old, new) if not (folder / name).exists()]:
            print(f"\n{name}: not in {' and '.join(missing)}")
            continue
        print(f"\n## {name}")
        for line, is_worse in part(old / name, new / name):
            print(line)
            worse += is_worse
    print(f"\n{worse} worse than is allowed" if worse else "\nNothing is worse than is allowed.")
    return min(worse, 1)


Lines = Iterator[tuple[str, bool]]


def runs(old: Path, new: Path) -> Lines:
    """How alike the lists of each system are."""
    lists = [
        {(row["set"], row["system"], row["context"]): row["papers"] for row in pq.read_table(path).to_pylist()}
        for path in (old, new)
    ]
    groups: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    for key in lists[0]:
        groups.setdefault(key[:2], []).append(key)
    for (name, system), keys in groups.items():
        common = [(lists[0][key], lists[1][key]) for key in keys if key in lists[1]]
        if len(common) < len(keys):
            yield f"{name} {system}: {len(keys) - len(common)} of {len(keys)} contexts are missing", True
        if not common:
            continue
        different = sum(before != after for before, after in common)
        if different:
            shares = ", ".join(f"overlap@{k} {overlap(common, k):.3f}" for k in (10, 100))
            yield f"{name} {system}: {different} of {len(common)} lists differ, {shares}", False
        else:
            yield f"{name} {system}: {len(common)} lists, all the same", False
    more = {key[:2] for key in lists[1]} - groups.keys()
    for name, system in sorted(more):
        yield f"{name} {system}: new", False


def overlap(pairs: list[tuple[list[int], list[int]]], k: int) -> float:
    """The mean share of the first k papers of one list that are among the first k of the other."""
    shares = [len(set(before[:k]) & set(after[:k])) / (len(before[:k]) or 1) for before, after in pairs]
    return float(np.mean(shares))


def answers(old: Path, new: Path) -> Lines:
    """Which sentences, drafts and texts have other answers."""
    before, after = read(old), read(new)
    for part in before:
        names = sorted(before[part].keys() | after.get(part, {}).keys())
        different = [name for name in names if before[part].get(name) != after.get(part, {}).get(name)]
        shown = "".join(f"\n  {name}: {_difference(before[part], after[part], name)}" for name in different[:SHOWN])
        more = f"\n  and {len(different) - SHOWN} more" if len(different) > SHOWN else ""
        yield f"{part}: {len(names) - len(different)} of {len(names)} the same{shown}{more}", False


def _difference(before: dict[str, Any], after: dict[str, Any], name: str) -> str:
    one, other = before.get(name), after.get(name)
    if isinstance(one, dict) and isinstance(other, dict):
        changed = [key for key in one if one[key] != other.get(key)]
        return "; ".join(f"{key}: {one[key]} -> {other.get(key)}" for key in changed)[:400]
    return f"{one} -> {other}"[:200]


def figures(old: Path, new: Path) -> Lines:
    """The difference of each figure, with its interval: 95 %, bootstrap over clusters, paired by unit."""
    before, after = values(old), values(new)
    strata_the_same = 0
    for name, units in before.items():
        if name not in after:
            yield f"{name}: missing", True
            continue
        common = [unit for unit in units if unit in after[name]]
        pairs = np.array([(units[unit][1], after[name][unit][1]) for unit in common])
        means = pairs.mean(0)
        line = f"{name}: {means[0]:.4g} -> {means[1]:.4g}"
        if len(common) < max(len(units), len(after[name])):
            line += f" (on {len(common)} of {len(units)} and {len(after[name])})"
        difference = float(means[1] - means[0])
        if not np.any(pairs[:, 0] != pairs[:, 1]):
            if name.startswith("diagnostics"):
                strata_the_same += 1
            else:
                yield f"{line}  same", False
            continue
        low, high = interval(pairs[:, 1] - pairs[:, 0], [units[unit][0] for unit in common])
        line += f"  {difference:+.4f} [{low:+.4f} {high:+.4f}]"
        if name.startswith("diagnostics"):
            yield f"{line}  differs", False
        elif -difference > LIMIT or (-difference > TOLERANCE and high < 0):
            yield f"{line}  WORSE THAN IS ALLOWED", True
        else:
            yield f"{line}  {'better' if difference > 0 else 'worse'}", False
    yield f"diagnostics: {strata_the_same} strata have as many contexts as before", False


def values(path: Path) -> dict[str, dict[str, tuple[str, float]]]:
    """The cluster and the value of each unit of each figure."""
    table = pq.read_table(path)
    columns = (table.column(name).to_pylist() for name in ("figure", "unit", "cluster", "value"))
    found: dict[str, dict[str, tuple[str, float]]] = {}
    for figure, unit, cluster, value in zip(*columns, strict=True):
        found.setdefault(figure, {})[unit] = (cluster, value)
    return found


def interval(differences: npt.NDArray[np.float64], clusters: list[str]) -> tuple[float, float]:
    """The 95 % interval of a mean difference, by a bootstrap over clusters (percentiles of 2,000 resamples)."""
    _, numbers = np.unique(clusters, return_inverse=True)
    sums, sizes = np.bincount(numbers, differences), np.bincount(numbers)
    drawn = np.random.default_rng(0).integers(len(sums), size=(RESAMPLES, len(sums)))
    low, high = np.percentile(sums[drawn].sum(1) / sizes[drawn].sum(1), (2.5, 97.5))
    return float(low), float(high)


def cost(old: Path, new: Path) -> Lines:
    """Seconds beside those of the peer, bytes: what differs by more than noise."""
    before, after = read(old), read(new)
    for name, measured in before.items():
        for unit, value in measured.items():
            changed = after.get(name, {}).get(unit)
            if changed is None:
                yield f"{name}, {unit}: missing", True
                continue
            share = changed / value - 1 if value else 0.0
            verdict = "same" if abs(share) <= NOISE else "less" if share < 0 else "more"
            yield f"{name}, {unit}: {value:.4g} -> {changed:.4g}  {share:+.0%}  {verdict}", False


def faults(old: Path, new: Path) -> Lines:
    """The share of mutants that the suite kills, with a one-sided 95 % interval of the difference."""
    before, after = read(old), read(new)
    for name in ("line coverage", "killed"):
        yield f"{name}: {before[name]:.3f} -> {after[name]:.3f}", False
    shares, sizes = (np.array([one[name] for one in (before, after)]) for name in ("killed", "mutants"))
    difference = float(shares[1] - shares[0])
    margin = 1.645 * float(np.sqrt((shares * (1 - shares) / sizes).sum()))
    yield (
        f"difference {difference:+.3f}, one-sided 95 % interval to {difference + margin:+.3f}",
        difference + margin < 0,
    )


def read(path: Path) -> Any:
    """A JSON file."""
    return json.loads(path.read_bytes())
