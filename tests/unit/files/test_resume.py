"""Work shard by shard: kept, taken again only where it still holds, done by any number of processes."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from citerec.corpus.json_lines import BadRecord
from citerec.corpus.result_lines import QUARANTINE, quarantine_line, reading_lines, writing_lines
from citerec.errors import BuildError, InputError, SourceError
from citerec.files.resume import Journal, Result, Step, run_stage
from tests.conftest import ROOT

SHARDS = 4
PATIENCE_SECONDS = 60


def upper(shard: Path, out: Path, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Work that notes each call as a file; a file of the shard's name in `fate` says what else befalls it."""
    calls = Path(parameters["calls"])
    os.close(tempfile.mkstemp(prefix=f"{shard.name}.", dir=calls)[0])
    fate = calls.parent / "fate" / shard.name
    if fate.exists():
        word = fate.read_text()
        out.write_text("half a resu")
        _wait_for_others(Path(parameters["results"]))
        if word == "once":
            fate.unlink()
        if word in ("once", "kill"):
            os.kill(os.getpid(), signal.SIGKILL)
        if word == "hang":
            (calls.parent / "hangs").touch()
            time.sleep(10 * PATIENCE_SECONDS)
        raise SourceError(f"{shard.name}: the gzip stream is broken", "Download it again.")
    text = shard.read_text().upper() + parameters.get("more", "")
    out.write_text(text)
    return {"characters": len(text)}


def other(shard: Path, out: Path, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    return upper(shard, out, {**parameters, "more": "by another function"})


def _wait_for_others(results: Path) -> None:
    """Until all shards but this one are done: so it is certain what stays."""
    until = time.monotonic() + PATIENCE_SECONDS
    while len(list(results.glob("*.json"))) < SHARDS - 1 and time.monotonic() < until:
        time.sleep(0.02)


class Bench:
    """Some shards, a folder for their results, and a count of calls."""

    def __init__(self, folder: Path, *, new: bool = True) -> None:
        self.folder, self.results = folder, folder / "results"
        self.shards = [folder / "shards" / f"part-{number}.txt" for number in range(SHARDS)]
        for name in ("shards", "calls", "fate") if new else ():
            (folder / name).mkdir()
        for number, shard in enumerate(self.shards) if new else ():
            shard.write_text(f"shard {number} " * (number + 1))

    def run(self, workers: int | None = 1, work: Callable[..., Any] = upper, **more: Any) -> list[Result]:
        on_progress = more.pop("on_progress", lambda *_: None)
        step = Step(work, more.pop("version", 1))
        parameters = {"calls": str(self.folder / "calls"), "results": str(self.results), **more}
        return run_stage(self.results, self.shards, step, parameters, workers=workers, on_progress=on_progress)

    def calls(self) -> list[int]:
        """How often each shard was worked on since this was last asked."""
        found = Counter(path.name.partition(".txt")[0] for path in (self.folder / "calls").iterdir())
        for path in (self.folder / "calls").iterdir():
            path.unlink()
        return [found[shard.stem] for shard in self.shards]

    def befall(self, number: int, word: str) -> None:
        (self.folder / "fate" / self.shards[number].name).write_text(word)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.mark.parametrize("workers", [1, 2, None])
def test_results_come_in_the_order_of_the_shards(bench: Bench, workers: int | None) -> None:
    bench.shards.reverse()
    results = bench.run(workers)
    assert [result.shard for result in results] == bench.shards
    for shard, result in zip(bench.shards, results, strict=True):
        assert result.path.read_text() == shard.read_text().upper()
        assert result.counts == {"characters": len(shard.read_text())}
        assert result.path.parent == bench.results
    assert bench.calls() == [1] * SHARDS
    assert not list(bench.results.glob(".*.writing"))


def test_no_shards_give_no_results(bench: Bench) -> None:
    bench.shards = []
    assert bench.run() == []


@pytest.mark.parametrize("workers", [1, 2])
def test_nothing_is_done_twice(bench: Bench, workers: int) -> None:
    first = bench.run(workers)
    times = {path: path.stat().st_mtime_ns for path in bench.results.iterdir()}
    assert bench.calls() == [1] * SHARDS
    assert bench.run(workers) == first
    assert bench.run(3 - workers) == first
    assert bench.calls() == [0] * SHARDS
    assert {path: path.stat().st_mtime_ns for path in bench.results.iterdir()} == times


def test_a_new_shard_is_all_that_is_done(bench: Bench) -> None:
    bench.run()
    bench.calls()
    bench.shards.insert(1, bench.folder / "shards" / "new.txt")
    bench.shards[1].write_text("new")
    assert [result.path.read_text()[:7] for result in bench.run()] == [
        "SHARD 0",
        "NEW",
        "SHARD 1",
        "SHARD 2",
        "SHARD 3",
    ]
    assert bench.calls() == [0, 1, 0, 0, 0]


def test_a_shard_that_changed_is_read_again(bench: Bench) -> None:
    bench.run()
    bench.calls()
    bench.shards[2].write_text("of another size")
    assert bench.run()[2].path.read_text() == "OF ANOTHER SIZE"
    assert bench.calls() == [0, 0, 1, 0]
    status = bench.shards[1].stat()
    bench.shards[1].write_text(bench.shards[1].read_text().replace("shard", "other"))  # as long as it was
    os.utime(bench.shards[1], ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000))
    assert bench.run()[1].path.read_text().startswith("OTHER 1")
    assert bench.calls() == [0, 1, 0, 0]


def test_other_parameters_are_other_work(bench: Bench) -> None:
    first = bench.run()
    assert bench.calls() == [1] * SHARDS
    second = bench.run(more="!")
    assert bench.calls() == [1] * SHARDS
    assert all(result.path.read_text().endswith("!") for result in second)
    assert not {result.path for result in first} & {result.path for result in second}
    assert bench.run() == first  # what was done before still stands
    assert bench.calls() == [0] * SHARDS
    assert bench.run(work=other)[0].path.read_text().endswith("by another function")


def test_another_version_of_a_step_is_other_work(bench: Bench) -> None:
    first = bench.run()
    bench.calls()
    assert {result.path for result in bench.run(version=2)}.isdisjoint(result.path for result in first)
    assert bench.calls() == [1] * SHARDS
    bench.run(version=1)
    assert bench.calls() == [0] * SHARDS


def test_a_journal_goes_on_with_its_own_plan_only(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "work", {"inputs": ("a", 1), "options": {"x": None}})
    (tmp_path / "work" / "half").touch()
    assert journal.get("rows") is None
    journal.note(rows=3)
    again = Journal(tmp_path / "work", {"options": {"x": None}, "inputs": ("a", 1)})
    assert again.get("rows") == 3
    assert (tmp_path / "work" / "half").exists()
    other = Journal(tmp_path / "work", {"inputs": ("a", 2), "options": {"x": None}})
    assert other.get("rows") is None
    assert not (tmp_path / "work" / "half").exists()
    (tmp_path / "work" / "half").touch()
    (tmp_path / "work" / "journal.json").write_bytes(b'{"plan')  # torn
    Journal(tmp_path / "work", {"inputs": ("a", 2), "options": {"x": None}})
    assert not (tmp_path / "work" / "half").exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda result, _: result.write_text(result.read_text().replace("S", "Z")),
        lambda result, _: result.write_text(""),
        lambda result, _: result.unlink(),
        lambda _, receipt: receipt.unlink(),
        lambda _, receipt: receipt.write_text(receipt.read_text()[:20]),
        lambda _, receipt: receipt.write_text("[]"),
        lambda _, receipt: receipt.write_text("{}"),
    ],
    ids=["changed", "emptied", "lost", "receipt lost", "receipt torn", "receipt a list", "receipt empty"],
)
def test_a_damaged_result_is_made_again(bench: Bench, damage: Callable[[Path, Path], Any]) -> None:
    first = bench.run()
    before = [result.path.read_text() for result in first]
    bench.calls()
    path = first[1].path
    damage(path, path.with_name(f"{path.name}.json"))
    again = bench.run(2)
    assert again == first
    assert [result.path.read_text() for result in again] == before
    assert bench.calls() == [0, 1, 0, 0]


def test_one_and_two_processes_give_the_same_files(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    found = []
    for workers in (1, 2):
        bench.results = tmp_path / f"results-{workers}"
        # The folder is no parameter here, so that the files have the same names.
        parameters = {"calls": str(tmp_path / "calls"), "results": ""}
        run_stage(bench.results, bench.shards, Step(upper, 1), parameters, workers=workers)
        found.append({path.name: path.read_bytes() for path in bench.results.iterdir()})
    assert found[0] == found[1]
    assert len(found[0]) == 2 * SHARDS


def test_progress_goes_from_what_is_had_to_all(bench: Bench) -> None:
    whole = sum(shard.stat().st_size for shard in bench.shards)
    told: list[tuple[float, float]] = []
    bench.run(2, on_progress=lambda done, of: told.append((done, of)))
    assert [of for _, of in told] == [whole] * (SHARDS + 1)
    done = [done for done, _ in told]
    assert done[0] == 0
    assert done[-1] == whole
    assert done == sorted(set(done))
    told.clear()
    bench.run(2, on_progress=lambda done, of: told.append((done, of)))
    assert told == [(whole, whole)]


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_is_the_works_own_and_what_was_done_stays(bench: Bench, workers: int) -> None:
    bench.befall(3, "raise")
    with pytest.raises(SourceError) as caught:
        bench.run(workers)
    assert isinstance(caught.value, InputError)
    assert (caught.value.message, caught.value.remedy) == (
        "part-3.txt: the gzip stream is broken", "Download it again.",
    )  # fmt: skip
    assert bench.calls() == [1] * SHARDS
    (bench.folder / "fate" / "part-3.txt").unlink()
    assert bench.run(workers)[3].path.read_text() == bench.shards[3].read_text().upper()
    assert bench.calls() == [0, 0, 0, 1]


def test_a_process_that_is_killed_is_an_error_and_the_next_call_goes_on(bench: Bench) -> None:
    bench.befall(3, "once")
    with pytest.raises(BuildError, match="a worker process died") as caught:
        bench.run(2)
    assert "--workers 1" in caught.value.remedy
    assert bench.calls() == [1] * SHARDS
    results = bench.run(2)
    assert [result.path.read_text() for result in results] == [shard.read_text().upper() for shard in bench.shards]
    assert bench.calls() == [0, 0, 0, 1]
    assert not list(bench.results.glob(".*.writing"))


def test_ctrl_c_does_not_wait_for_the_shards_at_work(bench: Bench) -> None:
    """A shard of a real release takes an hour: who stops the work is not kept until it is done."""
    bench.befall(3, "hang")
    code = (
        "import sys, pathlib; from tests.unit.files.test_resume import Bench\n"
        "Bench(pathlib.Path(sys.argv[1]), new=False).run(2)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, bench.folder], cwd=ROOT, stderr=subprocess.PIPE) as process:
        try:
            until = time.monotonic() + PATIENCE_SECONDS
            while not (bench.folder / "hangs").exists() and time.monotonic() < until:
                assert process.poll() is None
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=PATIENCE_SECONDS / 2)
        finally:
            process.kill()
    assert b"KeyboardInterrupt" in said
    (bench.folder / "fate" / "part-3.txt").unlink()
    bench.calls()
    bench.run(2)
    assert bench.calls() == [0, 0, 0, 1]


def test_lines_are_the_same_bytes_wherever_they_are_written(tmp_path: Path) -> None:
    lines = [b"one", b"", QUARANTINE + b"two", "grün".encode()]
    for name in ("a.gz", "b"):
        with writing_lines(tmp_path / name) as write:
            for line in lines:
                write(line)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b").read_bytes()
    assert list(reading_lines(tmp_path / "a.gz")) == lines


def test_a_line_of_a_quarantine_says_where_and_why(tmp_path: Path) -> None:
    line = quarantine_line("s2orc-0.gz", 7, BadRecord("no corpusid", '{"x"'))
    assert orjson.loads(line) == {"shard": "s2orc-0.gz", "line": 7, "reason": "no corpusid", "beginning": '{"x"'}
