"""Files of OpenAlex, arXiv and the ACL Anthology, as they are fetched, in one index: their papers are found."""

import gzip
from pathlib import Path

import orjson

from citerec import Recommender
from citerec.index.build import build_index
from citerec.index.manifest import generation_of
from tests.source_records import ENTRY, HEADER, VOLUME, preprint, work


def test_papers_of_all_sources_are_found_in_one_index(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    bees = [work(id=f"W{one}", title="Bees") for one in range(30)]
    works = [work(), work(is_paratext=True, id="W5"), {"id": "nothing"}, *bees]
    (folder / "part_000.gz").write_bytes(gzip.compress(b"\n".join(map(orjson.dumps, works))))
    (folder / "arxiv-metadata-oai-snapshot.json").write_bytes(orjson.dumps(preprint()) + b"\n")
    (folder / "anthology+abstracts.bib.gz").write_bytes(gzip.compress(f"{HEADER}{VOLUME}{ENTRY}".encode()))
    build_index([folder], tmp_path / "index")
    with Recommender.open(tmp_path / "index") as recommender:
        for sentence, paper_id in (
            ("Prevalence of open access <REF>.", "W2741809807"),
            ("Diphoton production in chromodynamics <REF>.", "0704.0001"),
            ("Probing BERT for naive parsers <REF>.", "garcia-etal-2020-probing"),
        ):
            assert recommender.search(sentence, k=1)[0].paper.paper_id == paper_id
    quarantine = (generation_of(tmp_path / "index") / "quarantine.jsonl").read_text()
    assert quarantine.count("\n") == 1 and "id is no work of OpenAlex" in quarantine
