"""The four source data sets of CiteBench as one."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from citerec.corpus.reading import BadRecord
from citerec.errors import BuildError, InputError, SourceError
from citerec.papers.citebench.sources import read_source, unify
from citerec.write.task_files import read_tasks, written_records
from citerec.write.tasks import Source, TextTask
from tests.conftest import write_lines

LU = {
    "aid": "2001.00001",
    "mid": "17",
    "abstract": "We sort papers by what they cite.",
    "related_work": "Trees were tried first @cite_12, then nets @cite_1 @cite_7. Nets @cite_1 won.",
    "ref_abstract": {
        "@cite_1": {"mid": "31", "abstract": "Nets for papers."},
        "@cite_12": {"mid": "32", "abstract": "Trees for papers."},
        "@cite_3": {"mid": "", "abstract": ""},
    },
}
CHEN = {"multi_doc": ["[x] Fog slows cars.", "[x] Cars talk."], "abs": "Cars that talk [1] stop in fog [0]; see [4]."}
XING = {
    "src_paper_id": "P10-1",
    "tgt_paper_id": "P05-2",
    "src_abstract": "We translate slang.",
    "tgt_abstract": "We translate news.",
    "explicit_citation": "News was translated by #REFR and #OTHEREFR.",
    "text_before_explicit_citation": "Much was done.",
    "text_after_explicit_citation": "We go on.",
    "train_or_test": "test",
}
ABURAED = {
    "title": "Sorting Stones",
    "abstract": "We sort stones by size.",
    "citation": "Stones were sorted by Lee et al. (2010).",
}
RECORDS = {"lu": LU, "chen": CHEN, "xing": XING, "aburaed": ABURAED}


def task_of(record: dict[str, Any], tmp_path: Path, **options: Any) -> TextTask:
    ((_, _, task),) = read_source(write_lines(tmp_path / "source.jsonl", [record]), **options)
    assert isinstance(task, TextTask), task
    return task


def reason(record: dict[str, Any], tmp_path: Path) -> str:
    ((_, _, task),) = read_source(write_lines(tmp_path / "source.jsonl", [record]))
    assert isinstance(task, BadRecord)
    return task.reason


def test_lu_is_numbered_by_first_mention(tmp_path: Path) -> None:
    task = task_of(LU, tmp_path)
    assert task.targets == ("Trees were tried first [0], then nets [1] #OTHEREFR. Nets [1] won.",)
    assert task.sources == (Source("Trees for papers.", "32"), Source("Nets for papers.", "31"), Source(""))
    assert (task.citing, task.extra) == ("We sort papers by what they cite.", {"citing_id": "2001.00001"})


def test_lu_as_citebench_published_it(tmp_path: Path) -> None:
    task = task_of(LU, tmp_path, as_published=True)
    # The anchor of the first paper is also replaced in @cite_12, and one without a paper stays.
    assert task.targets == ("Trees were tried first [0]2, then nets [0] @cite_7. Nets [0] won.",)
    assert [source.text for source in task.sources] == ["Nets for papers.", "Trees for papers.", ""]


def test_chen_as_citebench_published_it(tmp_path: Path) -> None:
    task = task_of(CHEN, tmp_path, as_published=True)
    assert task.targets == (CHEN["abs"],)
    assert [source.text for source in task.sources] == ["Fog slows cars.", "Cars talk."]


@pytest.mark.parametrize(
    ("tagged", "target"),
    [
        ("<t> In 1999 , <cite> sorted 12 stones (Lee et al., 2010) . </t>", "In #### , [0] sorted ## stones <CITE> ."),
        ("Lee et al. (2010) and Smith and Roe (1999) sort [3, 4].", "<CITE> and <CITE> sort <CITE>."),
        ("Stones (all 7) were sorted by Li (in 2010).", "Stones (all #) were sorted by <CITE>."),
        ("Parker and Kowalski (2001) sort.", "<CITE> sort."),
        ("Sorted [all] (once) .", "Sorted [all] (once) ."),
    ],
)
def test_aburaed_as_citebench_published_it(tagged: str, target: str, tmp_path: Path) -> None:
    task = task_of({**ABURAED, "abstract": "We sort 12.", "citation": tagged}, tmp_path, as_published=True)
    assert task.targets == (target,)
    assert [source.text for source in task.sources] == ["Sorting Stones We sort ##."]


def test_the_published_validation_split_of_xing_is_drawn(tmp_path: Path) -> None:
    records = [{**XING, "src_paper_id": f"P{number}", "train_or_test": "train"} for number in range(400)]
    unify([write_lines(tmp_path / "xing.jsonl", [*records, XING])], tmp_path / "out.jsonl", as_published=True)
    splits = [task.extra["split"] for task in read_tasks(tmp_path / "out.jsonl")]
    assert splits[-1] == "test"
    assert set(splits[:-1]) == {"train", "val"}
    assert 20 < splits.count("val") < 60


def test_lu_as_columns(tmp_path: Path) -> None:
    cited = LU["ref_abstract"]
    assert isinstance(cited, dict)
    columns = {"cite_N": list(cited)} | {
        name: [paper[name] for paper in cited.values()] for name in ("mid", "abstract")
    }
    assert task_of({**LU, "ref_abstract": {"cite_N": list(cited), **columns}}, tmp_path) == task_of(LU, tmp_path)


def test_chen_counts_its_documents(tmp_path: Path) -> None:
    task = task_of(CHEN, tmp_path)
    assert task.targets == ("Cars that talk [0] stop in fog [1]; see #OTHEREFR.",)
    assert [source.text for source in task.sources] == ["Cars talk.", "Fog slows cars."]


@pytest.mark.parametrize(
    ("documents", "text", "expected"),
    [
        # One text, parted at its markers; a citation within an abstract is none.
        ("[x] Fog slows cars [3]. [x] Cars talk.", "It is [1].", ("It is [0].", ["Cars talk.", "Fog slows cars [3]."])),
        ("[1] Fog, as in [7]. [2] Cars talk.", "It is [2].", ("It is [0].", ["Cars talk.", "Fog, as in [7]."])),
        # Documents with numbers of their own are known by these.
        (["[5] Fog.", "[3] Cars."], "It is [3].", ("It is [0].", ["Cars.", "Fog."])),
        # Without numbers, the last one's number and no 0 tell that the text counts from 1.
        (["Fog.", "Cars."], "It is [2].", ("It is [0].", ["Cars.", "Fog."])),
        (["Fog.", "Cars."], "It is @cite_1.", ("It is [0].", ["Cars.", "Fog."])),
        ("Fog only [2].", "It is [0].", ("It is [0].", ["Fog only [2]."])),
        ("[0] Fog slows cars [1] Cars talk", "It is [1].", ("It is [0].", ["Cars talk", "Fog slows cars"])),
        # Each of a group is renumbered.
        (["[x] Fog.", "[x] Cars."], "It is [1, 0].", ("It is [0], [1].", ["Cars.", "Fog."])),
        ("[1] Fog. [2] Cars.", "It is [2;1;7].", ("It is [0], [1], #OTHEREFR.", ["Cars.", "Fog."])),
    ],
)
def test_shapes_of_chen(documents: object, text: str, expected: tuple[str, list[str]], tmp_path: Path) -> None:
    task = task_of({"multi_doc": documents, "abs": text}, tmp_path)
    assert (task.targets[0], [source.text for source in task.sources]) == expected


def test_the_source_paper_of_xing_is_the_citing_one(tmp_path: Path) -> None:
    task = task_of(XING, tmp_path)
    assert task.citing == "We translate slang."
    assert task.sources == (Source("We translate news.", "P05-2"),)
    assert task.targets == ("News was translated by [0] and #OTHEREFR.",)
    assert (task.before, task.after) == ("Much was done.", "We go on.")
    assert task.extra == {"citing_id": "P10-1", "split": "test"}
    published = task_of(XING, tmp_path, as_published=True)
    assert (published.citing, published.sources) == ("We translate news.", (Source("We translate slang."),))
    assert published.extra == {"split": "test"}  # an id would stand beside the other paper's abstract


def test_aburaed_puts_the_title_before_the_abstract(tmp_path: Path) -> None:
    task = task_of(ABURAED, tmp_path)
    assert task.sources == (Source("Sorting Stones We sort stones by size.", title="Sorting Stones"),)
    assert task.targets == ("Stones were sorted by [0].",)


def test_aburaed_as_pairs_of_lines(tmp_path: Path) -> None:
    (tmp_path / "test.txt.src").write_text("sorting stones we sort stones .\nother\n")
    (tmp_path / "test.txt.tgt.tagged").write_text("<t> <cite> sorts stones . </t>\n\n")
    (_, name, task), bad = read_source(tmp_path / "test.txt.src")
    assert isinstance(task, TextTask)
    assert (name, task.sources[0].text) == ("aburaed", "sorting stones we sort stones .")
    assert task.targets == ("[0] sorts stones .",)
    assert bad == (2, "aburaed", BadRecord("citation is missing", "other"))
    (tmp_path / "test.txt.tgt.tagged").write_text("one line\n")
    with pytest.raises(SourceError, match="differ in length: line 2"):
        list(read_source(tmp_path / "test.txt.src"))
    (tmp_path / "test.txt.tgt.tagged").unlink()
    with pytest.raises(SourceError, match="has no partner"):
        list(read_source(tmp_path / "test.txt.src"))


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ({**LU, "related_work": None}, "related_work is missing"),
        ({**LU, "ref_abstract": []}, "ref_abstract is not an object"),
        ({**LU, "ref_abstract": {"@cite_1": {"abstract": ""}}}, "no cited text"),
        ({**CHEN, "multi_doc": [3]}, "neither a text nor a list"),
        ({**XING, "tgt_abstract": 4}, "tgt_abstract is a int"),
    ],
)
def test_what_cannot_be_read_is_told(record: dict[str, Any], why: str, tmp_path: Path) -> None:
    assert why in reason(record, tmp_path)


def test_all_together_are_read_back(tmp_path: Path) -> None:
    (tmp_path / "lu.json.gz").write_bytes(gzip.compress(json.dumps([LU, LU], indent=1).encode()))
    files = [write_lines(tmp_path / f"{name}.jsonl", [record]) for name, record in RECORDS.items() if name != "lu"]
    out = tmp_path / "all.jsonl"
    unified = unify([tmp_path / "lu.json.gz", *files], out)
    assert (unified.tasks, unified.bad, unified.quarantine) == ({"lu": 2, "chen": 1, "xing": 1, "aburaed": 1}, 0, None)
    tasks = list(read_tasks(out))
    assert [task.task_id for task in tasks] == ["lu-1", "lu-2", "chen-3", "xing-4", "aburaed-5"]
    assert [task.dataset for task in tasks] == ["lu", "lu", "chen", "xing", "aburaed"]
    alone = task_of(LU, tmp_path)
    assert (tasks[0].sources, tasks[0].targets, tasks[0].citing) == (alone.sources, alone.targets, alone.citing)
    before = out.read_bytes()
    unify([tmp_path / "lu.json.gz", *files], out)
    assert out.read_bytes() == before


def test_bad_records_are_set_aside_until_they_are_too_many(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "lu.jsonl", [*[LU] * 30, {**LU, "related_work": 3}])
    out = tmp_path / "lu-out.jsonl"
    unified = unify([source], out)
    assert (unified.tasks, unified.bad) == ({"lu": 30}, 1)
    assert unified.quarantine == tmp_path / "lu-out.jsonl.quarantine.jsonl"
    (told,) = [json.loads(line) for line in unified.quarantine.read_text().splitlines()]
    assert (told["shard"], told["line"], told["reason"]) == ("lu.jsonl", 31, "related_work is a int, not a str: 3")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(BuildError, match=r"more than 0%; the first is .*, line 31: related_work is a int"):
        unify([source], out, max_bad=0)
    assert sorted(tmp_path.iterdir()) == before  # nothing half-written, what stood there stands
    assert len(list(read_tasks(out))) == 30


def test_work_that_is_stopped_leaves_nothing(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "lu.jsonl", [LU] * 1000)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        unify([source], tmp_path / "out.jsonl", on_progress=stop)
    assert sorted(tmp_path.iterdir()) == [source]


def test_files_that_cannot_be_taken(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "lu.jsonl", [LU])
    with pytest.raises(InputError, match="is one of the sources"):
        unify([source], source)
    with pytest.raises(BuildError, match="of none of the four data sets"):
        unify([write_lines(tmp_path / "other.jsonl", [{"text": "?"}])], tmp_path / "out.jsonl")
    (tmp_path / "cut.json").write_text(json.dumps([LU, LU])[:-9])
    with pytest.raises(SourceError, match="its list is no JSON"):
        unify([tmp_path / "cut.json"], tmp_path / "out.jsonl")
    (tmp_path / "deep.json").write_text("[" * 100_000)
    with pytest.raises(SourceError, match="nested too deep"):
        unify([tmp_path / "deep.json"], tmp_path / "out.jsonl")
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(SourceError, match="the sources hold no record"):
        unify([tmp_path / "empty.jsonl"], tmp_path / "out.jsonl")
    (tmp_path / "broken.jsonl").write_text("{broken\n" * 3)
    with pytest.raises(BuildError, match=r"line 1: .*not JSON"):
        unify([tmp_path / "broken.jsonl"], tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()


KEYS = st.text('ab[]{},"\\ é', max_size=4)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
)


@given(st.lists(st.dictionaries(st.text(max_size=3), JSON_VALUES, max_size=4), min_size=1), st.integers(1, 9))
def test_a_list_is_read_piece_by_piece(tmp_path_factory: pytest.TempPathFactory, values: list[Any], piece: int) -> None:
    from citerec.corpus import reading as module

    path = tmp_path_factory.getbasetemp() / "list.json"
    path.write_text(json.dumps(values, indent=piece % 3 or None, ensure_ascii=False))
    before = module._PIECE
    module._PIECE = piece
    try:
        read = [json.loads(raw) for _, raw in written_records(path)]
    finally:
        module._PIECE = before
    assert read == values
