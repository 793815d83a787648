"""Sections of related work with the abstracts of what they cite."""

from pathlib import Path
from typing import Any

import pytest

from citerec.contexts.sections import Section
from citerec.papers.common.pair_sets import Splitting, build_pairs
from citerec.papers.oarelatedwork.data import RELATED_WORK_PLAN, STEPS, Conditions, find_related_work
from citerec.write.task_files import read_tasks
from citerec.write.tasks import TextTask
from tests.conftest import write_lines
from tests.papers.datasets.conftest import ABSTRACTS
from tests.papers.datasets.s2orc_records import Sections, s2orc_record

ENTRIES = {1: 1, 2: 2, 3: 3, 4: 4, 5: None, 6: 999}
ABSTRACT = ("", "Abstract", ["We draw maps."])
TOLD = "One [1] is told. Two [2] is told. That is all."
KEPT = s2orc_record(899, [ABSTRACT, ("1", "Related Work", [TOLD])], ENTRIES)


def build(
    corpus: tuple[Path, Path], tmp_path: Path, records: list[dict[str, Any]] | None = None, **conditions: Any
) -> tuple[dict[str, Any], list[TextTask]]:
    index, shard = corpus
    if records is not None:
        shard = write_lines(tmp_path / "shard.jsonl", records)
    out, least = tmp_path / "set", Conditions(**conditions)
    built = build_pairs([shard], index, out, RELATED_WORK_PLAN, least, Splitting(0, 0), max_bad=0.5, workers=1)
    path = out / "train.jsonl"
    return built, list(read_tasks(path)) if path.stat().st_size else []


def steps_of(corpus: tuple[Path, Path], tmp_path: Path, sections: Sections, **conditions: Any) -> int:
    """How many steps a text comes past, of seven; it stands beside one that comes past all."""
    built, _ = build(corpus, tmp_path, [KEPT, s2orc_record(900, sections, ENTRIES)], **conditions)
    return sum(built["steps"].values()) - len(STEPS)


def test_sections_with_their_subsections_are_tasks(corpus: tuple[Path, Path], tmp_path: Path) -> None:
    built, tasks = build(corpus, tmp_path)
    # 901 cites a paper that nobody matched, alone in its group; 903's Background has no Introduction beside it.
    assert list(built["steps"].values()) == [3, 2, 2, 2, 1, 1, 1]
    (task,) = tasks
    assert task.task_id == "902"
    assert task.targets[0].startswith("Mountains are ranked by the length of their shadow [0]. We like it. Others [1]")
    assert [(source.paper_id, source.text) for source in task.sources] == [("3", ABSTRACTS[3]), ("2", ABSTRACTS[2])]
    assert task.citing == "Peaks are sorted."  # the index does not hold it: its own section
    # Groups without a linked paper can be let pass.
    _, tasks = build(corpus, tmp_path, linked=0.6)
    (task,) = (task for task in tasks if task.task_id == "901")
    assert task.targets[0].split("\n")[2:] == [
        "Lakes",
        "Lakes are counted from pictures taken by night [1], rivers by day [0]. It helps.",
    ]
    document = task.extra["document"]
    assert [section["headline"] for section in document] == ["Abstract", "Introduction", "Conclusion"]


@pytest.mark.parametrize(
    "sections",
    [
        # After the last number, or where one is missing, a headline without a number is no subsection.
        [("1", "Introduction", ["We."]), ("2", "Method", ["We."]), ("3", "Related Work", [TOLD]),
         ("", "Conclusion", ["It ends."]), ("", "Author Contributions", ["A did all."])],
        [("1", "Introduction", ["We."]), ("2", "Method", ["We."]), ("3", "Related Work", [TOLD]),
         ("", "Why Rivers Flow", ["They do."])],
        [("1", "Introduction", ["We."]), ("2", "Related Work", [TOLD]), ("", "Method", ["We."]),
         ("4", "Results", ["So."])],
        [("", "2.Related Work", [TOLD]), ("", "3.Method", ["We."]), ("", "4.Results", ["So."])],
    ],
)  # fmt: skip
def test_the_target_ends_where_the_section_ends(corpus: tuple[Path, Path], tmp_path: Path, sections: Sections) -> None:
    _, (task,) = build(corpus, tmp_path, [s2orc_record(900, [ABSTRACT, *sections], ENTRIES)])
    assert task.targets == ("One [0] is told. Two [1] is told. That is all.",)
    left = {section["headline"] for section in task.extra["document"]}
    assert len(left) == len(sections)  # the abstract comes in, the related work goes out: the rest is not lost


@pytest.mark.parametrize(
    ("paragraphs", "steps"),
    [
        (["One [1] and two [2]. That is all."], 2),
        (["One [1] is told. So it is. So [1] it is."], 3),
        (["One [1] is told. Two [2] is told. Three [6] is not in the index."], 4),
        (["One [1] is told. Two [2], [5] is told. Three [2]; [6] is told."], 7),
        (["One [1] is told. Two [2] is told. Four [4] has no abstract."], 5),
        # A word between citations makes two groups: entry 5 is matched to no paper, and stops it if it is alone.
        (["One [1] is told. Two [2] is told [3] & [5]. That is all."], 7),
        (["One [1] is told. Two [2] is told [3] and [5]. That is all."], 4),
    ],
)
def test_each_condition(corpus: tuple[Path, Path], tmp_path: Path, paragraphs: list[str], steps: int) -> None:
    section = ("1", "Related Work", paragraphs)
    assert steps_of(corpus, tmp_path, [ABSTRACT, section]) == steps
    if steps == 7:
        assert steps_of(corpus, tmp_path, [section]) == 6  # without an abstract
    if steps == 2:
        assert steps_of(corpus, tmp_path, [ABSTRACT, section], sentences=1, papers=1) == 7


@pytest.mark.parametrize(
    ("headlines", "found"),
    [
        (["Introduction", "Related Work"], "Related Work"),
        (["Introduction", "Background"], "Background"),
        (["Background", "Method"], None),  # it may be the introduction itself
    ],
)
def test_headlines_of_related_work(headlines: list[str], found: str | None) -> None:
    for sections in ([Section(one) for one in headlines], [Section("Aims", sections=list(map(Section, headlines)))]):
        section = find_related_work(sections)
        assert (section.headline if section else None) == found
