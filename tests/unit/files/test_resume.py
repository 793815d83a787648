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
from citerec.files.resume import Result, Step, run_stage

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
            (folder / name).mkdir()
        for number, shard in enumerate(self.shards):
            shard.write_text(f"shard {number} " * (number + 1))

    def run(self, workers: int | None = 1, work: Callable[..., Any] = upper, **more: Any) -> list[Result]:
        step, parameters = Step(work, more.pop("version", 1)), {"calls": str(self.folder / "calls"), **more}
        return run_stage(self.results, self.shards, step, parameters, workers=workers, on_progress=lambda *_: None)

    def calls(self) -> list[int]:
        """How often each shard was worked on since this was last asked."""
        found = Counter(path.name.partition(".txt")[0] for path in (self.folder / "calls").iterdir())
        for path in (self.folder / "calls").iterdir():
            path.unlink()
        return [found[shard.stem] for shard in self.shards]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_what_is_new_or_changed_is_all_that_is_done(bench: Bench) -> None:
    bench.shards.reverse()
    first = bench.run(2)
    assert [result.shard for result in first] == bench.shards and bench.calls() == [1] * SHARDS
    assert bench.run(None) == first and bench.calls() == [0] * SHARDS
    bench.shards.reverse()
    first.reverse()
    bench.shards.insert(1, bench.folder / "shards" / "new.txt")
    bench.shards[1].write_text("new")
    words = [result.path.read_text()[:7] for result in bench.run()]
    assert words == ["SHARD 0", "NEW", "SHARD 1", "SHARD 2", "SHARD 3"]
    bench.shards[3].write_text("of another size")
    assert bench.run()[3].path.read_text() == "OF ANOTHER SIZE"
    assert bench.calls() == [0, 1, 0, 1, 0]
    status = bench.shards[2].stat()
    bench.shards[2].write_text(bench.shards[2].read_text().replace("shard", "other"))  # as long as it was
    os.utime(bench.shards[2], ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000))
    assert bench.run()[2].path.read_text().startswith("OTHER 1")
    assert bench.calls() == [0, 0, 1, 0, 0]
    # Other parameters, another version and another function are other work.
    assert all(result.path.read_text().endswith("!") for result in bench.run(more="!"))
    assert bench.run(version=2)[0].path != first[0].path
    assert bench.calls() == [2] * 5
    assert bench.run()[0] == first[0] and bench.calls() == [0] * 5  # what was done before still stands
    assert bench.run(work=other)[0].path.read_text().endswith("by another function")


@pytest.mark.parametrize("receipt", [None, "", '{"counts": {"char', "[]", "{}", '{"counts": [1]}'])
def test_a_damaged_result_is_made_again(bench: Bench, receipt: str | None) -> None:
    first = bench.run()
    bench.calls()
    path = first[1].path
    if receipt is None:
        path.unlink()
    else:
        path.with_name(f"{path.name}.json").write_text(receipt)
    assert bench.run() == first and path.read_text() == bench.shards[1].read_text().upper()
    assert bench.calls() == [0, 1, 0, 0]


@pytest.mark.parametrize(("workers", "fate"), [(1, "raise"), (2, "raise"), (2, "once")])
def test_an_error_is_the_works_own_and_what_was_done_stays(bench: Bench, workers: int, fate: str) -> None:
    (bench.folder / "fate" / "part-3.txt").write_text(fate)
    message = (
        "part-3.txt: the gzip stream is broken. Download" if fate == "raise" else "worker process died.*--workers 1"
    )
    with pytest.raises(SourceError if fate == "raise" else BuildError, match=message):
        bench.run(workers)
    assert bench.calls() == [1] * SHARDS
    (bench.folder / "fate" / "part-3.txt").unlink(missing_ok=True)
    assert bench.run(workers)[3].path.read_text() == bench.shards[3].read_text().upper()
    assert bench.calls() == [0, 0, 0, 1]
    assert not list(bench.results.glob(".*.writing"))
