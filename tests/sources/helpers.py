"""What tests of sources share: corpora that are fetched into folders, and what an index reads of them."""

from pathlib import Path

from citerec.corpus.base import FORMATS, find_shards
from citerec.records import Deletion, Paper
from citerec.sources.fetch import Cut, FetchedCorpus, Manner, Place, get_corpus, make_plan

ALONE = Manner(workers=1)


def fetched(corpus: str, url: str, out: Path, cut: Cut | None = None) -> FetchedCorpus:
    return get_corpus(make_plan(Place(corpus, url), out, None, (), cut or Cut()), ALONE)


def papers_of(folder: Path) -> dict[str, Paper]:
    """The papers of a folder, read as an index reads them."""
    papers: dict[str, Paper] = {}
    for shard in find_shards([folder]):
        for line in FORMATS[shard.format].read(shard.path):
            if isinstance(line.record, Paper):
                papers[line.record.paper_id] = line.record
            elif isinstance(line.record, Deletion):
                papers.pop(line.record.key, None)
    return papers
