"""What a draft cites already: entries of a `.bib` file, or ids, as papers of an index."""

from collections.abc import Mapping
from itertools import product, starmap
from pathlib import Path

from citerec.corpus.bibtex import read_bibtex
from citerec.corpus.json_lines import raw_lines
from citerec.corpus.store import PaperStore
from citerec.datasets.matching import LEAST_ALIKE, MOST_YEARS, Search, same_author, similarity, title_search
from citerec.records import Paper


def read_cited(path: Path) -> dict[str, Paper]:
    """The papers of a file by citation key: entries of a `.bib` file; of any other file one id in each line.

    Entries that cannot be read are left out.

    Raises:
        SourceError: The file cannot be read.
    """
    if path.suffix.lower() == ".bib":
        papers = (line.record for line in read_bibtex(path))
        return {paper.paper_id: paper for paper in papers if isinstance(paper, Paper)}
    ids = (raw.decode("utf-8", "replace").strip() for _, raw, _ in raw_lines(path))
    return {paper_id: Paper(paper_id) for paper_id in ids if paper_id}


def papers_of_index(cited: Mapping[str, Paper], index: Path, store: PaperStore) -> dict[str, str]:
    """Ids in an index of the papers that a draft cites, by citation key; those that the index lacks are left out.

    An entry is the paper whose id is its key, or which has its DOI, or its title, a shared author and nearly its
    year (`citerec.datasets.matching`). An entry without a title is an id.
    """
    own = store.papers(cited)
    found: dict[str, str] = {}
    with title_search(index) as search:
        for key, entry in cited.items():
            same_id = own.get(key)
            if same_id and (not entry.title or similarity(entry.title, same_id.title) >= LEAST_ALIKE):
                found[key] = key
            elif entry.title and (paper_id := _nearest(entry, search, store)):
                found[key] = paper_id
    return found


def _nearest(entry: Paper, search: Search, store: PaperStore) -> str | None:
    ids = search(entry.title)
    papers = store.papers(ids)
    scored = [(_alike(entry, papers[paper_id]), paper_id) for paper_id in ids if paper_id in papers]
    score, paper_id = max(scored, key=lambda each: each[0], default=(0.0, ""))  # the first of several
    return paper_id if score else None


def _alike(entry: Paper, paper: Paper) -> float:
    """Similarity of the titles of two records; 0 if they are not the same paper, 2 if they have the same DOI."""
    doi, other = (record.external_ids.get("DOI", "").casefold() for record in (entry, paper))
    if doi and doi.removeprefix("https://doi.org/") == other:
        return 2.0
    if entry.year is not None and paper.year is not None and abs(entry.year - paper.year) > MOST_YEARS:
        return 0.0
    if entry.authors and paper.authors and not any(starmap(same_author, product(entry.authors, paper.authors))):
        return 0.0
    score = similarity(entry.title, paper.title)
    return score if score >= LEAST_ALIKE else 0.0
