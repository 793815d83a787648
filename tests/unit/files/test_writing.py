"""Directories and files are there whole, the old or the new, wherever the work ends."""

import functools
import os
import shutil
from pathlib import Path

import orjson
import pytest

from citerec.drafts.files import Files
from citerec.errors import BuildError
from citerec.files.writing import Kind, recover, write_json, writing_file
from tests.torture.crash_points import DIED, crashes

KIND = Kind("thing", "citerec-thing", "manifest.json", frozenset({"manifest.json", "values"}))


def write(folder: Path, word: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "values").write_text(word * 1000)
    (folder / "manifest.json").write_bytes(orjson.dumps({"kind": KIND.kind, "word": word}))


def word_in(folder: Path) -> str:
    word = str(orjson.loads((folder / "manifest.json").read_bytes())["word"])
    assert (folder / "values").read_text() == word * 1000
    return word


def write_again(out: Path, word: str) -> None:
    with KIND.writing(out) as folder:
        write(folder, word)


def test_wherever_a_process_dies_the_old_or_the_new_is_there(tmp_path: Path) -> None:
    out, seen = tmp_path / "folder" / "out", []

    def prepare() -> None:
        shutil.rmtree(out.parent, ignore_errors=True)
        out.parent.mkdir()
        write(out, "old")

    for outcome in crashes(functools.partial(write_again, out, "new"), prepare):
        assert outcome.code in (0, DIED), outcome.output
        assert KIND.is_at(out)
        seen.append(word_in(out))
        if seen[-1] == "new":  # half of the old one is never put back, though the place is emptied by hand
            shutil.rmtree(out)
            recover(out)
            assert not out.exists() or word_in(out) == "old"
    assert seen == sorted(seen, reverse=True) and set(seen) == {"old", "new"}
    write_again(out, "newest")
    assert word_in(out) == "newest"
    assert [path.name for path in out.parent.iterdir()] == ["out"]


def test_an_empty_folder_in_the_place_does_not_cost_the_only_copy(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(tmp_path / ".out.previous", "old")  # a crash between the two renames
    out.mkdir()  # and someone who makes the missing folder again
    with pytest.raises(KeyboardInterrupt), KIND.writing(out):
        raise KeyboardInterrupt
    assert word_in(out) == "old"


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


def test_a_file_keeps_its_permissions_a_link_is_followed_and_a_pipe_is_written_to(tmp_path: Path) -> None:
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path)
    write_json(link, 1)
    assert (link.is_symlink(), path.read_text(), path.stat().st_mode & 0o777) == (True, "1", 0o640)
    with writing_file(Path(os.devnull)) as same:
        assert same == Path(os.devnull)


def test_files_that_are_written_together_are_all_new_or_all_old(tmp_path: Path) -> None:
    first, second, third, link = (tmp_path / name for name in ("first", "second", "third", "link"))
    first.write_text("old")
    link.symlink_to(first)
    files = Files()
    for path, old, new in ((link, "old", "newer"), (second, "", "new")):
        files.change(path, 0, len(old), new)
    files.write()
    assert (link.is_symlink(), first.read_text(), second.read_text()) == (True, "newer", "new")
    for path, old, new in ((first, "newer", "newest"), (third, "", "new"), (Path("/proc/none/file"), "", "new")):
        files.change(path, 0, len(old), new)
    with pytest.raises(BuildError, match=r"cannot write .*Nothing was changed"):
        files.write()
    assert (first.read_text(), second.read_text(), third.exists()) == ("newer", "new", False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first", "link", "second"]
