"""A process that reads shards into a database: `python -m tests.mongo.writer ADDRESS SHARDS LOCK_SECONDS PAUSE`.

SHARDS is a JSON file with a list of paths and formats. It prints the name of each shard that it begins, and waits for
some seconds before each batch.
"""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from citerec.corpus import ingest as ingest_module, mongo_store
from citerec.corpus.base import Shard
from citerec.corpus.stores import open_store


def main(address: str, shards: str, seconds: str, pause: str) -> None:
    mongo_store.LOCK_SECONDS = float(seconds)
    ingest_module._BATCH = 20
    read = ingest_module.batches_of

    def slowly(task: tuple[int, Shard]) -> Iterator[Any]:
        print(task[1].path.name, flush=True)
        for batch in read(task):
            time.sleep(float(pause))
            yield batch

    ingest_module.batches_of = slowly
    store = open_store(address)
    given = [Shard(Path(path), name) for path, name in json.loads(Path(shards).read_text())]
    ingest_module.ingest(given, store, first=1, max_bad=0.05, workers=1, on_progress=lambda *_: None)
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
