"""Training NCN: it learns a planted rule, it goes on, no title is appended, and it says what is wrong."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from citerec.contexts.provenance import provenance_of_part
from citerec.errors import InputError
from citerec.index.build import build_index
from citerec.papers.diagnostic.ncn import Manifest, Ncn, NcnOptions, train_ncn
from citerec.recommend import Recommender
from citerec.records import Context
from citerec.systems import Recipe
from citerec.train.groups import Choice, Schedule
from tests.conftest import Citerec, write_lines
from tests.tiny_ncn import TINY
from tests.training import how_of, made_of

pytestmark = pytest.mark.slow

Train = Callable[..., Manifest]

# A word of the sentence decides which title is cited; the title does not have it, and search finds all alike.
RULE = {
    "river": "Parsing of trees",
    "stone": "Ranking of pages",
    "cloud": "Speech of children",
    "grass": "Memory of mice",
}
SHARED = "study"


def contexts_of(rule: dict[str, str], times: int, first: int = 0) -> list[dict[str, object]]:
    return [
        {
            "context_id": f"{word}-{number}",
            "text": f"This {SHARED} saw a {word} in case {number} <REF>.",
            "citing_key": f"paper-{number}",
            "citing_year": 2020,
            "cited_ids": [str(list(RULE).index(word))],
        }
        for number in range(first, first + times)
        for word in rule
    ]


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of four cited papers and four others, all with a word that each sentence has; contexts beside it."""
    folder = tmp_path_factory.mktemp("planted")
    titles = [*RULE.values(), *(f"Other {word} of things" for word in ("ways", "kinds", "uses", "tests"))]
    papers = [
        {
            "paper_id": str(number),
            "title": title,
            "abstract": f"A {SHARED}.",
            "year": 2000 + number % 3,
            # The same for all: a network that reads the authors of a title needs no context to write it.
            "authors": ["Ada Author"],
        }
        for number, title in enumerate(titles)
    ]
    build_index([write_lines(folder / "papers.jsonl", papers)], folder / "index")
    write_lines(folder / "train.jsonl", contexts_of(RULE, 12))
    write_lines(folder / "dev.jsonl", contexts_of(RULE, 3, 50))
    return folder


@pytest.fixture
def train(planted: Path) -> Train:
    def call(
        out: Path, *, contexts: str | Path = "train.jsonl", dev: str | Path = "dev.jsonl", **changes: object
    ) -> Manifest:
        choice = made_of(Choice, changes, path=planted / contexts, dev=planted / dev)
        options = made_of(NcnOptions, changes, sizes=TINY, depth=8, batch=8)
        schedule = made_of(Schedule, changes, learning_rate=1e-2, evaluations=2, checkpoint_every=2)
        how = {"system": Recipe.load("bm25"), "device": "cpu", **how_of(changes)}
        return train_ncn(choice, planted / "index", out, options, schedule, **how)

    return call


def test_it_learns_which_title_a_word_asks_for(train: Train, planted: Path, tmp_path: Path) -> None:
    manifest = train(tmp_path / "ncn", epochs=25, evaluations=5, patience=5)
    assert manifest.dev["mrr@10 before"] < 0.6
    assert manifest.dev["mrr@10"] > 0.9
    assert manifest.weight > 0
    assert (manifest.training["groups"], manifest.training["dev_groups"]) == (48, 12)
    # What was learnt is what the reranker ranks by.
    recipe = Recipe.load(f"bm25+{tmp_path / 'ncn'}")
    with Recommender.open(planted / "index", recipe) as recommender:
        for number, (word, title) in enumerate(RULE.items()):
            hit = recommender.search(f"We saw a {word} in this {SHARED} <REF>.", 1)[0]
            assert (hit.paper.paper_id, hit.paper.title) == (str(number), title)
    provenance = provenance_of_part(tmp_path / "ncn")
    assert provenance.unsaid == ()
    assert len(provenance.trained_on) == 48 + 12
    assert provenance.trained_on.isdisjoint(provenance.tuned_on)


def test_the_cited_paper_is_not_appended_to_the_candidates(train: Train, planted: Path, tmp_path: Path) -> None:
    """A network that writes the cited title for sure does not lift a paper that was not found."""
    missed = [{**one, "text": str(one["text"]).replace(SHARED, "other")} for one in contexts_of(RULE, 3, 50)]
    manifest = train(tmp_path / "ncn", dev=write_lines(tmp_path / "dev.jsonl", missed), epochs=25, evaluations=1)
    assert manifest.dev["recall@10"] == 0
    asked = Context(text=str(missed[0]["text"]))
    with Recommender.open(planted / "index", f"bm25+{tmp_path / 'ncn'}") as recommender:
        found = {hit.paper.paper_id for hit in recommender.search(asked, 8)}
        (topic,) = recommender.topics([asked])
        papers = recommender.store.papers(map(str, range(8)))
        scores = Ncn.open(tmp_path / "ncn").scores(topic, [papers[str(number)] for number in range(8)])
    assert scores.argmax() == 0  # the cited one would be the first
    assert found == {"4", "5", "6", "7"}


def test_what_is_wrong_is_said_in_one_line(train: Train, tmp_path: Path) -> None:
    unknown = write_lines(tmp_path / "unknown.jsonl", [{**one, "cited_ids": ["no"]} for one in contexts_of(RULE, 2)])
    with pytest.raises(InputError, match="for train cites a paper of"):
        train(tmp_path / "ncn", contexts=unknown)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    with pytest.raises(InputError, match="is no NCN"):
        train(tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "precious"
    assert not (tmp_path / "ncn").exists()


def test_papers_without_titles_are_not_learned(tmp_path: Path) -> None:
    papers = [{"paper_id": "0", "title": "…", "abstract": SHARED}, {"paper_id": "1", "title": "It", "abstract": SHARED}]
    build_index([write_lines(tmp_path / "papers.jsonl", papers)], tmp_path / "index")
    contexts = write_lines(tmp_path / "contexts.jsonl", contexts_of({"river": ""}, 12))
    with pytest.raises(InputError, match="has a title"):
        train_ncn(
            Choice(contexts, dev_share=0.5),
            tmp_path / "index",
            tmp_path / "ncn",
            NcnOptions(TINY),
            Schedule(learning_rate=1e-2),
            system=Recipe.load("bm25"),
        )


def test_the_commands_train_and_measure(citerec_here: Citerec, planted: Path, tmp_path: Path) -> None:
    shutil.copytree(planted / "index", tmp_path / "index")
    given = ("--contexts", planted / "train.jsonl", "--dev", planted / "dev.jsonl", "--index", "index")
    sizes = ("-c", "embedding=12", "-c", "hidden=12", "-c", "filters=8", "-c", "batch=8")
    done = citerec_here("train", "ncn", *given, *sizes, "-c", "epochs=2", "-c", "evaluations=1", "--limit", 20)
    assert done.returncode == 0, done.stderr
    assert "index/trained/ncn trained: mrr@10" in done.stdout
    manifest = Ncn.open(tmp_path / "index" / "trained" / "ncn").manifest
    assert (manifest.sizes.embedding, manifest.sizes.hidden, manifest.sizes.context_words) == (12, 12, 32)
    assert manifest.training["retrieval"] == Recipe.load("bm25+citances").changes()
    asked = (
        "--contexts",
        planted / "dev.jsonl",
        "--index",
        "index",
        "--metrics",
        "mrr@5",
        "--include-training-contexts",
    )
    measured = citerec_here("eval", *asked, "--system", "ncn", "--system", "bm25+citances+ncn")
    assert measured.returncode == 0, measured.stderr
    assert "ncn" in measured.stdout
