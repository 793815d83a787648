"""What a draft cites already: entries of a bibliography, or ids."""

from pathlib import Path

from citerec.corpus.json_lines import raw_lines
from citerec.corpus.shards import papers_in
from citerec.drafts.read import is_latex, is_markdown
from citerec.errors import InputError
from citerec.records import Paper

_BIBLIOGRAPHIES = (".bib", ".bibtex", ".ris", ".json")


def read_cited(path: Path) -> dict[str, Paper]:
    """The papers of a file by citation key: entries of BibTeX, RIS or CSL-JSON; of any other file one id in each line.

    Entries that cannot be read are left out.

    Raises:
        SourceError: The file cannot be read, or is a `.json` file that is no bibliography.
        InputError: It is a draft.
    """
    if not {suffix.lower() for suffix in path.suffixes[-2:]}.isdisjoint(_BIBLIOGRAPHIES):
        return {paper.paper_id: paper for paper in papers_in(path)}
    if is_latex(path) or is_markdown(path):
        raise InputError(f"{path} is a draft, not a bibliography", "Give its bibliography, such as refs.bib.")
    ids = (raw.decode("utf-8", "replace").strip() for _, raw, _ in raw_lines(path))
    return {paper_id: Paper(paper_id) for paper_id in ids if paper_id}
