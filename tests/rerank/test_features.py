"""What learning to rank sees: each feature by hand, and nothing that depends on the answer."""

import math
from dataclasses import replace

import numpy as np
import pytest

from citerec.contexts.topic import Topic, topic_of
from citerec.records import Context, Paper
from citerec.rerank.ltr import FEATURES, PORTABLE, features_of
from citerec.retrieve.base import Candidate, Candidates
from tests.columns import columns

CITING = Paper("9", "Mine", year=2020, authors=("Ada Lee", "Bo Ray"), venue="ACL")
CONTEXT = Context(
    text="Lee showed that attention suffices <REF>.",
    citing_id="9",
    citing_year=2020,
    section="3 Related Work",
    intent="background",
)
FIRST = Paper("1", "Attention Suffices", "A.", year=2017, authors=("Ada Lee",), venue="acl", citation_count=99)
CANDIDATES = columns(
    (
        Candidate("1", 2.0, None, {"fused": 2.0, "bm25": 4.0, "dense": 0.5}),
        Candidate("2", 1.0, None, {"fused": 1.0, "bm25": 8.0, "citance": 3.0}),
    ),
    records=(FIRST, Paper("2", "Trees")),
)


def features(topic: Topic, candidates: Candidates = CANDIDATES) -> list[dict[str, float]]:
    """Of each candidate, by name."""
    rows = features_of(topic, candidates)
    assert rows.shape == (len(candidates), len(FEATURES))
    return [dict(zip(FEATURES, row, strict=True)) for row in rows.tolist()]


def test_what_retrievers_the_record_and_the_sentence_say_of_a_candidate() -> None:
    first, second = features(topic_of(CONTEXT, CITING))
    assert (first["bm25"], first["bm25 rank"], first["bm25 share"]) == (4, 2, 0.5)
    assert (second["bm25"], second["bm25 rank"], second["bm25 share"]) == (8, 1, 1)
    assert (first["dense"], first["dense rank"], second["citance rank"]) == (0.5, 1, 1)
    assert all(math.isnan(second[name]) for name in ("dense", "dense rank", "dense share"))
    assert first["log citations"] == pytest.approx(math.log(100))
    assert (first["age"], first["common authors"], first["same venue"], first["has abstract"]) == (3, 1, 1, 1)
    assert (first["title in sentence"], first["title words shared"], first["authors named"]) == (1, 2, 1)
    assert (first["title near"], first["first author near"], first["title words"]) == (1, 1, 2)
    assert (first["section"], first["intent"], first["sentence words"]) == (1, 0, 5)
    assert all(math.isnan(second[name]) for name in ("log citations", "age", "same venue"))
    assert (second["has abstract"], second["title in sentence"], second["common authors"]) == (0, 0, 0)
    unknown, _ = features(topic_of(CONTEXT))
    assert math.isnan(unknown["common authors"]) and math.isnan(unknown["same venue"])
    assert all(math.isnan(first[name]) for name in FEATURES if name.startswith(("cited ", "draft ")))


def test_words_around_the_sentence_of_the_citing_title_and_a_name_before_a_colon() -> None:
    papers = (Paper("1", "BERT: forests of trees"), Paper("2", "Trees"), Paper("3", ""))
    candidates = columns([Candidate(paper.paper_id, 1.0) for paper in papers], records=papers)
    context = Context(text="We use Bert <REF>.", before="Trees grow.", citing_title="Of forests")
    bert, trees, empty = features(topic_of(context), candidates)
    # A word counts by how few of the titles have it: "trees" is in two of three.
    rare, common = math.log1p(3), math.log1p(3 / 2)
    assert bert["title in sentence"] == pytest.approx(rare / (3 * rare + common))
    assert bert["title around"] == pytest.approx(common / (3 * rare + common))
    assert bert["title in citing title"] == pytest.approx(2 * rare / (3 * rare + common))
    assert (trees["title around"], trees["title in sentence"], empty["title around"]) == (1, 0, 0)
    assert (bert["name in sentence"], trees["name in sentence"]) == (1, 0)


def test_no_feature_depends_on_the_place_and_a_candidate_needs_no_record() -> None:
    topic = topic_of(CONTEXT, CITING)
    swapped = features_of(topic, CANDIDATES.taken(np.array([1, 0])))
    assert np.array_equal(swapped[::-1], features_of(topic, CANDIDATES), equal_nan=True)
    (alone,) = features(topic, columns([Candidate("unknown", 1.0)]))
    assert alone["title words shared"] == alone["title in sentence"] == 0 and math.isnan(alone["fused rank"])


def test_what_a_candidate_has_to_do_with_the_draft() -> None:
    cited = (Paper("3", "Forests", authors=("Ada Lee", "Cy Moe"), venue="acl"), FIRST)
    context = replace(CONTEXT, cited_before=("3", "1", "1"))
    signals = {"draft_times": np.array([2.0, 0.0]), "draft_ago": np.array([1.0, np.nan])}
    signals |= dict.fromkeys(("draft_mean", "draft_nearest"), np.array([0.5, 0.75]))
    known = replace(CANDIDATES, signals={**CANDIDATES.signals, **signals})
    first, second = features(topic_of(context, CITING, cited), known)
    assert (first["cited before"], first["cited ago"], first["draft papers"]) == (2, 1, 2)
    assert (first["draft mean gap"], first["draft mean rank"], second["draft nearest"]) == (0.25, 2, 0.75)
    # What the draft cites already does not count for itself.
    assert (first["draft authors"], first["draft venue"]) == (1, 0.5)
    assert (second["cited before"], second["draft authors"]) == (0, 0)
    assert math.isnan(second["cited ago"]) and math.isnan(second["draft venue"])
    # A portable ranker reads only what every index means alike.
    assert not {"fused", "bm25", "dense", "citations rank", "has abstract", "section"} & set(PORTABLE)
