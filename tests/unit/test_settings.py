from pathlib import Path

import pytest

from citerec.drafts.online import OnlineSettings
from citerec.errors import SettingsError
from citerec.retrieve.words import WordSettings
from citerec.settings import setting_keys
from citerec.systems import Recipe, all_settings
from tests.conftest import ROOT


def test_a_recipe_then_single_assignments(tmp_path: Path) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text("[words]\nneighbours = 0.5\n[words.bm25]\nk1 = 2.0\nb = 0.1\n", encoding="utf-8")
    settings = Recipe.load(recipe, ["words.bm25.k1=0.9", "words.weights.title = 3"]).parts["words"]
    assert isinstance(settings, WordSettings)
    assert (settings.bm25.k1, settings.bm25.b, settings.weights.title, settings.neighbours) == (0.9, 0.1, 3.0, 0.5)
    for assignment, message in {
        "bm25.k1=1": r"'bm25.k1' is not a setting. Did you mean words.bm25.k1\?",
        "zzz=1": "Settings are: retrievers",
        "words.bm25.b=1.5": "words.bm25.b = '1.5': input should be less than or equal to 1",
        "words.bm25.b": "has no '='",
    }.items():
        with pytest.raises(SettingsError, match=message):
            Recipe.load(None, [assignment])


NO_RECIPES = f"""k = {"9" * 5000}
k = {"[" * 5000}
k1: 3
retrievers = [[1]]
retrievers = 1
retrievers.words.x = 1
retrievers = {{words = 'x'}}
retrievers = {{words = nan}}
retrievers = {{words = inf}}
retrievers = ['']
rerankers = [1]
rerankers = {{a = 1}}
fusion = 2001-01-01
words = [1]
words.bm25.k1.x = 1
words.bm25.k1 = 1e999
tuned_on.x = 1"""


def test_whatever_is_wrong_with_a_recipe_is_an_error_of_settings(tmp_path: Path) -> None:
    for content in (b"\xff", *NO_RECIPES.encode().splitlines()):
        (recipe := tmp_path / "r.toml").write_bytes(content)
        with pytest.raises(SettingsError) as error:
            Recipe.load(recipe)
        assert "\n" not in str(error.value)
    with pytest.raises(SettingsError, match="cannot read"):
        Recipe.load(tmp_path / "none.toml")


def test_shipped_recipes_load_and_every_setting_says_what_it_means() -> None:
    recipes = list((ROOT / "indexes" / "recipes").glob("*.toml"))
    assert recipes and all(Recipe.load(recipe) for recipe in recipes)
    assert all(meaning for _, meaning in all_settings().values())


def test_settings_within_settings_keep_the_defaults_of_their_place() -> None:
    settings = OnlineSettings.assigned(["crossref.pace=1"], "online")
    assert settings.crossref == OnlineSettings().crossref.model_copy(update={"pace": 1.0})
    assert setting_keys(OnlineSettings)["crossref.timeout"][0] == OnlineSettings().crossref.timeout
