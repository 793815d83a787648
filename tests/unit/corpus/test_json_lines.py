import gzip
from pathlib import Path

import pytest

from citerec.corpus.base import FORMATS
from citerec.corpus.reading import BadRecord
from citerec.errors import SourceError
from citerec.records import PaperText

GOOD = b'{"corpusid": 1, "text": "one"}\n'


def records(path: Path) -> list[tuple[int, object]]:
    return [(line.number, line.record) for line in FORMATS["s2ag-tldrs"].read(path)]


def test_bad_lines_are_told_apart_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD + b'\n[1]\nnot json\n{"corpusid": 2, "text": "\xff"}\n{"corpusid": 3, "te')
    numbers, found = zip(*records(path), strict=True)
    assert numbers == (1, 3, 4, 5, 6)
    assert found[0] == PaperText("tldrs", "1", "one")
    reasons = [record.reason for record in found[1:] if isinstance(record, BadRecord)]
    assert reasons[0] == "a list where a JSON object should be"
    assert reasons[1].startswith("not JSON")
    assert reasons[2] == "not UTF-8"
    assert reasons[3].startswith("not JSON")


def test_gzip_is_known_by_its_bytes_and_may_have_several_members(tmp_path: Path) -> None:
    path = tmp_path / "without-an-ending"
    path.write_bytes(gzip.compress(GOOD) + gzip.compress(GOOD * 2))
    assert len(records(path)) == 3


@pytest.mark.parametrize("damage", [lambda data: data[:-20], lambda data: data[:40] + b"\0" * 20 + data[60:]])
def test_a_broken_gzip_stream_is_an_error_with_a_remedy(tmp_path: Path, damage: object) -> None:
    path = tmp_path / "x.gz"
    path.write_bytes(damage(gzip.compress(b"".join(b'{"corpusid": %d}\n' % n for n in range(500)))))  # type: ignore[operator]
    with pytest.raises(SourceError, match=r"gzip stream is broken.*zcat"):
        records(path)
