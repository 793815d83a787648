"""Work shard by shard: kept, taken again only where it still holds, done by any number of processes."""

import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from citerec.errors import BuildError, SourceError
from citerec.files.resume import Journal, Result, Step, run_stage

SHARDS = 4
PATIENCE_SECONDS = 60


def upper(shard: Path, out: Path, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Work that notes each call as a file; a file of the shard's name in `fate` says what else befalls it."""
    calls = Path(parameters["calls"])
    os.close(tempfile.mkstemp(prefix=f"{shard.name}.", dir=calls)[0])
    fate = calls.parent / "fate" / shard.name
    if fate.exists():
        out.write_text("half a resu")
        until = time.monotonic() + PATIENCE_SECONDS  # when all other shards are done, it is certain what stays
        while len(list(out.parent.glob("*.json"))) < SHARDS - 1 and time.monotonic() < until:
            time.sleep(0.02)
        if fate.read_text() == "once":
            fate.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        raise SourceError(f"{shard.name}: the gzip stream is broken", "Download it again.")
    text = shard.read_text().upper() + parameters.get("more", "")
    out.write_text(text)
    return {"characters": len(text)}


def other(shard: Path, out: Path, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    return upper(shard, out, {**parameters, "more": "by another function"})


class Bench:
    """Some shards, a folder for their results, and a count of calls."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.results = folder, folder / "results"
        self.shards = [folder / "shards" / f"part-{number}.txt" for number in range(SHARDS)]
        for name in ("shards", "calls", "fate"):
            (folder / name).mkdir(exist_ok=True)
        for number, shard in enumerate(self.shards):
            if not shard.exists():
                shard.write_text(f"shard {number} " * (number + 1))

    def run(self, workers: int | None = 1, work: Callable[..., Any] = upper, **more: Any) -> list[Result]:
        on_progress = more.pop("on_progress", lambda *_: None)
        step = Step(work, more.pop("version", 1))
        parameters = {"calls": str(self.folder / "calls"), **more}
        return run_stage(self.results, self.shards, step, parameters, workers=workers, on_progress=on_progress)

    def calls(self) -> list[int]:
        """How often each shard was worked on since this was last asked."""
        found = Counter(path.name.partition(".txt")[0] for path in (self.folder / "calls").iterdir())
        for path in (self.folder / "calls").iterdir():
            path.unlink()
        return [found[shard.stem] for shard in self.shards]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.mark.parametrize("workers", [1, 2, None])
def test_results_come_in_the_order_of_the_shards_and_nothing_is_done_twice(bench: Bench, workers: int | None) -> None:
    def files() -> dict[str, tuple[bytes, int]]:
        return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in bench.results.iterdir()}

    bench.shards.reverse()
    results = bench.run(workers)
    assert [result.shard for result in results] == bench.shards
    for shard, result in zip(bench.shards, results, strict=True):
        assert result.path.read_text() == shard.read_text().upper()
        assert result.counts == {"characters": len(shard.read_text())}
    assert bench.calls() == [1] * SHARDS
    before = files()
    assert len(before) == 2 * SHARDS
    assert bench.run(3 - (workers or 1)) == results
    assert bench.calls() == [0] * SHARDS and files() == before
    bench.shards = []
    assert bench.run(workers) == []


def test_what_is_new_or_changed_is_all_that_is_done(bench: Bench) -> None:
    first = bench.run()
    bench.calls()
    bench.shards.insert(1, bench.folder / "shards" / "new.txt")
    bench.shards[1].write_text("new")
    words = [result.path.read_text()[:7] for result in bench.run()]
    assert words == ["SHARD 0", "NEW", "SHARD 1", "SHARD 2", "SHARD 3"]
    assert bench.calls() == [0, 1, 0, 0, 0]
    bench.shards[3].write_text("of another size")
    assert bench.run()[3].path.read_text() == "OF ANOTHER SIZE"
    assert bench.calls() == [0, 0, 0, 1, 0]
    status = bench.shards[2].stat()
    bench.shards[2].write_text(bench.shards[2].read_text().replace("shard", "other"))  # as long as it was
    os.utime(bench.shards[2], ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000))
    assert bench.run()[2].path.read_text().startswith("OTHER 1")
    assert bench.calls() == [0, 0, 1, 0, 0]
    # Other parameters, another version and another function are other work.
    assert all(result.path.read_text().endswith("!") for result in bench.run(more="!"))
    assert len({result.path for result in (*first, *bench.run(more="!"), *bench.run(version=2))}) == 14
    assert bench.calls() == [2] * 5
    assert bench.run()[0] == first[0] and bench.calls() == [0] * 5  # what was done before still stands
    assert bench.run(work=other)[0].path.read_text().endswith("by another function")


def test_a_journal_goes_on_with_its_own_plan_only(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "work", {"inputs": ("a", 1), "options": {"x": None}})
    (half := tmp_path / "work" / "half").touch()
    assert journal.notes.get("rows") is None
    journal.note(rows=3)
    again = Journal(tmp_path / "work", {"options": {"x": None}, "inputs": ("a", 1)})
    assert again.notes.get("rows") == 3 and half.exists()
    plan = {"inputs": ("a", 2), "options": {"x": None}}
    assert Journal(tmp_path / "work", plan).notes.get("rows") is None and not half.exists()
    half.touch()
    (tmp_path / "work" / "journal.json").write_bytes(b'{"plan')  # torn
    Journal(tmp_path / "work", plan)
    assert not half.exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda result, _: result.unlink(),
        lambda _, receipt: receipt.unlink(),
        lambda _, receipt: receipt.write_text(receipt.read_text()[:20]),
        lambda _, receipt: receipt.write_text("[]"),
        lambda _, receipt: receipt.write_text("{}"),
        lambda _, receipt: receipt.write_text('{"counts": [1]}'),
    ],
    ids=["lost", "receipt lost", "receipt torn", "receipt a list", "receipt empty", "receipt wrong"],
)
def test_a_damaged_result_is_made_again(bench: Bench, damage: Callable[[Path, Path], Any]) -> None:
    first = bench.run()
    before = [result.path.read_text() for result in first]
    bench.calls()
    path = first[1].path
    damage(path, path.with_name(f"{path.name}.json"))
    again = bench.run()
    assert again == first
    assert [result.path.read_text() for result in again] == before
    assert bench.calls() == [0, 1, 0, 0]


def test_progress_goes_from_what_is_had_to_all(bench: Bench) -> None:
    whole = sum(shard.stat().st_size for shard in bench.shards)
    told: list[tuple[float, float]] = []
    bench.run(2, on_progress=lambda done, of: told.append((done, of)))
    assert [of for _, of in told] == [whole] * (SHARDS + 1)
    done = [done for done, _ in told]
    assert (done[0], done[-1]) == (0, whole) and done == sorted(set(done))
    told.clear()
    bench.run(2, on_progress=lambda done, of: told.append((done, of)))
    assert told == [(whole, whole)]


@pytest.mark.parametrize(("workers", "fate"), [(1, "raise"), (2, "raise"), (2, "once")])
def test_an_error_is_the_works_own_and_what_was_done_stays(bench: Bench, workers: int, fate: str) -> None:
    (bench.folder / "fate" / "part-3.txt").write_text(fate)
    with pytest.raises(SourceError if fate == "raise" else BuildError) as caught:
        bench.run(workers)
    if fate == "raise":
        said = (caught.value.message, caught.value.remedy)
        assert said == ("part-3.txt: the gzip stream is broken", "Download it again.")
    else:
        assert "a worker process died" in caught.value.message and "--workers 1" in caught.value.remedy
    assert bench.calls() == [1] * SHARDS
    (bench.folder / "fate" / "part-3.txt").unlink(missing_ok=True)
    assert bench.run(workers)[3].path.read_text() == bench.shards[3].read_text().upper()
    assert bench.calls() == [0, 0, 0, 1]
    assert not list(bench.results.glob(".*.writing"))
