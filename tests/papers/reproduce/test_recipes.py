"""Recipes: readable, and as the papers' tables are."""

import pkgutil

import pytest

from citerec.errors import InputError
from citerec.papers.common.reproduce import MEAN, models_of_metrics, read_recipe, recipe_paths
from citerec.papers.oarelatedwork.metrics import DEFAULT_MODEL
from citerec.write.drafting import PRESETS
from citerec.write.metrics import TEXT_METRICS
from citerec.write.writers.base import WRITERS

ASKED = {
    *(f"citebench-{number}" for number in (3, 4, 6, 7, 8, 11)),
    *(f"citesum-{number}" for number in (3, 5, 6, 7, 8, 9)),
    *("oarelatedwork-1", "oarelatedwork-2", "oarelatedwork-figure-4", "diagnostic-1"),
}


def test_every_table_that_was_asked_for_has_a_recipe() -> None:
    assert set(recipe_paths()) == ASKED


@pytest.mark.parametrize("name", sorted(ASKED))
def test_a_recipe_names_only_what_there_is(name: str) -> None:
    recipe = read_recipe(name)
    assert callable(pkgutil.resolve_name(recipe.runner))
    assert {row.writer for row in recipe.rows if row.writer} <= set(WRITERS)
    assert set(recipe.metrics) <= set(TEXT_METRICS)
    assert not recipe.metrics or recipe.preset in PRESETS
    assert recipe.data and set(recipe.groups) <= {data.name for data in recipe.data}
    assert (recipe.sample is None) == bool(recipe.no_sample)
    assert len({row.title for row in recipe.rows}) == len(recipe.rows) > 0
    width = len(recipe.measures) * max(1, len(recipe.groups))
    assert {len(row.published) for row in recipe.rows} <= {0, width}
    assert all(data.get and data.source and data.files for data in recipe.data)
    assert recipe.time
    if recipe.runner.endswith("texts:run"):  # each row is run, trained, fetched, or says why not
        assert all(row.writer or row.model or row.checkpoint or row.without for row in recipe.rows)


@pytest.mark.parametrize(
    ("name", "rows", "row", "figures"),
    [
        ("citebench-3", 8, "extractive: LexRank", {("LU", "R-L"): 14.24, ("XING", "BertS"): 75.14}),
        ("citebench-3", 8, "LED, trained: *led-base", {("ABURAED", "R-L"): (13.44, 0.03), ("XING", "BertS"): 78.49}),
        ("citebench-4", 4, "*led-base-xing", {("ABURAED", "R-L"): 11.97, ("XING", "BertS"): 78.70}),
        ("citebench-6", 8, "extractive: LEAD", {("ABURAED", "R-1"): 16.69, ("XING", "R-2"): 2.22}),
        ("citebench-7", 4, "*led-base-chen", {("CHEN S2ORC", "R-1"): 27.28, ("LU", "R-L"): 15.40}),
        ("citebench-8", 12, "XING: LexRank", {("", "Readability"): (3.56, 1.12), ("", "Consistency"): (2.04, 0.79)}),
        ("citebench-11", 6, "CHEN Delve", {("", "Data points"): 78927, ("", "Prevalence %"): 14.93}),
        ("citesum-3", 7, "SciTLDR", {("", "train"): 1992, ("", "words of summary"): 21}),
        ("citesum-3", 7, "TalkSumm", {("", "test"): None, ("", "words of source"): 4800}),
        ("citesum-5", 10, "extractive: EXT-HEURISTIC", {("", "R-1"): 29.32, ("", "R-L"): 23.99}),
        ("citesum-6", 14, "Few-shot: CiTES (128-shot)", {("", "R-1"): 44.5, ("", "R-L"): 36.5}),
        ("citesum-7", 2, "BART-large: CITES", {("Discipline classification", "Macro-F1"): 0.30}),
        ("citesum-8", 19, "100-shot: CITES", {("", "R-1"): 41.45, ("", "R-L"): 33.29}),
        ("citesum-9", 11, "Zero-shot: CITES-Title", {("", "R-1"): 27.87, ("", "R-L"): 24.56}),
        ("oarelatedwork-1", 6, "OARelatedWork Test", {("", "test"): 1878, ("", "paragraphs"): 3.20}),
        ("oarelatedwork-2", 19, "PRIMERA: GO all + target abstract", {("", "R2"): 0.15, ("", "BlockBertScore"): 0.16}),
    ],
)
def test_published_figures_are_where_the_paper_has_them(
    name: str, rows: int, row: str, figures: dict[tuple[str, str], object]
) -> None:
    recipe = read_recipe(name)
    assert sum(bool(one.published) for one in recipe.rows) == rows
    published = recipe.published(next(one for one in recipe.rows if one.title == row))
    shown = {key: figure if isinstance(figure, tuple) else (figure, None) for key, figure in figures.items()}
    assert {key: published.get(key, (None, None)) for key in figures} == shown


def test_the_mean_of_the_data_sets_is_that_of_the_printed_figures() -> None:
    recipe = read_recipe("citebench-3")
    lead = next(row for row in recipe.rows if row.name == "LEAD")
    assert recipe.published(lead)[MEAN, "R-L"] == (11.61, None)  # (11.32 + 11.48 + 11.34 + 13.34 + 10.55) / 5 = 11.606


def test_an_unknown_name_suggests_a_near_one() -> None:
    with pytest.raises(InputError, match=r"no table 'citbench-3'.*Did you mean citebench-3\?"):
        read_recipe("citbench-3")


def test_the_model_that_a_metric_needs_is_the_one_that_it_opens() -> None:
    assert DEFAULT_MODEL in models_of_metrics(read_recipe("oarelatedwork-figure-4")).values()
