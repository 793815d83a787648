"""The road on the project's real data: counts, published figures, the author's own entries."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from citerec.contexts.read import read_contexts
from citerec.contexts.topic import LeakRules
from citerec.corpus.base import entries_of
from citerec.index.build import BuildOptions, build_index, encode_index
from citerec.index.manifest import Layout, open_store
from citerec.index.vectors import DenseOptions
from citerec.recommend import Recommender
from citerec.retrieve.run import SearchOptions
from citerec.systems import Recipe

pytestmark = [pytest.mark.shared, pytest.mark.slow]
Figures = tuple[float, float, float]
ONE_FIELD = ("words.bm25.k1=0.9", "words.bm25.b=0.4", "words.weights.title=0", "words.near=0")


def measured(
    index: Path, contexts: Path, settings: Sequence[str] = (), system: str = "bm25+citances", **options: bool
) -> Figures:
    """Recall@10, recall@100 and MRR@10, averaged over contexts."""
    at_10, at_100, reciprocal = [], [], []
    with Recommender.open(index, Recipe.load(system, settings)) as recommender:
        topics = recommender.topics(read_contexts(contexts), neighbours=options.pop("neighbours", True))
        for topic, candidates in recommender.candidates(topics, 100, options=SearchOptions(LeakRules(**options))):
            gold = set(topic.context.cited_ids)
            ranked = [candidate.paper_id for candidate in candidates]
            assert topic.citing_id not in ranked
            if options.get("as_of_year", True):  # nothing newer than the citing paper
                years = [paper.year or 0 for paper in recommender.store.papers(ranked[:5]).values()]
                assert max(years, default=0) <= (topic.context.citing_year or 9999)
            at_10.append(len(gold & set(ranked[:10])) / len(gold))
            at_100.append(len(gold & set(ranked)) / len(gold))
            reciprocal.append(next((1 / rank for rank, one in enumerate(ranked[:10], 1) if one in gold), 0.0))
    return tuple(sum(figures) / len(figures) for figures in (at_10, at_100, reciprocal))  # type: ignore[return-value]


def test_one_field_of_lucene_gives_the_figures_measured_before_the_first_line(shared: Path, tmp_path: Path) -> None:
    contexts, lucene = shared / "acm" / "contexts-dev.jsonl", tmp_path / "acm"
    build_index([shared / "acm"], lucene, BuildOptions(layout=Layout(engine="lucene")))
    both_rules = measured(lucene, contexts, ONE_FIELD, neighbours=False)
    assert both_rules == pytest.approx((0.317, 0.474, 0.236), abs=0.001)
    citing_paper_only = measured(lucene, contexts, ONE_FIELD, neighbours=False, as_of_year=False)
    assert citing_paper_only == pytest.approx((0.282, 0.439, 0.206), abs=0.001)


def test_words_and_vectors_together_beat_words(shared: Path, tmp_path: Path) -> None:
    contexts, acm = shared / "acm" / "contexts-dev.jsonl", tmp_path / "acm"
    counts = build_index([shared / "acm"], acm).counts
    assert (counts.papers, counts.with_abstract, counts.bad) == (106_338, 96_540, 0)
    defaults = measured(acm, contexts)
    assert defaults == pytest.approx((0.370, 0.542, 0.273), abs=0.001)
    encode_index(acm, DenseOptions("all-MiniLM-L6-v2", vectors=(shared / "acm" / "minilm-l6",)))
    hybrid = measured(acm, contexts, system="hybrid")
    assert hybrid == pytest.approx((0.513, 0.729, 0.362), abs=0.003)  # the encoder's last digits are the processor's
    ratios = [both / alone for both, alone in zip(hybrid, defaults, strict=True)]
    assert all(ratio >= promised for ratio, promised in zip(ratios, (1.36, 1.32, 1.29), strict=True))


def test_citing_sentences_find_what_titles_do_not(shared: Path, tmp_path: Path) -> None:
    contexts, acl = shared / "acl" / "contexts-dev.jsonl", tmp_path / "acl"
    counts = build_index([shared / "acl"], acl).counts
    assert (counts.papers, counts.with_abstract, counts.citances, counts.with_citances) == (73_965, 0, 13_530, 1046)
    # Tight, so that docs/results.md cannot grow stale unnoticed.
    assert measured(acl, contexts, ["words.weights.citances=0"]) == pytest.approx((0.200, 0.372, 0.118), abs=0.001)
    assert measured(acl, contexts) == pytest.approx((0.592, 0.780, 0.415), abs=0.001)


def test_an_authors_library_comes_back_byte_for_byte(shared: Path, tmp_path: Path) -> None:
    library = shared / "bibtex" / "sigir.bib"
    counts = build_index([library], tmp_path / "sigir").counts
    assert counts.papers + counts.bad + counts.duplicates == 5251
    text = library.read_bytes().decode()
    keys = re.findall(r"^@\w+\{([^,\s]+),", text, re.MULTILINE)
    assert len(set(keys)) == counts.papers
    papers = open_store(tmp_path / "sigir").papers(keys)
    pieces = {piece.strip() for piece in re.split(r"\n(?=@)", text)}
    assert set(entries_of(papers.values())) == pieces
    with Recommender.open(tmp_path / "sigir") as recommender:
        for paper in list(papers.values())[::150]:
            found = recommender.search(paper.title + " <REF>", k=30)
            assert paper.paper_id in {hit.paper.paper_id for hit in found}
