"""Results as a directory: results.json and what stands beside it (docs/formats.md)."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from citerec.corpus.json_lines import raw_lines
from citerec.diagnostics.sets import write_qrels
from citerec.errors import CiterecError, InputError
from citerec.evaluation.cost import Cost
from citerec.evaluation.rank import Ranking
from citerec.evaluation.report.page import write_page
from citerec.evaluation.results import (
    KIND,
    VERSION,
    Comparison,
    FamilyInfo,
    Outcome,
    Results,
    Robustness,
    Scores,
    SystemResult,
)
from citerec.groundwork.directories import Kind
from citerec.retrieve.base import Candidate
from citerec.retrieve.index import open_store
from citerec.retrieve.trec import write_run

FIGURES = "results.json"
TABLE = "results.csv"
OUTCOMES = "contexts.jsonl"
QRELS = "qrels.txt"
RUNS = "runs"
PAGE = "report.html"
RESULTS = Kind("folder of results", KIND, FIGURES, frozenset({FIGURES, TABLE, OUTCOMES, QRELS, RUNS, PAGE}))
_FIRST = 3


def write_results(results: Results, out: Path) -> None:
    """Writes results beside their place, and puts them there at the end; older results go.

    Args:
        results: The results.
        out: The directory.

    Raises:
        InputError: Something else stands there.
        BuildError: The disk is full, or may not be written to.
    """
    if not results.rankings and (out / RUNS).is_dir() and any((out / RUNS).iterdir()):
        raise InputError(
            f"{out} has runs, which would be lost: results that were read back hold none", "Write them elsewhere."
        )
    with RESULTS.writing(out) as partial:
        (partial / RUNS).mkdir()
        (partial / FIGURES).write_bytes(orjson.dumps(results.to_json(), option=orjson.OPT_INDENT_2))
        results.to_frame().to_csv(partial / TABLE, index=False)
        with (partial / OUTCOMES).open("wb") as file:
            for outcome in results.outcomes:
                file.write(orjson.dumps(outcome, option=orjson.OPT_APPEND_NEWLINE))
        write_qrels(partial / QRELS, ((outcome.context_id, outcome.cited) for outcome in results.outcomes))
        for name, ranking in results.rankings.items():
            write_run(partial / RUNS / f"{name}.trec", _answers(ranking, results.asked), name)
        write_report(results, partial / PAGE)


def write_report(results: Results, path: Path) -> None:
    """Writes the page of results, with titles of papers as far as the index is still there."""
    numbers = {context_id: number for number, context_id in enumerate(results.asked)}

    def titles_of(paper_ids: set[str]) -> dict[str, str]:
        try:
            store = open_store(Path(results.index["path"]))
        except CiterecError:
            return {}
        try:
            return {paper_id: paper.title for paper_id, paper in store.papers(paper_ids).items()}
        finally:
            store.close()

    def top_of(name: str, context_id: str) -> list[str]:
        if name not in results.rankings:
            return []
        run = results.rankings[name].run
        begin = int(np.searchsorted(run.contexts, numbers[context_id]))
        end = int(np.searchsorted(run.contexts, numbers[context_id], side="right"))
        return [run.paper_ids[paper] for paper in run.papers[begin : min(begin + _FIRST, end)]]

    write_page(results, path, titles_of, top_of)


def read_results(folder: Path) -> Results:
    """Reads results back, but for their runs.

    Raises:
        InputError: There are none, or they are broken, or of another version.
    """
    again = "Evaluate again: citerec eval … --out " + str(folder)
    try:
        value = orjson.loads((folder / FIGURES).read_bytes())
        kind, version = value.get("kind"), value.get("version")
    except OSError as error:
        raise InputError(f"{folder} holds no results: it has no {FIGURES}", again) from error
    except (orjson.JSONDecodeError, AttributeError) as error:
        raise InputError(f"{folder / FIGURES} is broken ({error})", again) from error
    if kind != KIND:
        raise InputError(f"{folder} is a {kind}, not {KIND}", again)
    if version != VERSION:
        raise InputError(f"{folder} holds results of version {version}; this citerec reads version {VERSION}", again)
    try:
        outcomes = [Outcome(**orjson.loads(raw)) for _, raw, _ in raw_lines(folder / OUTCOMES)]
        results = _from_json(value, outcomes)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"the results in {folder} are broken ({error})", again) from error
    if len(outcomes) != results.set["counted"]:
        raise InputError(
            f"{folder / OUTCOMES} has {len(outcomes):,} contexts where {results.set['counted']:,} should be", again
        )
    return results


def _from_json(value: Mapping[str, Any], outcomes: Sequence[Outcome]) -> Results:
    metrics = tuple(value["metrics"])
    for key in (
        "name",
        "source",
        "counted",
        "contexts",
        "outside",
        "alike",
        "citing_papers_known",
        "without_citing_year",
    ):
        value["set"][key]
    for system in value["systems"].values():
        for family, info in value["families"].items():
            for label in info["classes"]:
                system["families"][family][label]
    return Results(
        set=value["set"],
        index=value["index"],
        rules=value["rules"],
        metrics=metrics,
        k=value["k"],
        seed=value["seed"],
        resamples=value["resamples"],
        families={name: FamilyInfo(**family) for name, family in value["families"].items()},
        systems={name: _system(system, metrics) for name, system in value["systems"].items()},
        comparisons=tuple(Comparison(**comparison) for comparison in value["comparisons"]),
        outcomes=tuple(outcomes),
        notes=tuple(value["notes"]),
    )


def _system(value: Mapping[str, Any], metrics: Sequence[str]) -> SystemResult:
    def scores(entry: Mapping[str, Any]) -> Scores:
        bounds = {name: None if found is None else (found[0], found[1]) for name, found in entry["ci"].items()}
        return Scores(entry["n"], {name: entry[name] for name in metrics}, bounds)

    return SystemResult(
        kind=value["kind"],
        overall=scores(value["overall"]),
        families={
            family: {label: scores(entry) for label, entry in classes.items()}
            for family, classes in value["families"].items()
        },
        robustness=tuple(Robustness(**line) for line in value["robustness"]),
        fates=value["fates"],
        ranks=value["ranks"],
        without_hit=value["without_hit"],
        removed=value["removed"],
        settings=value["settings"],
        cost=Cost(**value["cost"]) if value["cost"] else None,
    )


def _answers(ranking: Ranking, asked: Sequence[str]) -> Iterator[tuple[str, list[Candidate]]]:
    """Context ids with their hits, best first; contexts without a hit too."""
    run = ranking.run
    begins = np.searchsorted(run.contexts, np.arange(len(asked) + 1)).tolist()
    for number, context_id in enumerate(asked):
        rows = slice(begins[number], begins[number + 1])
        found = zip(run.papers[rows].tolist(), run.scores[rows].tolist(), strict=True)
        yield context_id, [Candidate(run.paper_ids[paper], score) for paper, score in found]
