"""Files at addresses: found, read and written like paths, on a real server of S3's protocol."""

import gzip
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from citerec.corpus.base import find_shards
from citerec.corpus.reading import raw_lines
from citerec.errors import InputError, ServiceError, SourceError
from citerec.files.addresses import client_failures, expanded, is_address, path_of
from citerec.files.resume import Step, run_stage
from citerec.files.writing import write_json, writing_file

pytestmark = pytest.mark.slow


def test_addresses_are_used_like_paths(s3: str) -> None:
    for name, content in (("a.jsonl", b"one\ntwo\n"), ("b.jsonl.gz", gzip.compress(b"three\n"))):
        path_of(f"{s3}/like/{name}").write_bytes(content)
    folder = path_of(f"{s3}/like")
    assert is_address(folder) and str(folder) == f"{s3}/like" and path_of(folder) is folder
    found = expanded([path_of(f"{s3}/like/*.gz"), folder])
    assert list(map(str, found)) == [f"{s3}/like/b.jsonl.gz", f"{s3}/like"]
    assert [line for _, line, _ in raw_lines(folder / "b.jsonl.gz")] == [b"three\n"]
    with pytest.raises(SourceError, match=r"there is nothing at s3://citerec/like/\*.bib"):
        expanded([path_of(f"{s3}/like/*.bib")])
    with pytest.raises(SourceError, match=r"cannot read s3://citerec/like/c"):
        list(raw_lines(folder / "c"))
    write_json(path := path_of(f"{s3}/whole.json"), [1])
    with pytest.raises(ZeroDivisionError), writing_file(path) as partial:
        partial.write_bytes(b"half")
        raise ZeroDivisionError
    assert path.read_bytes() == b"[1]"


def test_shards_are_found_and_results_used_again(s3: str) -> None:
    for name in ("papers/p2.jsonl", "papers/p1.jsonl", "papers/.hidden", "abstracts/a.jsonl"):
        path_of(f"{s3}/found/{name}").write_bytes(b'{"paper_id": "1", "title": "A title"}\n')
    shards = find_shards([path_of(f"{s3}/found")])
    names = [str(shard.path).removeprefix(f"{s3}/found/") for shard in shards]
    assert names == ["papers/p1.jsonl", "papers/p2.jsonl", "abstracts/a.jsonl"]
    assert [shard.format for shard in shards] == ["s2ag-papers", "s2ag-papers", "s2ag-abstracts"]
    done: list[float] = []

    def run() -> int:
        done.clear()
        run_stage(
            path_of(f"{s3}/work"),
            [shard.path for shard in shards],
            Step(upper, 1),
            {},
            workers=1,
            on_progress=lambda now, _: done.append(now),
        )
        return len(done) - 1

    assert [run(), run()] == [3, 0]
    shards[0].path.write_bytes(b'{"paper_id": "2", "title": "A title"}\n')  # as long as before
    assert [run(), run()] == [1, 0]


def upper(shard: Path, out: Path, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    out.write_bytes(b"".join(line for _, line, _ in raw_lines(shard)).upper())
    return {}


def test_nobody_answers(silent_port: int, s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import s3fs
    from botocore.exceptions import EndpointConnectionError

    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent_port}")
    monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1)
    s3fs.S3FileSystem.clear_instance_cache()
    with pytest.raises(ServiceError, match=r"cannot reach s3://citerec/x: .*Are the credentials") as raised:
        expanded([path_of(f"{s3}/x")])
    s3fs.S3FileSystem.clear_instance_cache()
    assert "for-tests" not in str(raised.value)
    with pytest.raises(OSError, match=r'URL: "http://…@host/x"$'), client_failures():  # a password is left out
        raise EndpointConnectionError(endpoint_url="http://me:secret@host/x")


@pytest.mark.parametrize(
    ("address", "missing", "message"),
    [
        ("s3://b/k", "upath", r"s3://b/k: the package for s3:// is not installed. pip install 'citerec\[scale\]'"),
        ("gs://b/k", "gcsfs", "gs://b/k: the package for gs:// is not installed. .*gcsfs"),
        ("ftp://me:secret@host/k", None, "^an address ftp:// holds a password. Give it in the environment"),
        ("https://host/papers.jsonl", None, "files of the web are not read. Download it"),
        ("s3://", None, "s3:// names no folder. Write s3://BUCKET/FOLDER"),
        ("none://b/k", None, "there are no addresses none://. Try s3://, gs:// or a path"),
    ],
)
def test_addresses_that_cannot_be_used(
    address: str, missing: str | None, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing:
        monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(InputError, match=message):
        path_of(address)
