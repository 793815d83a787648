"""Published summaries are read by their shape, and recast: other inputs, titles and disciplines as targets."""

from pathlib import Path
from typing import Any

import pytest

from citerec.errors import InputError
from citerec.papers.citesum.data import Recast, recast_file
from citerec.write.task_files import parse_task, read_tasks, task_record
from citerec.write.tasks import PREFIX, Source
from tests.conftest import Citerec, write_lines


def citesum(number: int, **more: Any) -> dict[str, Any]:
    """A record as in `yuningm/citesum`."""
    return {
        "src": f"We grow {number} trees.",
        "tgt": f"{number} trees were grown in REF .",
        "paper_id": f"p{number % 2}",
        "title": f"Trees {number}",
        "discipline": {"venue": None, "journal": None, "mag_field_of_study": ["Biology", "Art"]},
        **more,
    }


@pytest.fixture
def published(tmp_path: Path) -> Path:
    records = [citesum(0), citesum(1, title=None), citesum(2, discipline=None), citesum(3, introduction=["Trees", "?"])]
    return write_lines(tmp_path / "citesum.json", records)


def test_citesum_is_read_though_papers_are_cited_again(published: Path) -> None:
    tasks = list(read_tasks(published))
    assert [task.task_id for task in tasks] == ["line-1", "line-2", "line-3", "line-4"]
    assert tasks[2].sources == (Source("We grow 2 trees.", "p0", "Trees 2"),)
    assert tasks[0].targets == ("0 trees were grown in REF .",)
    assert tasks[0].extra["discipline"]["mag_field_of_study"] == ["Biology", "Art"]
    assert all(parse_task(task_record(task)) == task for task in tasks)


def test_with_several_goals_each_task_is_written_for_each(published: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    counts = recast_file(published, out, Recast(("summary", "title", "discipline")))
    assert counts == {
        "summary": 4,
        "title": 3,
        "discipline": 3,
        "without title: left out": 1,
        "without discipline: left out": 1,
    }
    tasks = list(read_tasks(out))
    first = tasks[:3]
    assert [task.task_id for task in first] == ["line-1"] * 3
    assert [task.dataset for task in first] == ["summary", "title", "discipline"]
    assert [task.targets[0] for task in first] == ["0 trees were grown in REF .", "Trees 0", "Biology"]
    assert [task.extra[PREFIX] for task in first] == ["summary:", "title:", "discipline:"]
    recast_file(published, out, Recast(("title",), ("title", "discipline", "introduction")))
    texts = [task.sources[0].text for task in read_tasks(out)]
    assert texts == ["Biology. We grow 0 trees.", "We grow 2 trees.", "Biology. We grow 3 trees. Trees ?"]
    # What is to be written is nowhere in what is read, and they are known to be about one paper.
    assert [task.sources[0].title for task in first] == ["Trees 0", "", "Trees 0"]
    assert {task.sources[0].paper_id for task in first} == {"p0"}


def test_the_command_recasts_and_says_what_is_wrong(citerec_here: Citerec, published: Path, tmp_path: Path) -> None:
    done = citerec_here("data", "recast", published, "--out", "o.jsonl", "--target", "title", "--target", "discipline")
    assert done.returncode == 0, done.stderr
    assert "3  title" in done.stdout
    assert "1  without title: left out" in done.stdout
    before = (tmp_path / "o.jsonl").read_bytes()
    several = write_lines(tmp_path / "several.jsonl", [{"input": ["A.", "B."], "target": "C."}])
    for arguments, words in (
        ((published, "--with", "conclusion"), "has a conclusion"),
        ((several,), "has 2 sources"),
        ((published, "--target", "poem"), "poem"),
    ):
        wrong = citerec_here("data", "recast", *arguments, "--out", "o.jsonl")
        assert wrong.returncode == 2
        assert words in wrong.stderr
        assert len(wrong.stderr.splitlines()) == 1
        assert (tmp_path / "o.jsonl").read_bytes() == before
    with pytest.raises(InputError, match="the tasks themselves"):
        recast_file(published, published, Recast())
