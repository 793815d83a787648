"""Learning from the index itself: its citing sentences are the contexts, and some are withheld or stand in drafts."""

from pathlib import Path

import numpy as np
import orjson
import pytest

from citerec import Context, Recommender
from citerec.errors import InputError
from citerec.index.build import BuildOptions, build_index
from citerec.retrieve.words import WithheldCitances, WordsRetriever, withheld
from citerec.train.ranking import LEAST_SENTENCES, drafted, marked, own_contexts
from tests.conftest import Citerec, s2ag_paper, write_lines

CITED = 60


@pytest.fixture(scope="module")
def cited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Papers of which each is cited ten times, by the words that its title lacks; q1 cites two in one sentence."""
    folder = tmp_path_factory.mktemp("own")
    titles = {f"p{number}": f"Study of subject{number}" for number in range(CITED)}
    papers = [{"paper_id": name, "title": title, "year": 2000} for name, title in titles.items()]
    papers += [{"paper_id": f"q{number}", "title": f"Citing {number}", "year": 2010} for number in range(10)]
    citances = [
        {"text": f"The okapi{paper} method <REF> by q{citing}.", "citing_id": f"q{citing}", "cited_ids": [f"p{paper}"]}
        for paper in range(CITED)
        for citing in range(10)
    ]
    citances.append({"text": "Both of them <REF>.", "citing_id": "q1", "cited_ids": ["p1", "p2"]})
    sources = write_lines(folder / "papers.jsonl", papers), write_lines(folder / "citances.jsonl", citances)
    build_index([sources[0]], folder / "index", BuildOptions(citances=(sources[1],)))
    return folder / "index"


def test_citing_sentences_are_contexts_once_for_all_that_they_cite(cited: Path) -> None:
    contexts = own_contexts(cited, None, 0)
    assert len(contexts) == 10 * CITED + 1
    assert len({one.context_id for one in contexts}) == len(contexts)
    (both,) = [one for one in contexts if len(one.cited_ids) == 2]
    assert (both.cited_ids, both.citing_id, both.citing_year) == (("p1", "p2"), "q1", 2010)


def test_a_limit_keeps_whole_citing_papers(cited: Path) -> None:
    citing = [one.citing_id for one in own_contexts(cited, 140, 1)]
    assert 0 < len(citing) < 10 * CITED + 1 and len(set(citing)) >= len(citing) / (CITED + 1)


def test_too_few_are_refused_with_a_number_that_would_do(hybrid_index: Path, citerec_here: Citerec) -> None:
    with pytest.raises(InputError, match=rf"show their citation: {LEAST_SENTENCES} are needed"):
        own_contexts(hybrid_index, None, 0)
    run = citerec_here("train", "ltr", "--index", hybrid_index)
    assert run.returncode == 2 and "--contexts FILE" in run.stderr


def test_sentences_that_do_not_show_their_citation_are_no_contexts(tmp_path: Path) -> None:
    (corpus := tmp_path / "corpus").joinpath("papers").mkdir(parents=True)
    (corpus / "citations").mkdir()
    write_lines(corpus / "papers" / "0.jsonl", [s2ag_paper(1, title="Cited")])
    said = [
        {"citationid": n, "citingcorpusid": n, "citedcorpusid": 1, "contexts": [f"Said [1] and [2] {n}."]}
        for n in range(2, LEAST_SENTENCES + 2)
    ]
    write_lines(corpus / "citations" / "0.jsonl", said)
    build_index([corpus], tmp_path / "index")
    with pytest.raises(InputError, match="show their citation"):
        own_contexts(tmp_path / "index", None, 0)


def test_a_ranker_is_learnt_without_a_file(cited: Path, citerec_here: Citerec, tmp_path: Path) -> None:
    run = citerec_here(
        "train", "ltr", "--index", cited, "--system", "bm25+citances", "-c", "rounds=20", "--out", tmp_path / "ltr"
    )
    assert run.returncode == 0, run.stderr
    manifest = orjson.loads((tmp_path / "ltr" / "manifest.json").read_bytes())
    assert manifest["training"]["contexts"] == "the citing sentences of the index"
    assert manifest["dev"]["mrr@10"] > 0.9


def test_a_portable_ranker_reads_only_what_every_index_means_alike(
    cited: Path, citerec_here: Citerec, tmp_path: Path
) -> None:
    said = ("train", "ltr", "--index", cited, "--system", "bm25+citances", "--portable")
    run = citerec_here(*said)
    assert run.returncode == 2 and "give --out FOLDER" in run.stderr
    assert citerec_here(*said, "--out", tmp_path / "all").returncode == 0
    manifest = orjson.loads((tmp_path / "all" / "manifest.json").read_bytes())
    assert "bm25 rank" in manifest["features"] and "bm25" not in manifest["features"]


def test_what_is_withheld_differs_by_context_and_is_of_the_share(cited: Path) -> None:
    with Recommender.open(cited, "bm25+citances") as opened:
        topics = list(opened.topics([Context(text="the okapi7 method <REF>", context_id=f"c{n}") for n in range(40)]))
        rows = opened.index.rows.rows([f"p{number}" for number in range(CITED)])
        shares = [withheld(topic, rows, 0.5, 0).mean() for topic in topics]
        assert 0.4 < np.mean(shares) < 0.6 and len({tuple(withheld(one, rows, 0.5, 0)) for one in topics}) == 40
        assert not withheld(topics[0], rows, 0.0, 0).any() and withheld(topics[0], rows, 1.0, 0).all()
        (words,) = [one for one in opened.retrievers if isinstance(one, WordsRetriever)]
        for topic in topics[:8]:
            found = WithheldCitances(words, 0.5, 0).search(topic, 20)
            without = withheld(topic, found.rows, 0.5, 0)
            assert np.isnan(found.signal("citance")[without]).all()
            assert all(found.citance(place) is None for place in np.flatnonzero(without))
            assert found.scores.tolist() == sorted(found.scores.tolist(), reverse=True)
            assert ("p7" in found.paper_ids()) is not bool(withheld(topic, rows[7:8], 0.5, 0)[0])


def test_drafts_are_made_of_what_the_same_paper_cites_elsewhere() -> None:
    contexts = [Context(text="a <REF>", context_id=f"c{n}", citing_id="q", cited_ids=(f"p{n}",)) for n in range(6)]
    contexts += [Context(text="b <REF>", context_id="alone", citing_id="r", cited_ids=("p1",))]
    contexts += [Context(text="c <REF>", context_id="known", citing_id="r2", cited_ids=("p1",), cited_before=("p9",))]
    made = list(drafted(contexts, 0))
    assert made == list(drafted(contexts, 0))
    for context, draft in zip(contexts[:6], made[:6], strict=True):
        assert draft is None or set(draft.cited_before or ()) <= {f"p{n}" for n in range(6)} - set(context.cited_ids)
    assert any(made[:6]) and made[6] is None and made[7] == contexts[7]


@pytest.mark.parametrize(
    ("text", "marked_text"),
    [
        ("Trees rank well (Author, 2000) here.", "Trees rank well <REF> here."),
        ("Trees (Roe, 1999) and nets (Doe, 2000).", "Trees (Roe, 1999) and nets <REF>."),
        ("Trees rank [12] well.", "Trees rank <REF> well."),
        ("Trees [3] and nets [4].", None),
        ("Nothing is cited.", None),
        ("Trees <REF> (Roe, 2000).", "Trees <REF> (Roe, 2000)."),
    ],
)
def test_the_citation_of_a_sentence_without_a_marker(text: str, marked_text: str | None) -> None:
    assert marked(text, 2000) == marked_text
