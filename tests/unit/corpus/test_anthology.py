"""The ACL Anthology's file, entry by entry."""

import gzip
from pathlib import Path

from citerec.corpus.base import FORMATS, recognise
from citerec.corpus.bibtex import read_bibtex
from citerec.corpus.reading import BadRecord
from citerec.records import Paper
from tests.source_records import ENTRY, HEADER, VOLUME


def test_an_entry_is_a_paper(tmp_path: Path) -> None:
    path = tmp_path / "anthology+abstracts.bib.gz"
    path.write_bytes(gzip.compress(f"{HEADER}{VOLUME}{ENTRY}".encode()))
    assert recognise(path) == "acl-anthology"
    (line,) = FORMATS["acl-anthology"].read(path)
    assert line.number == 3 + VOLUME.count("\n")
    assert line.record == Paper(
        "garcia-etal-2020-probing",
        title="Probing BERT for naïve & “other” parsers",
        abstract="We probe 30% of the parsers, and find that $x^2$ helps—sometimes.",
        year=2020,
        venue="Proceedings of the 58th Annual Meeting of the Association for Computational Linguistics",
        authors=("María García", "Bo Šimon"),
        external_ids={"DOI": "10.18653/v1/2020.acl-main.1", "ACL": "2020.acl-main.1"},
        bibtex=ENTRY.strip(),
    )
    # It reads what the reader of BibTeX reads.
    other = ENTRY.replace("garcia-etal-2020-probing", "other").replace("2020.acl-main.1", "P19-1001")
    path = tmp_path / "some.bib"
    path.write_text(f"\n{ENTRY}\n{other}@article{{short, title={{One line}}}}\n", encoding="utf-8")
    assert recognise(path) == "bibtex"
    ours, theirs = ([line.record for line in read(path)] for read in (FORMATS["acl-anthology"].read, read_bibtex))
    assert ours == theirs and len(ours) == 3


def test_a_broken_entry_takes_no_other_with_it(tmp_path: Path) -> None:
    path = tmp_path / "a.bib"
    broken = ENTRY.replace('mputational Linguistics",\n    month', "mputational Linguistics,\n    month")
    unclosed = ENTRY[: ENTRY.index("    abstract")]
    path.write_text(f"{HEADER}{ENTRY}{broken}{unclosed}{ENTRY}{unclosed}", encoding="utf-8")
    records = [line.record for line in FORMATS["acl-anthology"].read(path)]
    assert [isinstance(record, BadRecord) for record in records] == [False, True, True, False, True]
