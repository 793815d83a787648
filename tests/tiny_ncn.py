"""A network of NCN small enough to train in a test."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import torch

from citerec.index.columns import words_in
from citerec.papers.diagnostic.ncn import Manifest, Ncn, Sizes, Vocabulary, names_of
from citerec.records import Paper

TINY = Sizes(
    embedding=16,
    hidden=24,
    filters=16,
    context_widths=(2, 2, 3),
    author_widths=(1, 2),
    context_words=12,
    title_words=6,
    authors=3,
    vocabulary=500,
)


def tiny_ncn(papers: Iterable[Paper], texts: Iterable[str]) -> Ncn:
    """A network of random weights that knows the words of some papers and texts."""
    papers = list(papers)
    counts = {
        "texts": Counter(word for text in texts for word in words_in(text)),
        "titles": Counter(word for paper in papers for word in words_in(paper.title)),
        "authors": Counter(name for paper in papers for name in names_of(paper.authors)),
    }
    words = {kind: Vocabulary.of(found + found, TINY.vocabulary) for kind, found in counts.items()}
    torch.manual_seed(0)
    return Ncn(Manifest(sizes=TINY), words).eval()


def write_tiny_ncn(folder: Path, papers: Iterable[Paper], texts: Iterable[str], weight: float = 1.0) -> Path:
    folder.mkdir(parents=True)
    model = tiny_ncn(papers, texts)
    model.save(folder)
    model.manifest.model_copy(update={"weight": weight}).write(folder)
    return folder
