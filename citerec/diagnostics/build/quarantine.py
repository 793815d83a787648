"""What a build could not read, in one list."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import orjson

from citerec.corpus.json_lines import BadRecord
from citerec.corpus.result_lines import quarantine_line
from citerec.corpus.shard_work import Result
from citerec.corpus.store import PaperStore
from citerec.diagnostics.build.survey import quarantine


def aside(store: PaperStore, results: Sequence[Result]) -> Iterator[bytes]:
    """The bad records of papers, citations and texts, once each, in order of shard and line.

    Args:
        store: Has the quarantine of the papers.
        results: Of the stages that read citations and texts; a shard may come several times, once a round.
    """
    lines: dict[str, list[bytes]] = {}
    shards = {number: Path(counts.path) for number, counts in store.finished_shards().items()}
    for bad in store.quarantine():
        if path := shards.get(bad.shard):
            line = quarantine_line(path, bad.line, BadRecord(bad.reason, bad.beginning))
            lines.setdefault(path.name, []).append(line)
    by_shard = {result.shard: result for result in results}
    for shard, result in sorted(
        [*by_shard.items(), *((Path(name), None) for name in lines)], key=lambda one: one[0].name
    ):
        found = lines[shard.name] if result is None else list(quarantine([result]))
        yield from sorted(found, key=lambda line: orjson.loads(line)["line"])
