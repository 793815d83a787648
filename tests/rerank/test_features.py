"""What learning to rank sees: each feature by hand, and nothing that depends on the answer."""

import math
from dataclasses import replace

import numpy as np
import pytest

from citerec.contexts.topic import names_before, topic_of
from citerec.records import Context, Paper
from citerec.rerank.ltr import FEATURES, GROUPS, PORTABLE, features_of
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
PAPERS = {
    "1": Paper(
        "1", "Attention Suffices", "An abstract.", year=2017, authors=("Ada Lee",), venue="acl", citation_count=99
    ),
    "2": Paper("2", "Trees"),
}
CANDIDATES = columns(
    (
        Candidate("1", 2.0, None, {"fused": 2.0, "bm25": 4.0, "dense": 0.5}),
        Candidate("2", 1.0, None, {"fused": 1.0, "bm25": 8.0, "citance": 3.0}),
    ),
    records=PAPERS.values(),
)


def row(candidates: Candidates = CANDIDATES, place: int = 0, citing: Paper | None = CITING) -> dict[str, float]:
    features = features_of(topic_of(CONTEXT, citing), candidates)
    assert features.shape == (len(candidates), len(FEATURES))
    return dict(zip(FEATURES, features[place].tolist(), strict=True))


def test_what_retrievers_say_of_a_candidate() -> None:
    first, second = row(), row(place=1)
    assert (first["bm25"], first["bm25 rank"], first["bm25 share"]) == (4, 2, 0.5)
    assert (second["bm25"], second["bm25 rank"], second["bm25 share"]) == (8, 1, 1)
    assert (first["dense"], first["dense rank"]) == (0.5, 1)
    assert all(math.isnan(second[name]) for name in ("dense", "dense rank", "dense share"))
    assert math.isnan(first["citance"]) and second["citance rank"] == 1


def test_what_is_known_of_the_paper_and_of_the_pair() -> None:
    first, second = row(), row(place=1)
    assert first["log citations"] == pytest.approx(math.log(100))
    assert (first["age"], first["common authors"], first["same venue"], first["has abstract"]) == (3, 1, 1, 1)
    assert (first["title in sentence"], first["title words shared"], first["authors named"]) == (1, 2, 1)
    assert (first["title near"], first["first author near"], first["title words"]) == (1, 1, 2)
    assert (first["section"], first["intent"]) == (1, 0)
    assert all(math.isnan(second[name]) for name in ("log citations", "age", "same venue"))
    assert (second["has abstract"], second["title in sentence"], second["common authors"]) == (0, 0, 0)
    unknown = row(citing=None)
    assert math.isnan(unknown["common authors"]) and math.isnan(unknown["same venue"])


def test_the_features_of_a_candidate_do_not_depend_on_where_it_stands() -> None:
    swapped = CANDIDATES.taken(np.array([1, 0]))
    assert np.array_equal(list(row().values()), list(row(swapped, 1).values()), equal_nan=True)


def test_a_candidate_without_a_record_has_features_too() -> None:
    alone = row(columns([Candidate("unknown", 1.0)]))
    assert alone["title words shared"] == 0
    assert alone["title in sentence"] == 0 and math.isnan(alone["fused rank"])


def test_a_sentence_without_a_marker_has_no_words_before_it() -> None:
    topic = topic_of(Context(text="Lee showed that attention suffices."))
    (first, _) = features_of(topic, CANDIDATES)
    found = dict(zip(FEATURES, first.tolist(), strict=True))
    assert math.isnan(found["title near"]) and math.isnan(found["first author near"])
    assert found["title in sentence"] == 1


def test_names_right_before_the_marker() -> None:
    for text, expected in (("Lee and Moe <REF> show trees.", 0.5), ("Moe et al. <REF> show trees.", 0)):
        found = features_of(topic_of(Context(text=text)), CANDIDATES)[0, list(FEATURES).index("named before")]
        assert found == expected
    assert math.isnan(row()["named before"]) == (not names_before(topic_of(CONTEXT)))


def test_what_a_candidate_has_to_do_with_the_draft() -> None:
    cited = (Paper("3", "Forests", authors=("Ada Lee", "Cy Moe"), venue="acl"), PAPERS["1"])
    context = replace(CONTEXT, cited_before=("3", "1", "1"))
    signals = {"draft_times": np.array([2.0, 0.0]), "draft_ago": np.array([1.0, np.nan])}
    signals["draft_mean"], signals["draft_nearest"] = np.array([0.5, 0.75]), np.array([0.5, 0.75])
    known = replace(CANDIDATES, signals={**CANDIDATES.signals, **signals})
    first, second = features_of(topic_of(context, CITING, cited), known)
    first, second = (dict(zip(FEATURES, one.tolist(), strict=True)) for one in (first, second))
    assert (first["cited before"], first["cited ago"], first["draft papers"]) == (2, 1, 2)
    assert (first["draft mean gap"], first["draft mean rank"], second["draft nearest"]) == (0.25, 2, 0.75)
    # What the draft cites already does not count for itself.
    assert (first["draft authors"], first["draft venue"]) == (1, 0.5)
    assert (second["cited before"], second["draft authors"]) == (0, 0)
    assert math.isnan(second["cited ago"]) and math.isnan(second["draft venue"])
    alone = row()
    assert all(math.isnan(alone[name]) for name in FEATURES if name.startswith(("cited ", "draft ")))


def test_every_feature_is_explained_and_the_groups_are_features() -> None:
    assert all(feature.meaning and feature.kind for feature in FEATURES.values())
    assert {name for names in GROUPS.values() for name in names} <= set(FEATURES)
    assert not {"fused", "bm25", "dense", "citations rank", "has abstract", "section"} & set(PORTABLE)
