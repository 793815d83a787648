"""Records of answers, whole and damaged."""

from typing import Any

import pytest
from hypothesis import given, strategies as st

from citerec.corpus.reading import RecordError
from citerec.records import Paper
from citerec.sources.look_up import SemanticScholar, readable
from tests.live.services import demo_papers, graph_paper

paper_of = SemanticScholar.paper_of
ATTENTION = next(paper for paper in demo_papers() if paper["corpusid"] == 900000041)

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=6,
)


def test_a_record_with_nulls_and_missing_fields() -> None:
    whole = graph_paper(ATTENTION)
    assert paper_of(whole).title == "Attention Is All You Need"
    alone = paper_of({"corpusId": 7})
    assert alone == Paper("7") == paper_of({**dict.fromkeys(whole), "corpusId": 7})
    for bad in ({**whole, "corpusId": None}, {}):
        with pytest.raises(RecordError):
            paper_of(bad)


@given(st.data())
def test_any_value_in_any_field_is_read_or_left_out(data: st.DataObject) -> None:
    records: list[Any] = [graph_paper(ATTENTION), data.draw(values), None, "text", 7, {}]
    for record in list(records[:1]):
        for key in data.draw(st.sets(st.sampled_from(sorted(record)), max_size=3)):
            record[key] = data.draw(values)
    for paper in readable(records, paper_of):
        assert paper.paper_id
        assert " " not in paper.paper_id
        for text in (paper.title, paper.abstract or "", paper.venue or "", paper.tldr or "", *paper.authors):
            assert text == " ".join(text.split())
