"""`citerec check --online`: each verdict, what fails, what is kept, what is mended; against services on loopback."""

import json
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from citerec.corpus.bibtex import parse_bibtex, values_of
from citerec.corpus.venues import same_venue
from citerec.drafts.bibliography import Mending, mended
from citerec.records import Paper
from tests.conftest import Citerec
from tests.live.services import Records, sent
from tests.loopback import Answer, send

BIB = """@article{lakes, title = {Counting lakes by night and by day}, author = {Roe, Ada and Lee, Wei},
  year = 2011, journal = "Lake J.", doi = {10.1000/lakes}}
@inproceedings{wrong, title={Dams and their Ponds in Summer}, author={Ada Roe and Wei Lee}, year={2015},
  booktitle={ICML}, doi={10.1000/dams}}
@article{maps, title = {Maps without any Rivers at all}, author = {Ada Roe and others}, year = 2012}
@misc{seas, title = {Seas of the Moon are Dry}, author = {Ada Roe and Wei Lee}, year = 2018, eprint = {1801.00001},
  archiveprefix = {arXiv}}
@article{other, title = {Bridges over Troubled Water and Ice}, author = {Ola Nowak}, year = 2001, doi = {10.1000/dams}}
@article{made, title = {What nobody ever wrote about Glaciers}, author = {Ola Nowak}, year = 2020, journal = {Ice}}
@misc{site, title = {A page of the web}, howpublished = {https://example.org}}
@inproceedings{venue, title = {Dams and their Ponds in Winter}, author = {Ada Roe and Wei Lee}, year = 2015,
  booktitle = {Winter Dams}}
"""


@pytest.fixture
def records(tmp_path: Path) -> Iterator[Records]:
    (tmp_path / "refs.bib").write_text(BIB)
    found = Records()
    yield found
    found.stop()


def test_each_entry_has_its_verdict(records: Records, citerec_here: Citerec) -> None:
    run = citerec_here("check", "refs.bib", "--online", "--format", "json", *records.options)
    assert run.returncode == 1 and not run.stderr, run.stderr
    entries = {one["key"]: one for one in json.loads(run.stdout)["entries"]}
    assert {key: (one["verdict"], *one["codes"]) for key, one in entries.items()} == {
        "lakes": ("found",),
        "wrong": ("differs", "title-differs"),
        "maps": ("retracted", "retracted"),
        "seas": ("published since", "preprint-published"),
        "other": ("identifier of another work", "other-work"),
        "made": ("not found", "not-found"),
        "site": ("not checked",),
        "venue": ("differs", "venue-unknown"),
    }
    assert (entries["lakes"]["source"], entries["lakes"]["record"]["doi"]) == ("Crossref", "10.1000/lakes")
    assert entries["maps"]["notices"][0]["address"] == "https://doi.org/10.1000/notice"
    words = " ".join(value for _, one in records.seen for value in one.values())
    assert "example.org" not in words and "Nowak and" not in words  # nothing is sent but what finds a record
    asked = len(records.seen)
    again = citerec_here("check", "refs.bib", "--online", "--format", "json", *records.options)
    assert again.stdout == run.stdout and len(records.seen) == asked


@pytest.mark.parametrize(
    "bad",
    [
        sent({"error": "no"}, 500),
        sent({}, 429, Retry_After="1"),
        sent({}, 429),
        send(200, b"<html>Log in</html>"),
        send(200, b'{"results": [{"id"', most=9),
        send(200, b"\xff\xfe\x00"),
        send(302, Location="http://127.0.0.1:9/elsewhere"),
    ],
    ids=["500", "429-after", "429", "html", "half", "encoding", "redirect"],
)
def test_a_service_that_fails_changes_no_verdict(bad: Answer, records: Records, citerec_here: Citerec) -> None:
    well = citerec_here("check", "refs.bib", "--online", "--select", "retracted,not-found", *records.options)
    records.bad = {"openalex": bad}
    nothing_kept = ("-c", "keep_days=0", *records.options)
    run = citerec_here("check", "refs.bib", "--online", "--select", "retracted,not-found", *nothing_kept)
    assert run.stdout == well.stdout and "OpenAlex failed for some entries" in run.stderr
    assert "Traceback" not in run.stderr


def test_what_is_known_to_be_right_is_mended_and_nothing_else(
    records: Records, tmp_path: Path, citerec_here: Citerec
) -> None:
    bib = BIB.replace("Lake J.", "Lake Journal &amp; Ponds").replace("\n", "\r\n")
    (tmp_path / "refs.bib").write_bytes(bib.encode())
    run = citerec_here("check", "refs.bib", "--online", "--fix=all", *records.options)
    assert "3 entries changed." in run.stderr
    expected = bib.replace("&amp; Ponds", "").replace("in Summer", "in Winter").replace("{Winter Dams}", "{ICML}")
    new = (tmp_path / "refs.bib").read_bytes().decode()
    assert new == expected.replace('"Lake Journal "', '"Lake Journal \\& Ponds"')
    (tmp_path / "refs.bib").write_bytes(bib.encode())
    asked = citerec_here("check", "refs.bib", "--online", "--fix", *records.options, text="y\nn\nn\n")
    assert "-  booktitle={ICML}" not in asked.stdout and "1 entry changed." in asked.stderr, asked.stderr


TABLE = """Record ID,Title,OriginalPaperDOI,RetractionDOI,RetractionNature
1,Another,10.1000/LAKES,10.1000/gone,Retraction
2,What nobody ever wrote about Glaciers,unavailable,,Expression of concern
"""


def test_retraction_watch_without_a_network(records: Records, tmp_path: Path, citerec_here: Citerec) -> None:
    (tmp_path / "rw.csv").write_text(TABLE)
    run = citerec_here("check", "refs.bib", "--retractions", "rw.csv")
    assert not records.seen
    assert "retracted lakes was retracted: https://doi.org/10.1000/gone" in run.stdout
    assert "concern there is an expression of concern about made" in run.stdout
    (tmp_path / "rw.csv").write_text("a,b\n1,2\n")
    run = citerec_here("check", "refs.bib", "--retractions", "rw.csv")
    assert run.returncode == 2 and "rw.csv has no column OriginalPaperDOI" in run.stderr


SAME = [
    ("CVPR", "2023 IEEE/CVF Conference on Computer Vision and Pattern Recognition (CVPR)"),
    ("NIPS 2017", "Advances in Neural Information Processing Systems 30"),
    ("IEEE Trans. Pattern Anal. Mach. Intell.", "IEEE Transactions on Pattern Analysis and Machine Intelligence"),
    ("KDD", "Proceedings of the 24th ACM SIGKDD International Conference on Knowledge Discovery & Data Mining"),
    ("NAACL", "Proceedings of the 2019 Conference of the North American Chapter of the Association for Computational "
     "Linguistics: Human Language Technologies"),
]  # fmt: skip
OTHER = [("ICML", "ICLR"), ("Nature", "Nature Communications"), ("ICML", "Journal of Machine Learning Research")]


@pytest.mark.parametrize(("first", "second", "same"), [(*one, True) for one in SAME] + [(*one, False) for one in OTHER])
def test_names_of_venues(first: str, second: str, same: bool) -> None:
    assert same_venue(first, second) is same_venue(second, first) is same


def is_closed(text: str) -> bool:
    depths = list(accumulate((sign == "{") - (sign == "}") for sign in text))
    return not depths or (min(depths) >= 0 and depths[-1] == 0)


VALUES = st.text(st.sampled_from('ab,="{}# \n'), max_size=12).filter(is_closed)


@given(st.dictionaries(st.sampled_from(["title", "year", "note"]), VALUES, min_size=1), VALUES)
def test_one_field_changes_and_the_others_stay(fields: dict[str, str], new: str) -> None:
    text = "@article{k,\n" + ",\n".join(f" {name} = {{{value}}}" for name, value in fields.items()) + "\n}"
    (line,) = list(parse_bibtex(text, untitled=True))[:1] or [None]
    if line is None or not isinstance(line.record, Paper):
        return
    assert {name: one.text for name, one in values_of(text).items()} == fields
    first = next(iter(fields))
    changed = values_of(mended(text, [Mending(first, new)]))
    assert {name: one.text for name, one in changed.items()} == {**fields, first: new}


def test_entries_are_added_by_id_and_by_title(records: Records, tmp_path: Path, citerec_here: Citerec) -> None:
    bib = "@article{roe_2011, title={A}, author={Ada Roe}, year={2011}}\n"
    bib += "@article{lee_2003, title={B}, author={W. Lee}, year={2003}}\n"
    (tmp_path / "mine.bib").write_text(bib)
    wanted = ("https://doi.org/10.1000/DAMS", "Seas of the Moon are dry", "10.1000/dams")
    run = citerec_here("bib", "add", *wanted, "--bib", "mine.bib", *records.options)
    assert run.returncode == 0 and "roe_2015 is there already" in run.stderr, run.stderr
    new = (tmp_path / "mine.bib").read_text()
    assert new.startswith(bib) and new.count("@") == 4 and "abstract" not in new
    assert "@inproceedings{roe_2015,\n  author = {Ada Roe and W. Lee}," in new and "doi = {10.1000/seas}" in new
    run = citerec_here("bib", "add", "10.1000/dams", "--bib", "mine.bib")  # no service is asked
    assert run.returncode == 0 and "roe_2015 is there already" in run.stderr, run.stderr
    (tmp_path / "bare.bib").write_text("@misc{bare, doi={10.1000/dams}}\n")
    assert "bare is there already" in citerec_here("bib", "add", "10.1000/DAMS", "--bib", "bare.bib").stderr
    assert (tmp_path / "bare.bib").read_text() == "@misc{bare, doi={10.1000/dams}}\n"
    run = citerec_here("bib", "add", "10.1000/nothing", "10.1000/maps", "--bib", "mine.bib", *records.options)
    assert run.returncode == 2 and "no source has '10.1000/nothing'" in run.stderr
    assert (tmp_path / "mine.bib").read_text() == new
