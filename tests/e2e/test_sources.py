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
    works = [
        work(),
        work(is_paratext=True, id="W5"),
        {"id": "nothing"},
        *(work(id=f"W{one}", title="Bees") for one in range(30)),
    ]
    (folder / "part_000.gz").write_bytes(gzip.compress(b"\n".join(map(orjson.dumps, works))))
    (folder / "arxiv-metadata-oai-snapshot.json").write_bytes(orjson.dumps(preprint()) + b"\n")
    (folder / "anthology+abstracts.bib.gz").write_bytes(gzip.compress(f"{HEADER}{VOLUME}{ENTRY}".encode()))
    build_index([folder], tmp_path / "index")
    recommender = Recommender.open(tmp_path / "index")

    def found(sentence: str) -> tuple[str, str]:
        hit = recommender.search(sentence, k=1)[0]
        return hit.paper.paper_id, hit.paper.title

    assert found("Prevalence of open access <REF>.") == ("W2741809807", "The state of OA & its prevalence")
    assert found("Diphoton production in chromodynamics <REF>.")[0] == "0704.0001"
    assert found("Probing BERT for naive parsers <REF>.")[0] == "garcia-etal-2020-probing"
    quarantine = (generation_of(tmp_path / "index") / "quarantine.jsonl").read_text()
    assert quarantine.count("\n") == 1 and "id is no work of OpenAlex" in quarantine
