"""Tasks and predictions go into files and come back; what is no task is told with its place."""

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
from citerec.write.task_files import input_of, parse_prediction, parse_task, prediction_record, read_tasks, task_record
from citerec.write.tasks import Prediction, Sentence, Source, TextTask
from tests.conftest import write_lines
from tests.write.oarelatedwork_records import PUBLISHED, flattened, sentence, tree, tree_record

RECORD = {
    "input": ["<abs> We do. </abs>", "<ctx_b> Before. </ctx_b>", "One did.", "Two did.", "<ctx_a> After. </ctx_a>"],
    "target": "As [0] and [1] did.",
}


def test_the_shapes_of_citebench_and_scitldr() -> None:
    task = parse_task(RECORD, "line-1")
    sources = (Source("One did."), Source("Two did."))
    assert task == TextTask("line-1", sources, "We do.", "Before.", "After.", ("As [0] and [1] did.",))
    assert input_of(task) == RECORD["input"]
    record = {"source": ["We did.", "It works."], "target": ["They did.", "It did."], "paper_id": "x1", "rouge": [0.1]}
    task = parse_task(record)
    assert task.sources == (Source("We did. It works.", "x1", sentences=("We did.", "It works.")),)
    assert (task.task_id, task.targets) == ("x1", ("They did.", "It did."))
    assert task_record(task) == {**record, "id": "x1"}


words = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters="<>"), min_size=1)
texts = st.lists(words, min_size=1, max_size=5).map(" ".join)
sources = st.builds(
    Source,
    texts,
    st.none() | words,
    st.just("") | texts,
    authors=st.just(()) | st.just(("A B",)),
    extra=st.just({}) | st.just({"year": 2001}),
)
tasks = st.builds(
    TextTask,
    task_id=words,
    sources=st.lists(sources, min_size=1, max_size=3).map(tuple),
    citing=st.just("") | texts,
    before=st.just("") | texts,
    after=st.just("") | texts,
    targets=st.lists(texts, max_size=2).map(tuple),
    dataset=st.just("") | words,
    extra=st.dictionaries(st.sampled_from(["title", "venue"]), st.integers(), max_size=2),
)


@given(tasks, texts, st.lists(st.builds(Sentence, texts, st.just((0,)), st.just(("[7]",)))).map(tuple), st.booleans())
def test_tasks_and_predictions_come_back(
    task: TextTask, text: str, sentences: tuple[Sentence, ...], knows: bool
) -> None:
    assert parse_task(json.loads(json.dumps(task_record(task)))) == task
    prediction = Prediction(task, text, "lead", sentences, knows, {"beams": 4})
    assert parse_prediction(json.loads(json.dumps(prediction_record(prediction)))) == prediction


def test_files_are_json_lines_json_lists_or_parquet(tmp_path: Path) -> None:
    listed, lines = tmp_path / "tasks.json", write_lines(tmp_path / "tasks.jsonl", [RECORD, RECORD])
    listed.write_text(json.dumps([RECORD, RECORD], indent=1))
    of_list, of_lines = list(read_tasks(listed)), list(read_tasks(lines))
    assert [task.task_id for task in of_list] == ["record-1", "record-2"]
    assert [task.task_id for task in of_lines] == ["line-1", "line-2"]
    assert [task.sources for task in of_list] == [task.sources for task in of_lines]
    records = [{**PUBLISHED, "id": number} for number in range(40)]
    lines, table = write_lines(tmp_path / "test.jsonl", records), tmp_path / "test.parquet"
    pq.write_table(pa.Table.from_pylist(records), table, row_group_size=10)
    of_lines, of_table = (list(read_tasks(path, full_texts=True)) for path in (lines, table))
    assert of_table == of_lines
    assert [task.task_id for task in of_table] == [str(number) for number in range(40)]
    table.write_bytes(table.read_bytes()[: table.stat().st_size // 2])
    with pytest.raises(SourceError, match="parquet is damaged"):
        list(read_tasks(table))


BARE_TREE = {name: value for name, value in tree_record().items() if name != "referenced"}


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"target": "x"}, "no cited text"),
        ({"input": 3}, "input is a int, not a list"),
        ({"input": ["x"], "target": {"a": 1}}, "target is a dict, not a list"),
        ({"input": ["x", "y"], "sources": [{"paper_id": 1}]}, "not name one paper for each"),
        ([1], "a list where a JSON object"),
        ({**RECORD, "id": "line-1"}, "line-1 appears twice"),
        ({**PUBLISHED, "related_work": "{no json"}, "not JSON"),
        ({**PUBLISHED, "referenced": ["x"]}, "referenced holds a str"),
        ({**PUBLISHED, "hierarchy": [{"paragraphs": []}]}, "it cannot be read"),
        ({**BARE_TREE, "citations": [11], "related_work_orig_path": [2]}, "the cited papers are in another file"),
    ],
)
def test_what_is_no_task_is_told_with_its_place(tmp_path: Path, record: object, said: str) -> None:
    path = write_lines(tmp_path / "tasks.jsonl", [RECORD, record])
    with pytest.raises(InputError, match=f"line 2: .*{said}"):
        list(read_tasks(path))


@pytest.mark.parametrize("record", [tree_record(), PUBLISHED, flattened()], ids=["tree", "string", "flattened"])
def test_each_shape_of_oarelatedwork_is_the_same_task(record: dict[str, Any]) -> None:
    task = OARELATEDWORK.parse(json.loads(json.dumps(record)))
    assert task.targets[0].split("\n") == [
        "Rivers were mapped by [0] and <cite>UNK<sep>A Lost Map<sep>Ben Poe</cite>, see <ref>figure</ref>. "
        "Then came <eq>",
        "Lakes",
        "Lakes were counted [1]. Some say <cite>UNK</cite>.",
    ]
    assert cited_in(task.targets[0], task.sources).sources == {0, 1}
    assert [anchor.title for anchor in anchors_of(task.targets[0])] == ["", "A Lost Map", "", ""]
    assert task.citing == "We draw maps. They are blue."
    rivers, lakes = task.sources
    assert (rivers.paper_id, rivers.title, rivers.text) == ("11", "Of Rivers", "Rivers are long.")
    assert (lakes.paper_id, lakes.title, lakes.text) == ("12", "Of Lakes", "Lakes are wide. They are deep.")
    assert lakes.sentences == ("Lakes are wide.", "They are deep.")
    assert (task.task_id, task.dataset) == ("7", "oarelatedwork")
    extra = {"citing_id": "7", "title": "Of Maps", "headline": "Related Work", "subsections": True}
    assert task.extra == extra
    assert lakes.rest is None and rivers.rest is not None
    assert rivers.rest.text == "They begin small [1].\nThey end in $$x^2$$ the sea."
    assert task.citing_rest is not None
    assert task.citing_rest.text == "Maps are old. See <cite>13<sep>Of Seas<sep>UNK</cite>."
    without = parse_task(record)
    assert [without.citing_rest, *(source.rest for source in without.sources)] == [None] * 3


SPANS = st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 4))


@given(st.lists(st.tuples(st.text(st.characters(codec="utf-8"), max_size=8), st.lists(SPANS, max_size=3))))
def test_any_spans_can_be_written(sentences: list[tuple[str, list[tuple[int, int, int]]]]) -> None:
    said = [sentence(text, *[(index, start, end) for start, end, index in spans]) for text, spans in sentences]
    # Of two spans that overlap the first counts.
    end = sentence("See Roe (2001) here.", (0, 4, 14), (1, 8, 14))
    (target,) = parse_task({**PUBLISHED, "related_work": tree("Related Work", tree(None, *said, end))}).targets
    assert target.endswith("See [0] here.")
    assert "\n" not in target
