"""The retriever `galactica` and the reranker `title-likelihood`, with a model that learnt a planted rule."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from citerec import Context, Filters, Recipe, Recommender, evaluate
from citerec.contexts.provenance import PROVENANCE, Provenance
from citerec.errors import ModelError, SettingsError
from citerec.index.manifest import trained_of
from citerec.models.loading import ModelManifest
from citerec.models.text_models import TextModel
from citerec.papers.diagnostic.galactica import likelihoods
from citerec.systems import provenance_of_system
from tests.conftest import Citerec
from tests.papers.galactica.conftest import PAPERS, WORDS, reference, sentence
from tests.tiny_causal import END, START

TITLES = {str(paper["corpusid"]): paper["title"] for paper in PAPERS}


def assignments(model: Path, *more: str) -> list[str]:
    return [f"galactica.model={model}", f"title_likelihood.model={model}", "galactica.beams=4", *more]


@pytest.fixture(scope="module")
def named(small_index: Path, namer: Path) -> Iterator[Recommender]:
    with Recommender.open(small_index, Recipe.load("galactica", assignments(namer))) as opened:
        yield opened


def ids(recommender: Recommender, text: str, **options: object) -> list[str]:
    return [hit.paper.paper_id for hit in recommender.search(text, 10, **options)]  # type: ignore[arg-type]


def test_it_learns_which_paper_a_word_stands_for(named: Recommender) -> None:
    """In sentences that begin as none did in training."""
    first = [ids(named, f"{sentence(word)} <REF> .")[:1] for word in WORDS]
    assert first == [[str(number)] for number in range(1, len(WORDS) + 1)]


def test_only_what_stands_before_the_marker_is_read(named: Recommender) -> None:
    text = sentence("parsing")
    assert ids(named, f"{text} <REF> and tagging")[0] == ids(named, text)[0] == "1"
    assert named.search(Context(text="<REF>", before=text, after=sentence("tagging")), 5).hits[0].paper.paper_id == "1"


def test_references_that_name_no_paper_are_counted_and_shown(named: Recommender) -> None:
    named.remarks()
    hits = ids(named, f"{sentence('mist')} <REF>")
    (remark,) = named.remarks()
    unmatched = int(remark.split()[0])
    assert remark.startswith(f"{unmatched} of 4 references")
    assert 1 <= unmatched <= 4 - len(hits)
    assert named.remarks() == ()  # said once


def test_eval_and_recommend_tell_of_them(small_index: Path, namer: Path, citerec_here: Citerec, tmp_path: Path) -> None:
    shutil.copytree(small_index, index := tmp_path / "index")
    shutil.copytree(namer, trained_of(index, "galactica"))  # then no setting is needed
    contexts = [
        Context(text=f"{sentence(word)} <REF>.", context_id=word, cited_ids=(str(number),), citing_key=word)
        for number, word in enumerate([*WORDS, "mist"], 1)
    ]
    results = evaluate(["galactica", "bm25+title-likelihood"], contexts, index=index, metrics="recall@10", k=10)
    assert results.systems["galactica"].overall.values["recall@10"] >= 8 / 9
    (note,) = [note for note in results.record.notes if note.startswith("galactica: ")]
    assert 0 < int(note.split()[3]) <= 10 * len(contexts)  # those of the warm-up are not counted
    said = citerec_here("recommend", f"{sentence('mist')} <REF>", "--index", index, "--system", "galactica")
    assert said.returncode == 0
    assert "references that were written" in " ".join(said.stderr.split())


def test_filters_and_leak_rules_apply_to_what_is_matched(named: Recommender) -> None:
    text = f"{sentence('poetry')} <REF>"
    assert ids(named, text)[0] == "8"  # of 2008
    assert "8" not in ids(named, text, filters=Filters(exclude=("8",)))
    named.remarks()
    assert "8" not in [hit.paper.paper_id for hit in named.search(Context(text=text, citing_year=2004), 10)]
    assert "name one that a filter or a leak rule leaves out" in named.remarks()[0]
    assert ids(named, text, filters=Filters(year_from=2008)) == ["8"]


def test_many_contexts_are_answered_as_each_alone(named: Recommender) -> None:
    contexts = [
        Context(text=f"{'and so on ' * number}{sentence(word)} <REF>", context_id=word)
        for number, word in enumerate(WORDS)
    ]
    run = named.search_many(contexts, 4)
    for context in contexts:
        alone = named.search(context, 4)
        assert run.top(context.context_id) == [hit.paper.paper_id for hit in alone]
        assert list(run[context.context_id].values()) == pytest.approx([hit.score for hit in alone], abs=1e-4)


def test_constrained_writing_names_papers_of_the_index_only(small_index: Path, namer: Path) -> None:
    recipe = Recipe.load("galactica", assignments(namer, "galactica.constrained=true", "galactica.distance=0"))
    with Recommender.open(small_index, recipe) as constrained:
        (retriever,) = constrained.retrievers
        for word in (*WORDS, "mist"):
            ((topic,),) = [list(constrained.topics([Context(text=f"{sentence(word)} <REF>")]))]
            (written,) = retriever.prepare([topic])
            assert len(written) == 4
            assert all(any(one.text.startswith(title) for title in TITLES.values()) for one in written)
        assert ids(constrained, f"{sentence('vision')} <REF>")[0] == "4"
        # All papers, if as many beams are asked for.
    recipe = Recipe.load("galactica", assignments(namer, "galactica.constrained=true", "galactica.beams=20"))
    with Recommender.open(small_index, recipe) as everything:
        found = everything.search(f"{sentence('vision')} <REF>", 12)
        assert {hit.paper.paper_id for hit in found} == set(TITLES) - {"14"}  # stop words alone are not found


def test_candidates_are_ranked_by_the_likelihood_of_their_references(small_index: Path, namer: Path) -> None:
    model = TextModel.open(str(namer))
    text = sentence("speech")
    with Recommender.open(small_index, Recipe.load("bm25+title-likelihood", assignments(namer))) as ranked:
        hits = ranked.search(f"{text} : a study of methods <REF>", 8, explain=True)
    asked = [model.continuation(f"{reference(word)}{END}", after=START) for word in WORDS]
    prompt = model.last_tokens(f"{text} : a study of methods {START}", 90)
    exact = {
        str(number): one / len(asked[number - 1])
        for number, one in enumerate(likelihoods(model, prompt, asked).tolist(), 1)
    }
    assert hits[0].paper.paper_id == max(exact, key=exact.__getitem__)
    assert {hit.paper.paper_id: pytest.approx(hit.score, abs=1e-4) for hit in hits} == exact
    assert hits[0].reasons[0].name == "title-likelihood"
    with (
        Recommender.open(
            small_index, Recipe.load("bm25+title-likelihood", assignments(namer, "title_likelihood.weight=0"))
        ) as unweighed,
        Recommender.open(small_index, "bm25") as before,
    ):
        assert ids(unweighed, f"{text} <REF>") == ids(before, f"{text} <REF>")


def test_what_the_model_learnt_from_is_known(small_index: Path, namer: Path, tmp_path: Path) -> None:
    shutil.copytree(namer, model := tmp_path / "model")
    recipe = Recipe.load("galactica+title-likelihood", assignments(model))
    assert not provenance_of_system(small_index, recipe).trained_on  # made elsewhere
    ModelManifest(kind="citerec-causal").write(model)
    Provenance.of([Context(text="seen <REF>", citing_id="1")]).write(model / PROVENANCE)
    assert len(provenance_of_system(small_index, recipe).trained_on) == 2


def test_a_model_that_is_missing_or_unfit_is_said_with_its_remedy(
    small_index: Path, namer: Path, tmp_path: Path, citerec_here: Citerec
) -> None:
    for system, key in (("galactica", "galactica"), ("bm25+title-likelihood", "title_likelihood")):
        with pytest.raises(SettingsError, match="needs a model of the kind causal model") as raised:
            Recommender.open(small_index, system)
        assert f"-c {key}.model=facebook/galactica-125m" in raised.value.remedy
    command = ("recommend", "we parse <REF>", "--index", small_index, "--system", "galactica", "-c")
    said = citerec_here(*command, f"galactica.model={tmp_path / 'none'}")
    assert said.returncode == 2
    assert "there is no model folder" in said.stderr
    for setting, message in (("end=two words", "is not one token"), ("max_new_tokens=500", "has room for 160 tokens")):
        recipe = Recipe.load("galactica", assignments(namer, f"galactica.{setting}"))
        with Recommender.open(small_index, recipe) as unfit, pytest.raises(ModelError, match=message):
            unfit.search("we parse <REF>", 3)
