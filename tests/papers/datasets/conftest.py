"""A small corpus, and full texts that cite it."""

from pathlib import Path

import pytest

from citerec.index.build import build_index
from tests.conftest import write_lines
from tests.papers.datasets.s2orc_records import Sections, s2orc_record

ABSTRACTS = {
    1: "We propose a parser of rivers. It finds the mouth of every river in a map by following water downhill.",
    2: "We present a census of lakes. Lakes are counted from pictures that were taken by night, all over the world.",
    3: "Mountains are ranked by the length of their shadow. The method needs one picture and the time of day.",
    4: None,
}
RIVERS = "Roe et al. [1] find the mouth of every river"
ON_WATER: Sections = [
    ("", "Abstract", ["We draw maps of water."]),
    ("1", "Introduction", [f"Rivers are on maps. {RIVERS} in a map."]),
    ("2", "Related Work", []),
    ("2.1", "Rivers in Related Work", [
        f"{RIVERS} by following water downhill. Maps are old. Their history is told in a book about maps [5]."]),
    ("2.2", "Lakes", ["Lakes are counted from pictures taken by night [2] [5], rivers by day [1]. It helps."]),
    ("3", "Conclusion", ["Water is mapped."]),
]  # fmt: skip
ON_PEAKS: Sections = [
    ("", "ABSTRACT", ["Peaks are sorted."]),
    ("1", "RELATED WORK", [
        "Mountains are ranked by the length of their shadow [3]. We like it. Others [2] do not."]),
    ("2", "METHOD", ["We sort peaks."]),
    ("3", "RESULTS", ["They are sorted."]),
]  # fmt: skip
BACKGROUND: Sections = [("1", "Background", ["One [1] is a river. Two [2] is a lake. Three [4] is not told."])]
TEXTS = [
    s2orc_record(901, ON_WATER, {1: 1, 2: 2, 3: 3, 4: 4, 5: None}),
    s2orc_record(902, ON_PEAKS, {2: 2, 3: 3}),
    s2orc_record(903, BACKGROUND, {1: 1, 2: 2, 4: 4}),
]


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The index of the papers, and a shard of the texts with a line that is none."""
    folder = tmp_path_factory.mktemp("corpus")
    papers = [
        {"paper_id": paper_id, "title": f"Paper {paper_id}", "abstract": abstract, "authors": ["Ada Roe"]}
        for paper_id, abstract in ABSTRACTS.items()
    ]
    build_index([write_lines(folder / "papers.jsonl", papers)], folder / "index")
    shard = write_lines(folder / "s2orc-00000.jsonl.gz", [*TEXTS, {"corpusid": 904}], compress=True)
    return folder / "index", shard
