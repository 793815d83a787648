"""Galactica: references that a model writes, their likelihood, and the papers of an index that they name.

The corpus has a few papers, and the model learnt to name them: the word of a sentence says which is cited.
"""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from citerec import Context, Recipe, Recommender
from citerec.contexts.topic import topic_of
from citerec.index.build import build_index
from citerec.models.text_models import TextModel
from citerec.papers.common.written import TokenSequences, suggestions
from citerec.papers.diagnostic.galactica import lead_of, likelihoods, match
from citerec.retrieve.base import OpenIndex
from citerec.retrieve.entries import title_search
from tests.conftest import s2ag_paper, write_lines
from tests.tiny_causal import END, START, write_tiny_gpt2, write_tiny_opt

Ids = Callable[..., list[str]]
WORDS = ("parsing", "tagging", "ranking", "vision", "speech", "graphs", "search", "poetry")
PAPERS = [
    s2ag_paper(number, f"A Study of {word.title()}: Methods, Data", authors=[{"name": f"A. {word[:3].title()}ley"}])
    for number, word in enumerate(WORDS, 1)
]
PAPERS += [
    s2ag_paper(11, "Introduction", authors=[{"name": "Ada Roe"}]),
    s2ag_paper(12, "Introduction", authors=[{"name": "Bo Poe"}, {"name": "Ada Roe"}]),
    s2ag_paper(13, "The Poincaré-style embedding", authors=[]),
    s2ag_paper(14, "To be, or not to be", authors=[{"name": "Will S."}]),
]
BEGINNINGS = ("we rely on", "others improve", "much is known of", "there is new work on", "as usual we begin with")


def sentence(word: str) -> str:
    return f"recent work extends {word}"


def reference(word: str) -> str:
    return f" A Study of {word.title()}: Methods, Data, {word[:3].title()}ley"


@pytest.fixture(scope="session")
def small_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("galactica")
    write_lines(folder / "corpus" / "papers.jsonl", PAPERS)
    build_index([folder / "corpus"], folder / "index")
    return folder / "index"


@pytest.fixture(scope="session")
def namer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that names the papers, and after "mist" one that the index does not have."""
    said = {word: reference(word) for word in WORDS} | {"mist": " Unknown Titles in the Mist, Low"}
    lines = [f"{begun} {word} {START}{named}{END}" for begun in BEGINNINGS for word, named in said.items()]
    others = [sentence("recent"), *(f" {paper['title']}, Roe Poe S." for paper in PAPERS)]
    return write_tiny_opt(tmp_path_factory.mktemp("models") / "namer", [*lines, *others], lines, steps=150)


NAMES = [" Deep parsing, Roe", " Shallow parsing of very long sentences, Poe", " Deep trees", " Deep trees, Low"]
LEARNT = [f"Parsers read trees {START}{title}{END}" for title in NAMES]
PROMPTS = [f"Parsers {START}", f"Trees of very long sentences read deep trees of parsing {START}", START]
TEXTS = [*LEARNT, *PROMPTS]


@pytest.fixture(scope="module", params=[write_tiny_opt, write_tiny_gpt2])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TextModel:
    write: Callable[..., Path] = request.param
    return TextModel.open(str(write(tmp_path_factory.mktemp("causal") / "model", TEXTS, LEARNT, steps=3)), device="cpu")


def test_likelihoods_are_those_that_transformers_computes(model: TextModel) -> None:
    plain = AutoModelForCausalLM.from_pretrained(model.name).eval()
    asked = [model.continuation(title + END, after=START) for title in NAMES]
    for text in PROMPTS:
        prompt = model.last_tokens(text, 50)
        found = likelihoods(model, prompt, [*asked, ()])
        for ids, likelihood in zip(asked, found[:-1], strict=True):
            with torch.no_grad():
                logits = plain(torch.tensor([[*prompt, *ids]])).logits[0].log_softmax(-1)
            exact = sum(float(logits[len(prompt) - 1 + place, one]) for place, one in enumerate(ids))
            assert likelihood == pytest.approx(exact, abs=1e-4)
        assert found[-1] == 0


def test_constrained_search_finds_what_is_allowed_and_in_the_order_of_likelihood(model: TextModel) -> None:
    """Prompts of several lengths together, too."""
    wanted = [model.continuation(title + END, after=START) for title in NAMES]
    prompts = [model.last_tokens(text, 50) for text in PROMPTS]
    (end,) = model.continuation(END)
    together = suggestions(model, prompts, 6, 12, end, allowed=TokenSequences(wanted))
    for prompt, found in zip(prompts, together, strict=True):
        by_likelihood = zip(likelihoods(model, prompt, wanted), wanted, strict=True)
        exact = sorted(((one / len(ids), model.decode(ids[:-1])) for one, ids in by_likelihood), reverse=True)
        assert [one.text for one in found] == [text for _, text in exact]  # six beams, four titles
        assert [one.score for one in found] == pytest.approx([mean for mean, _ in exact], abs=1e-4)


@pytest.fixture(scope="module")
def matched(small_index: Path) -> Iterator[Ids]:
    with contextlib.closing(OpenIndex.open(small_index)) as index:
        search = title_search(index)
        yield lambda text, far=0.0: match(text, search, index.store, far)


@pytest.mark.parametrize(
    ("written", "far", "found"),
    [
        ("the POINCARE style  embedding.", 0, ["13"]),
        ("A Study of Parsing: Methods, Data, Parley", 0, ["1"]),  # commas in a title
        # Of several papers of one title the surname of the first author decides.
        ("Introduction, Roe", 0, ["11"]),
        ("Introduction, B. Poe", 0, ["12"]),
        ("Introduction, Someone", 0, ["11", "12"]),
        # The nearest title counts up to the stated distance.
        ("A Study of Parsing: Method, Dat, Parley", 0.15, ["1"]),
        ("A Study of Parsing: Method, Dat, Parley", 0.01, []),
        ("Nothing of the kind", 1.0, []),
        ("To be, or not to be, S.", 0, []),  # a limit: words that are never searched are not found
    ],
)
def test_a_written_reference_is_matched_to_papers(matched: Ids, written: str, far: float, found: list[str]) -> None:
    assert matched(written, far) == found


def test_a_writer_goes_on_from_what_stands_before_the_marker() -> None:
    context = Context(text="As [3] and <REF> showed.", before="First [1].", after="Last.")
    assert lead_of(topic_of(context)) == "First . As and"
    assert lead_of(topic_of(context, neighbours=False)) == "As and"
    assert lead_of(topic_of(Context(text="<REF> showed it."))) == "showed it."
    assert lead_of(topic_of(Context(text="No marker"))) == "No marker"


def test_it_learns_which_paper_a_word_stands_for(small_index: Path, namer: Path) -> None:
    """In sentences that begin as none did in training; only what stands before the marker is read."""
    recipe = Recipe.load("galactica", [f"galactica.model={namer}", "galactica.beams=4"])
    with Recommender.open(small_index, recipe) as named:
        answers = [named.search(f"{sentence(word)} <REF> and tagging", 10) for word in WORDS]
        assert [hits[0].paper.paper_id for hits in answers] == list(map(str, range(1, len(WORDS) + 1)))
        before = Context(text="<REF>", before=sentence("parsing"), after=sentence("tagging"))
        assert named.search(before, 5).hits[0].paper.paper_id == "1"
        named.remarks()
        hits = named.search(f"{sentence('mist')} <REF>", 10)
        (remark,) = named.remarks()  # of references that name no paper
        unmatched = int(remark.split()[0])
        assert remark.startswith(f"{unmatched} of 4 references")
        assert 1 <= unmatched <= 4 - len(hits)
        assert named.remarks() == ()  # said once
