from pathlib import Path

import pytest

from citerec.errors import SettingsError
from citerec.retrieve.words import WordSettings
from citerec.systems import Recipe, all_settings


def test_a_recipe_then_single_assignments(tmp_path: Path) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text("[words]\nneighbours = 0.5\n[words.bm25]\nk1 = 2.0\nb = 0.1\n", encoding="utf-8")
    settings = Recipe.load(recipe, ["words.bm25.k1=0.9", "words.weights.title = 3"]).parts["words"]
    assert isinstance(settings, WordSettings)
    assert (settings.bm25.k1, settings.bm25.b, settings.weights.title, settings.neighbours) == (0.9, 0.1, 3.0, 0.5)


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("words.bm25.k=1", r"'words.bm25.k' is not a setting. Did you mean words.bm25.k1\?"),
        ("bm25.k1=1", r"'bm25.k1' is not a setting. Did you mean words.bm25.k1\?"),
        ("words.weights.titel=1", r"Did you mean words.weights.title\?"),
        ("zzz=1", "Settings are: retrievers"),
        ("words.neighbours.x=1", "neighbours"),
        ("words.bm25.b=1.5", "words.bm25.b = '1.5': input should be less than or equal to 1"),
        ("words.bm25.b", "has no '='"),
    ],
)
def test_what_is_wrong_is_said(assignment: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        Recipe.load(None, [assignment])


NO_RECIPES = {
    "a number of 5,000 digits": "k = " + "9" * 5000,
    "nested too deeply": "k = " + "[" * 5000,
    "no UTF-8": b"\xff",
    "a list for retrievers": "retrievers = [[1]]",
    "a number for retrievers": "retrievers = 1",
    "a table in retrievers": "[retrievers.words]\nx = 1",
    "no weight": "retrievers = {words = 'x'}",
    "NaN": "retrievers = {words = nan}",
    "endless": "retrievers = {words = inf}",
    "no name": "retrievers = ['']",
    "numbers for rerankers": "rerankers = [1]",
    "a table for rerankers": "rerankers = {a = 1}",
    "a date": "fusion = 2001-01-01",
    "a list for a part": "words = [1]",
    "a table for a number": "[words.bm25.k1]\nx = 1",
    "a huge number": "words.bm25.k1 = 1e999",
    "a table for a name": "[tuned_on]\nx = 1",
}


@pytest.mark.parametrize("content", NO_RECIPES.values(), ids=NO_RECIPES)
def test_whatever_is_wrong_with_a_recipe_is_an_error_of_settings(tmp_path: Path, content: str | bytes) -> None:
    (recipe := tmp_path / "r.toml").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(SettingsError) as error:
        Recipe.load(recipe)
    assert "\n" not in str(error.value)


def test_a_recipe_that_is_no_toml(tmp_path: Path) -> None:
    (recipe := tmp_path / "r.toml").write_text("k1: 3", encoding="utf-8")
    with pytest.raises(SettingsError, match="is not TOML"):
        Recipe.load(recipe)
    with pytest.raises(SettingsError, match="cannot read"):
        Recipe.load(tmp_path / "none.toml")


@pytest.mark.parametrize("recipe", sorted((Path(__file__).parents[2] / "indexes" / "recipes").glob("*.toml")))
def test_shipped_recipes_load(recipe: Path) -> None:
    assert Recipe.load(recipe)


def test_every_setting_says_what_it_means() -> None:
    assert all(meaning for _, meaning in all_settings().values())
