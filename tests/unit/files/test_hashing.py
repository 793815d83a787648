"""Digests and samples: the same on every machine, and as they always were."""

import hashlib
import os
from pathlib import Path

from citerec.files.hashing import digest_of, file_digest, hash_sample, identity


def test_samples_that_were_published_stay_what_they_are() -> None:
    """Contexts of diagnostic sets, dev splits of training and splits of data sets were drawn by these numbers."""
    assert hash_sample(3, "paper 1", between="\t") == 16493377930287559496
    assert hash_sample(3, "paper 1") == 3689436902012300001
    assert hash_sample(0, "x", "y") == 7723644038609828039
    assert hash_sample(3, "paper 1", between=" ") == 3665104828777456908


def test_samples_are_even_and_digests_do_not_hang_on_the_order_of_keys() -> None:
    shares = [hash_sample(0, str(number)) / 2**64 for number in range(10_000)]
    assert 0.09 < sum(share < 0.1 for share in shares) / len(shares) < 0.11
    assert digest_of({"a": 1, "b": [2, None]}) == digest_of({"b": [2, None], "a": 1})
    assert digest_of({"a": 1}) != digest_of({"a": "1"})


def test_a_file_is_known_by_what_it_holds_or_by_where_and_when(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"text")
    assert file_digest(path) == hashlib.sha256(b"text").hexdigest()
    assert file_digest(path, "blake2b") == hashlib.blake2b(b"text").hexdigest()
    before = identity(path)
    assert before == identity(tmp_path / "." / "file")
    os.utime(path, ns=(0, before[2] + 1000))
    assert identity(path) != before
