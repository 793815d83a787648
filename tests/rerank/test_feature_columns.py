"""Features from columns are those from records: of any papers, and of an index."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from hypothesis import given, settings, strategies as st

from citerec.contexts.read import read_contexts
from citerec.contexts.topic import Topic, topic_of
from citerec.recommend import Recommender
from citerec.records import Context, Paper
from citerec.rerank.ltr import FEATURES, features_of
from citerec.retrieve.base import Candidate, Candidates
from tests.columns import columns
from tests.conftest import DEMO
from tests.rerank.features_by_record import features_by_record

WORDS = st.sampled_from(
    ["BERT", "bert", "Straße", "STRASSE", "of", "trees", "Lee", "Çelik", "x-y", "a_b", "O'Neil", "İ"]
)
TEXTS = st.lists(st.tuples(WORDS, st.sampled_from([" ", ": ", ":", ", ", " <REF> ", "  "])), max_size=8).map(
    lambda parts: "".join(map("".join, parts))
)
NAMES = st.sampled_from(
    ["Ada Lee", "Bo Lee", "Lee", "ADA LEE", "Cy Çelik", "Ada O'Neil", "van den Straße", " ", "Ada Lee "]
)
PAPERS = st.builds(
    Paper,
    paper_id=st.just(""),
    title=TEXTS,
    year=st.none() | st.integers(0, 2030),
    venue=st.sampled_from([None, "", "ACL", "acl", "Straße", "STRASSE"]),
    authors=st.lists(NAMES, max_size=4).map(tuple),
    citation_count=st.none() | st.integers(0, 2**31 - 1),
)


def compared(topic: Topic, found: Candidates, records: list[Paper]) -> None:
    made = features_of(topic, found)
    for name, values in features_by_record(topic, records, found.signal("draft_times").tolist()).items():
        expected = np.array(values, np.float32)
        assert np.allclose(made[:, list(FEATURES).index(name)], expected, rtol=1e-6, atol=0, equal_nan=True), name


@settings(max_examples=300)
@given(
    st.lists(PAPERS, min_size=1, max_size=6),
    st.none() | PAPERS,
    st.none() | st.lists(PAPERS, max_size=4),
    TEXTS.filter(lambda text: text.count("<REF>") < 2),
    TEXTS,
    st.data(),
)
def test_of_any_papers(
    papers: list[Paper], citing: Paper | None, cited: list[Paper] | None, text: str, around: str, data: st.DataObject
) -> None:
    records = [replace(paper, paper_id=str(place)) for place, paper in enumerate(papers)]
    context = Context(
        text=text, before=around, cited_before=None if cited is None else tuple(map(str, range(len(cited))))
    )
    topic = topic_of(context, citing, cited or ())
    times = data.draw(st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=len(papers), max_size=len(papers)))
    listed = [Candidate(one.paper_id, 1.0, None, {"draft_times": how}) for one, how in zip(records, times, strict=True)]
    compared(topic, columns(listed, records=records), records)


def test_of_an_index(hybrid_index: Path) -> None:
    contexts = [
        replace(one, cited_before=("900000001", "900000002") if at % 2 else None)
        for at, one in enumerate(list(read_contexts(DEMO / "contexts.jsonl"))[:40])
    ]
    with Recommender.open(hybrid_index, "hybrid") as recommender:
        for topic, found in recommender.candidates(recommender.topics(contexts), 60):
            records = recommender.store.papers(found.paper_ids())
            compared(topic, found, [records[paper_id] for paper_id in found.paper_ids()])
