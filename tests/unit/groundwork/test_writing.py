"""Directories and files are there whole, the old or the new, wherever the work ends."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import orjson
import pytest

from citerec.errors import BuildError
from citerec.groundwork.directories import Kind
from citerec.groundwork.writing import alone, beside, exchange, recover, write_json, writing_file
from tests.conftest import ROOT

KIND = Kind("thing", "citerec-thing", "manifest.json", frozenset({"manifest.json", "values"}))

_DYING = """
import os, shutil, sys
from pathlib import Path
from citerec.groundwork import writing
from tests.unit.groundwork.test_writing import KIND, write

out, after = Path(sys.argv[1]), int(sys.argv[2])
calls = 0

def dying(step):
    def counted(*arguments, **more):
        global calls
        calls += 1
        if calls > after:
            os._exit(9)
        return step(*arguments, **more)
    return counted

Path.rename, writing.shutil.rmtree = dying(Path.rename), dying(shutil.rmtree)
with KIND.writing(out) as folder:
    write(folder, "new")
"""


def write(folder: Path, word: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "values").write_text(word * 1000)
    (folder / "manifest.json").write_bytes(orjson.dumps({"kind": KIND.kind, "word": word}))


def word_in(folder: Path) -> str:
    word = str(orjson.loads((folder / "manifest.json").read_bytes())["word"])
    assert (folder / "values").read_text() == word * 1000
    return word


@pytest.mark.parametrize("after", range(7))
def test_wherever_a_process_dies_the_old_or_the_new_stands(tmp_path: Path, after: int) -> None:
    out = tmp_path / "out"
    write(out, "old")
    code = subprocess.run([sys.executable, "-c", _DYING, out, str(after)], cwd=ROOT, check=False).returncode
    assert code in (0, 9)
    assert KIND.is_at(out)
    assert word_in(out) == ("new" if code == 0 or after >= 4 else "old")
    with KIND.writing(out) as folder:
        write(folder, "newest")
    assert word_in(out) == "newest"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_readers_see_the_old_or_the_new_while_one_is_exchanged(tmp_path: Path) -> None:
    """One that comes between the two renames puts the old one back; the new one takes its place all the same."""
    out, done = tmp_path / "out", threading.Event()
    write(out, "0")

    def read() -> None:
        while not done.is_set():
            recover(out)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        for number in range(1, 100):
            write(tmp_path / "new", str(number))
            exchange(tmp_path / "new", out)
            assert word_in(out) == str(number)
    finally:
        done.set()
        for reader in readers:
            reader.join()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_fails_leaves_what_stood_there(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(out, "old")
    with pytest.raises(KeyboardInterrupt), KIND.writing(out) as folder:
        write(folder, "new")
        raise KeyboardInterrupt
    with pytest.raises(BuildError, match="cannot write"), KIND.writing(out):
        raise OSError(28, "No space left on device")
    assert word_in(out) == "old"
    path = tmp_path / "file"
    write_json(path, {"a": 1})
    with pytest.raises(KeyboardInterrupt), writing_file(path) as partial:
        partial.write_text("half")
        raise KeyboardInterrupt
    assert path.read_bytes() == b'{"a":1}'
    assert sorted(child.name for child in tmp_path.iterdir()) == ["file", "out"]


def test_a_link_is_followed_and_a_pipe_is_written_to(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere" / "file")
    with writing_file(link) as partial:
        partial.write_text("text")
    assert link.is_symlink()
    assert (tmp_path / "elsewhere" / "file").read_text() == "text"
    with writing_file(Path(os.devnull)) as same:
        assert same == Path(os.devnull)


def test_only_one_is_alone(tmp_path: Path) -> None:
    lock = beside(tmp_path / "new" / "thing", "lock")
    with alone(lock, "busy"), pytest.raises(BuildError, match="busy"), alone(lock, "busy"):
        pass
    with alone(lock, "busy"):
        pass


def test_a_model_whose_exchange_was_cut_short_is_found(tmp_path: Path) -> None:
    from citerec.models.find import find_model

    write(tmp_path / ".model.previous", "old")
    assert find_model(str(tmp_path / "model")) == str(tmp_path / "model")
    assert word_in(tmp_path / "model") == "old"
