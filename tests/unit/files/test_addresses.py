"""Files at addresses: found, read and written like paths, on a real server of S3's protocol."""

import sys

import pytest

from citerec.errors import InputError, ServiceError
from citerec.files.addresses import client_failures, expanded, path_of

pytestmark = pytest.mark.slow


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
        ("ftp://me:secret@host/k", None, "^an address ftp:// holds a password. Give it in the environment"),
        ("https://host/papers.jsonl", None, "files of the web are not read. Download it"),
    ],
)
def test_wrong_addresses(address: str, missing: str | None, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if missing:
        monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(InputError, match=message):
        path_of(address)
