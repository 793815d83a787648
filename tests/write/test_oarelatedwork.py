"""OARelatedWork's published records, in each of their shapes, become tasks with their full texts."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from citerec.errors import InputError, SourceError
from citerec.papers.oarelatedwork.data import OARELATEDWORK
from citerec.write.anchors import anchors_of, cited_in
from citerec.write.task_files import parse_task, read_tasks
from tests.conftest import write_lines
from tests.write.oarelatedwork_records import PUBLISHED, flattened, sentence, tree, tree_record

TARGET = (
    "Rivers were mapped by [0] and <cite>UNK<sep>A Lost Map<sep>Ben Poe</cite>, see <ref>figure</ref>. Then came <eq>\n"
    "Lakes\n"
    "Lakes were counted [1]. Some say <cite>UNK</cite>."
)


@pytest.mark.parametrize("shape", ["tree", "string", "flattened"])
def test_each_shape_is_the_same_task(shape: str) -> None:
    record: dict[str, Any] = {"tree": tree_record, "string": lambda: PUBLISHED, "flattened": flattened}[shape]()
    task = OARELATEDWORK.parse(json.loads(json.dumps(record)))
    assert task.targets == (TARGET,)
    assert task.citing == "We draw maps. They are blue."
    assert [(source.paper_id, source.title, source.text) for source in task.sources] == [
        ("11", "Of Rivers", "Rivers are long."),
        ("12", "Of Lakes", "Lakes are wide. They are deep."),
    ]
    assert task.sources[1].sentences == ("Lakes are wide.", "They are deep.")
    assert (task.task_id, task.dataset) == ("7", "oarelatedwork")
    assert task.extra == {
        "citing_id": "7", "title": "Of Maps", "headline": "Related Work", "subsections": True,
    }  # fmt: skip
    rest, nothing = (source.rest for source in task.sources)
    assert nothing is None
    assert rest is not None
    assert rest.text == "They begin small [1].\nThey end in $$x^2$$ the sea."
    assert task.citing_rest is not None
    assert task.citing_rest.text == "Maps are old. See <cite>13<sep>Of Seas<sep>UNK</cite>."
    assert task.citing_rest.sentences[0] == "Maps are old."
    without = parse_task(record)
    assert [source.rest for source in without.sources] == [None, None]
    assert without.citing_rest is None


def test_a_record_with_abstracts_only() -> None:
    record = flattened()
    record["referenced"] = [
        {**paper, "hierarchy": paper["hierarchy"][0]["paragraphs"]} for paper in record["referenced"]
    ]
    record["hierarchy"] = None
    task = OARELATEDWORK.parse(record)
    assert [source.text for source in task.sources] == ["Rivers are long.", "Lakes are wide. They are deep."]
    assert ([source.rest for source in task.sources], task.citing_rest) == ([None, None], None)


def test_citations_of_known_titles_are_read_back() -> None:
    task = parse_task(dict(PUBLISHED))
    assert cited_in(task.targets[0], task.sources).sources == {0, 1}
    assert [anchor.title for anchor in anchors_of(task.targets[0])] == ["", "A Lost Map", "", ""]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"related_work": "{no json"}, "not JSON"),
        ({"related_work": None}, "its related work is empty"),
        ({"referenced": ["x"]}, "referenced holds a str"),
        ({"hierarchy": 7}, "a text is a int"),
        ({"hierarchy": [{"paragraphs": []}]}, "it cannot be read"),
    ],
)
def test_what_is_no_such_record_is_told(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "bad.jsonl", [{**PUBLISHED, **change}])
    with pytest.raises(InputError, match=said):
        list(read_tasks(path))


def test_the_authors_files_without_cited_papers_are_told(tmp_path: Path) -> None:
    record = {name: value for name, value in tree_record().items() if name != "referenced"}
    path = write_lines(tmp_path / "train.jsonl", [{**record, "citations": [11, 12], "related_work_orig_path": [2]}])
    with pytest.raises(InputError, match="the cited papers are in another file"):
        list(read_tasks(path))


def test_files_are_json_lines_or_parquet(tmp_path: Path) -> None:
    records = [{**PUBLISHED, "id": number} for number in range(40)]
    lines = write_lines(tmp_path / "test.jsonl", records)
    pq.write_table(pa.Table.from_pylist(records), tmp_path / "test.parquet", row_group_size=10)
    found = [list(read_tasks(path, full_texts=True)) for path in (lines, tmp_path / "test.parquet")]
    assert found[0] == found[1]
    assert [task.task_id for task in found[0]] == [str(number) for number in range(40)]


def test_a_damaged_parquet_file_is_told(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist([PUBLISHED]), tmp_path / "whole.parquet")
    whole = (tmp_path / "whole.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(SourceError, match="parquet is damaged"):
        list(read_tasks(tmp_path / "cut.parquet"))


def test_of_two_spans_that_overlap_the_first_counts() -> None:
    said = sentence("See Roe (2001) here.", (0, 4, 14), (1, 8, 14))
    (target,) = parse_task({**PUBLISHED, "related_work": tree("Related Work", tree(None, said))}).targets
    assert target == "See [0] here."


words = st.text(st.characters(codec="utf-8"), max_size=8)


@given(
    st.lists(st.tuples(words, st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 4)), max_size=3)))
)
def test_any_spans_can_be_written(sentences: list[tuple[str, list[tuple[int, int, int]]]]) -> None:
    said = [sentence(text, *[(index, start, end) for start, end, index in spans]) for text, spans in sentences]
    record = {**PUBLISHED, "related_work": tree("Related Work", tree(None, *said, sentence("The end.")))}
    (target,) = parse_task(record).targets
    assert target.endswith("The end.")
    assert "\n" not in target
