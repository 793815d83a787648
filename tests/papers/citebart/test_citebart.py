"""CiteBART: it learns a planted rule, goes on where it stopped, and what it writes is found in the index."""

from collections.abc import Callable
from pathlib import Path

import pytest

from citerec import Context, Recipe, Recommender
from citerec.contexts.provenance import provenance_of_part
from citerec.contexts.topic import topic_of
from citerec.corpus.matching import plain_title
from citerec.errors import InputError, ModelError, QueryError, SettingsError
from citerec.index.build import build_index
from citerec.models.text_models import TextModel
from citerec.papers.citebart.model import CiteBartManifest, CiteBartOptions, citation_of, input_of, train_citebart
from citerec.records import Paper
from citerec.train.groups import Choice, Schedule
from tests.conftest import Citerec, write_lines
from tests.tiny_seq2seq import write_tiny_bart
from tests.training import stopped_and_continued

pytestmark = pytest.mark.slow

Train = Callable[..., CiteBartManifest]

# A word of the sentence decides who is cited. Two papers have the same author and year.
CITED = {"river": "0", "stone": "1", "cloud": "2", "grass": "3"}
PAPERS = [
    Paper("0", title="Parsing", year=2001, authors=("Ada Lovelace",)),
    Paper("1", title="Ranking", year=2002, authors=("Alan Turing", "Grace Hopper")),
    Paper("2", title="Speech", year=2003, authors=("Édouard Lucas", "Emmy Noether", "Emil Post")),
    Paper("3", title="Memory", year=2004, authors=("Kurt Gödel",)),
    Paper("4", title="Grass and memory of mice", year=2004, authors=("Karl Gödel",)),
    Paper("5", title="Nobody", year=2005),
    Paper("6", title="No year", authors=("Alonzo Church",)),
]
BEGINNINGS = ("this saw", "we know of", "others like", "much on", "there is")


def contexts_of(first: int, times: int) -> list[dict[str, object]]:
    return [
        {
            "context_id": f"{word}-{number}",
            "text": f"{BEGINNINGS[number % len(BEGINNINGS)]} {word} <REF> .",
            "citing_key": f"paper-{number}",
            "citing_year": 2020,
            "cited_ids": [paper_id],
        }
        for number in range(first, first + times)
        for word, paper_id in CITED.items()
    ]


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("citebart")
    records = [
        {"paper_id": one.paper_id, "title": one.title, "year": one.year, "authors": list(one.authors)} for one in PAPERS
    ]
    build_index([write_lines(folder / "papers.jsonl", records)], folder / "index")
    write_lines(folder / "train.jsonl", contexts_of(0, 12))
    write_lines(folder / "dev.jsonl", contexts_of(50, 3))
    words = [*map(citation_of, PAPERS), *BEGINNINGS, *CITED, "<REF> ."]
    write_tiny_bart(folder / "base", words)
    return folder


@pytest.fixture(scope="session")
def train(planted: Path) -> Train:
    def call(out: Path, contexts: Path | None = None, **changes: object) -> CiteBartManifest:
        reporting = {name: changes.pop(name) for name in ("on_progress", "note") if name in changes}
        return train_citebart(
            Choice(contexts or planted / "train.jsonl", planted / "dev.jsonl"),
            planted / "index",
            out,
            CiteBartOptions(str(planted / "base"), 32, 8),
            Schedule(**{"learning_rate": 1e-2, "evaluations": 4, "checkpoint_every": 2, "first": True, **changes}),  # type: ignore[arg-type]
            device="cpu",
            **reporting,  # type: ignore[arg-type]
        )

    return call


@pytest.fixture(scope="session")
def trained(train: Train, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trained") / "citebart"
    manifest = train(out, epochs=30, patience=4)
    assert manifest.dev["accuracy before"] < 0.5 < 0.9 < manifest.dev["accuracy"]
    return out


def recipe(model: Path, *more: str) -> Recipe:
    return Recipe.load(
        "citebart", [f"citebart.model={model}", "citebart.beams=4", "citebart.max_input_tokens=32", *more]
    )


def test_author_and_year_as_authors_write_them() -> None:
    cited = ["Lovelace, 2001", "Turing and Hopper, 2002", "Lucas et al., 2003", "Gödel, 2004", "Gödel, 2004", "", ""]
    assert [citation_of(paper) for paper in PAPERS] == cited
    assert plain_title("(Gödel, 2004)") == plain_title("Godel 2004") == "godel 2004"


def test_the_mask_stands_where_the_citation_stood(planted: Path) -> None:
    model = TextModel.open(str(planted / "base"), device="cpu")
    assert model.mask == "<REF>"  # this one has no mask of its own
    context = Context(text="we know of <REF> river .", before="this saw", citing_title="grass")
    read = model.decode(input_of(model, topic_of(context), 32))
    assert read == "this saw we know of <REF> river . grass"
    alone = input_of(model, topic_of(context, neighbours=False), 32)
    assert model.decode(alone) == "we know of <REF> river . grass"


def test_it_learns_who_is_cited(planted: Path, trained: Path) -> None:
    """In sentences that begin as none did in training; of one author and year, words decide."""
    with Recommender.open(planted / "index", recipe(trained)) as recommender:
        for word, paper_id in CITED.items():
            hits = recommender.search(f"there is {word} <REF> .", 3)
            assert hits[0].paper.paper_id == ("4" if word == "grass" else paper_id)
        assert [hit.paper.paper_id for hit in recommender.search("memory grass <REF>", 2)] == ["4", "3"]
        with pytest.raises(QueryError):
            recommender.search("<REF>")
    provenance = provenance_of_part(trained)
    assert (provenance.unsaid, len(provenance.trained_on), len(provenance.tuned_on)) == (
        (),
        20 + 12,
        12 + 3,
    )  # sentences and citing papers


def test_what_names_no_paper_is_counted_unless_it_cannot_be_written(planted: Path, trained: Path) -> None:
    with Recommender.open(planted / "index", recipe(trained, "citebart.beams=8")) as recommender:
        recommender.search("there is river <REF> .", 3)
        (remark,) = recommender.remarks()
        assert "of 8 citations that were written" in remark
        assert recommender.remarks() == ()
    with Recommender.open(planted / "index", recipe(trained, "citebart.constrained=true")) as recommender:
        hits = recommender.search("there is river <REF> .", 7)
        assert {hit.paper.paper_id for hit in hits} == {"0", "1", "2", "3", "4"}
        assert hits[0].paper.paper_id == "0"
        assert recommender.remarks() == ()


def test_a_stopped_training_goes_on(train: Train, tmp_path: Path) -> None:
    options = {"epochs": 20, "patience": 4}
    whole = train(tmp_path / "whole", **options)
    broken = stopped_and_continued(train, tmp_path / "broken", ("training", 5), ("measuring", 0), **options)
    assert broken.training["steps"] == whole.training["steps"]
    assert broken.dev["accuracy"] == pytest.approx(whole.dev["accuracy"], abs=0.3)


def test_what_cannot_be_learnt_is_said(train: Train, planted: Path, tmp_path: Path) -> None:
    nobody = [{**one, "cited_ids": ["5"]} for one in contexts_of(0, 2)]
    with pytest.raises(InputError, match=r"no cited paper in .* has an author and a year"):
        train(tmp_path / "model", write_lines(tmp_path / "nobody.jsonl", nobody))
    with pytest.raises(SettingsError, match="needs a model of the kind encoder-decoder") as raised:
        Recommender.open(planted / "index", "citebart")
    assert "citerec train citebart" in raised.value.remedy
    long = recipe(planted / "base", "citebart.max_new_tokens=200")
    with Recommender.open(planted / "index", long) as recommender, pytest.raises(ModelError, match="has room for 64"):
        recommender.search("river <REF>")


def test_the_command_trains(citerec: Citerec, planted: Path, tmp_path: Path) -> None:
    given = ("--contexts", planted / "train.jsonl", "--dev", planted / "dev.jsonl", "--index", planted / "index")
    small = (
        "--base",
        planted / "base",
        "-c",
        "epochs=1",
        "--limit",
        8,
        *"-c evaluations=1 -c max_input_tokens=32".split(),
    )
    done = citerec("train", "citebart", *given, *small, "--out", "model")
    assert done.returncode == 0, done.stderr
    assert "model trained: accuracy" in done.stdout
    assert (tmp_path / "model" / "manifest.json").is_file()
