"""A written text as a draft will have it: its numbers become the keys of the bibliography."""

from pathlib import Path

import pytest

from citerec.drafts import Files
from citerec.drafts.filling import Filling
from citerec.records import Paper
from citerec.write.drafting import CitationText, in_draft
from citerec.write.tasks import Prediction, Source, TextTask

PAPERS = (Paper("1", "Okapi at TREC", authors=("Stephen Robertson",), year=1994), Paper("2", "BERT", year=2019))


@pytest.mark.parametrize(
    ("name", "marker", "expected"),
    [
        (
            "d.tex",
            r"\cite{?}",
            r"Both rank \cite{robertson1994okapi,anonymous2019bert} with 5\% less \cite{robertson1994okapi}.",
        ),
        ("d.md", "[@?]", "Both rank [@robertson1994okapi; @anonymous2019bert] with 5% less [@robertson1994okapi]."),
    ],
)
def test_numbers_become_keys(tmp_path: Path, name: str, marker: str, expected: str) -> None:
    (tmp_path / name).write_text(f"See {marker}.\n")
    filling = Filling(tmp_path / name, tmp_path / "refs.bib", Files(None), None)
    task = TextTask("t", tuple(map(Source.of, PAPERS)))
    text = CitationText(Prediction(task, "Both rank [0, 1] with 5% less [0].", "mine"), PAPERS)
    assert in_draft(text, filling) == expected
