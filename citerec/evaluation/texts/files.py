"""An evaluation of written texts as a directory (docs/formats.md)."""

import csv
import math
from pathlib import Path

import orjson

from citerec.evaluation.texts.page import write_page
from citerec.evaluation.texts.results import KIND, TextResults
from citerec.groundwork.directories import Kind

FIGURES = "results.json"
SCORES = "scores.csv"
PAGE = "report.html"
TEXT_RESULTS = Kind("folder of results of eval-text", KIND, FIGURES, frozenset({FIGURES, SCORES, PAGE}))


def write_text_results(results: TextResults, out: Path) -> None:
    """Writes results beside their place, and puts them there at the end; older results go.

    Args:
        results: The results.
        out: The directory: results.json; scores.csv, text by text; report.html.

    Raises:
        InputError: Something else stands there.
        BuildError: The disk is full, or may not be written to.
    """
    with TEXT_RESULTS.writing(out) as partial:
        (partial / FIGURES).write_bytes(orjson.dumps(results.to_json(), option=orjson.OPT_INDENT_2))
        _write_scores(results, partial / SCORES)
        write_page(results, partial / PAGE)


def _write_scores(results: TextResults, path: Path) -> None:
    """One row a text; what is not defined is an empty cell."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["system", "dataset", "id", *(column.name for column in results.columns)])
        for system, scores in results.scores.items():
            for task, row in zip(results.predictions.tasks, scores.tolist(), strict=True):
                writer.writerow([system, task.dataset, task.task_id, *("" if math.isnan(one) else one for one in row)])
