import json
import string
import warnings
from pathlib import Path
from typing import Any

import orjson
import pytest
import rispy
from hypothesis import example, given, strategies as st

from citerec.corpus.base import entries_of
from citerec.corpus.bibtex import read_bibtex
from citerec.corpus.csl import is_csl, read_csl
from citerec.corpus.reading import BadRecord
from citerec.corpus.ris import read_ris
from citerec.errors import SourceError
from citerec.records import Paper

LIBRARY = """Provider: A Publisher
Content: text/plain; charset="UTF-8"

TY  - JOUR
ID  - my key
AU  - Lovelace, Ada
AU  - Babbage, C., Jr.
TI  - Research &amp; <i>Development</i>
  of machines
T1  - Another title
JO  - J. Mach.
JF  - Journal of Machines
PY  - 2010/05/01/
Y1  - 2011///
DO  - https://doi.org/10.1000/x;y
AB  - First line
IR - information retrieval, which is no tag
ER  -

ty  - conf
a1  - The Group
t1  - Small letters
t2  - Proceedings of Things
y1  - 2001
er  -
TY  - UNPB
TI  - No end
UR  - https://arxiv.org/abs/1706.03762v2
UR  - http://dx.doi.org/10.1/z
PB  - arXiv
TY  - BOOK
BT  - A book
A2  - Editor, Ed
ER  -
"""


def read(tmp_path: Path, text: str | bytes) -> list[Paper | BadRecord]:
    path = tmp_path / "library.ris"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return [line.record for line in read_ris(path)]  # type: ignore[misc]


def papers(tmp_path: Path, text: str) -> list[Paper]:
    return [record for record in read(tmp_path, text) if isinstance(record, Paper)]


@pytest.mark.parametrize("text", [LIBRARY, "\ufeff" + LIBRARY.replace("\n", "\r\n")], ids=["plain", "of Windows"])
def test_a_library_with_its_traps(tmp_path: Path, text: str) -> None:
    journal, small, no_end, book = papers(tmp_path, text)
    assert (journal.paper_id, journal.title) == ("my_key", "Research & Development of machines")
    assert journal.authors == ("Ada Lovelace", "C. Babbage Jr.")
    assert (journal.venue, journal.year) == ("Journal of Machines", 2010)
    assert dict(journal.external_ids) == {"DOI": "10.1000/x;y"}
    assert journal.abstract == "First line IR - information retrieval, which is no tag"
    assert (small.title, small.authors, small.year) == ("Small letters", ("The Group",), 2001)
    assert small.venue == "Proceedings of Things"
    assert (no_end.paper_id, no_end.venue) == ("10.1/z", "arXiv")
    assert dict(no_end.external_ids) == {"DOI": "10.1/z", "ArXiv": "1706.03762"}
    assert (book.title, book.authors, book.venue) == ("A book", ("Ed Editor",), None)


def test_ids_that_are_made_are_those_of_the_same_record_only(tmp_path: Path) -> None:
    names = "AU  - Lee, K\nAU  - Kim\nAU  - Kim\nA1  - Lee, K\nED  - Ed\n"
    texts = (f"TY  - GEN\n{names}TI  - Deep {x}\nPY  - 2001\nER  - \n" for x in ("one", "two", "one"))
    first, second, again = papers(tmp_path, "".join(texts))
    assert first.paper_id.startswith("lee2001deep-") and first.paper_id == again.paper_id != second.paper_id
    assert first.authors == ("K Lee", "Kim", "Kim")  # primary authors come first, and once


def test_lines_that_are_no_record_are_set_aside_with_their_line(tmp_path: Path) -> None:
    wrong = b"AU  - Lee\nER  - \nTY  - GEN\nPY  - 1999\nER  - \nTY  - GEN\nTI  - \xe9\n"
    (path := tmp_path / "x.ris").write_bytes(b"TY  - GEN\nTI  - a\nER  - \n" + wrong)
    sound, *bad = read_ris(path)
    assert isinstance(sound.record, Paper)
    reasons = ("a record must begin with a line TY", "neither title nor abstract", "not UTF-8")
    for line, number, reason in zip(bad, (4, 6, 9), reasons, strict=True):
        assert line.number == number and isinstance(line.record, BadRecord) and reason in line.record.reason
    (bad_file,) = read(tmp_path, "FN Web of Science\nPT J\nAU Lee, K\nTI Words\nER\n")
    assert isinstance(bad_file, BadRecord) and read(tmp_path, "") == []


PAPER = Paper(
    "1",
    "Crème: a < b & $x^2$",
    year=2001,
    venue="SIGIR '01",
    authors=("Ada Lovelace", "Charles de la Vallée Jr", "Plato"),
    external_ids={"DOI": "10.1/a_b", "ArXiv": "1706.03762"},
)


def test_others_read_what_is_written() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (record,) = rispy.loads("\n".join(entries_of([PAPER], "ris")))
    assert record == {
        "type_of_reference": "CONF",
        "id": "lovelace2001creme",
        "authors": ["Lovelace, Ada", "de la Vallée, Charles, Jr", "Plato"],
        "title": PAPER.title,
        "secondary_title": PAPER.venue,
        "year": "2001",
        "doi": "10.1/a_b",
        "urls": ["https://arxiv.org/abs/1706.03762"],
    }
    for venue, kind in (("arXiv", "UNPB"), ("Journal of X", "JOUR"), ("Somewhere", "GEN")):
        assert entries_of([Paper("1", "T", venue=venue)], "ris")[0].startswith(f"TY  - {kind}\n")


SHOWN = st.text(alphabet=string.printable + "éñüßÅøıł题–—“”’Ω", max_size=30).map(lambda text: " ".join(text.split()))
NAMES = st.lists(SHOWN.filter(lambda name: name and not set(name) & set(",;")), max_size=3).map(tuple)
IDS = st.fixed_dictionaries(
    {"DOI": st.from_regex(r"\A10\.[0-9]{4}/[a-z0-9.;()-]{1,12}\Z")}, optional={"ArXiv": st.just("1706.03762")}
)
PAPERS = st.builds(
    Paper,
    st.just("1"),
    SHOWN.map("T{}".format),
    year=st.integers(1500, 2099),
    venue=st.none() | SHOWN.filter(bool),
    authors=NAMES,
    external_ids=IDS,
)


@given(PAPERS)
@example(Paper("1", "<i>x</i> &amp; \\alpha TY - GEN", None, None, 2001, "ER -", ("van Gogh", "A b C Jr", "<b>x</b>")))
def test_what_is_written_is_read_back_in_every_form(tmp_path_factory: pytest.TempPathFactory, paper: Paper) -> None:
    written = {
        read_ris: "\n\n".join(entries_of([paper, PAPER], "ris")).encode(),
        read_csl: orjson.dumps(entries_of([paper, PAPER], "csl")),
        read_bibtex: "\n\n".join(entries_of([paper, PAPER])).encode(),
    }
    for reader, text in written.items():
        path = tmp_path_factory.getbasetemp() / "written"
        path.write_bytes(text)
        for given_paper, line in zip((paper, PAPER), reader(path), strict=True):
            for field in ("title", "year", "venue", "authors", "external_ids"):
                assert getattr(line.record, field) == getattr(given_paper, field), reader


ITEM: dict[str, Any] = {
    "id": "http://zotero.org/users/1/items/ABC",
    "type": "article-journal",
    "title": 'A <i>study</i> of <span class="nocase">Things</span> &amp; words',
    "container-title": "Journal of Things",
    "author": [
        {"family": "Vallée", "given": "Charles", "non-dropping-particle": "de la", "suffix": "Jr"},
        {"literal": "The Group"},
        {"family": "Beethoven", "dropping-particle": "van", "given": "Ludwig"},
    ],
    "issued": {"date-parts": [["2010", 5, 1]]},
    "DOI": "https://doi.org/10.1000/xyz",
    "PMID": 123,
    "volume": "3",
}


def read_items(tmp_path: Path, value: Any) -> list[Paper | BadRecord]:
    path = tmp_path / "library.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return [line.record for line in read_csl(path)]  # type: ignore[misc]


@pytest.mark.parametrize("wrapped", [[ITEM], {"items": [ITEM]}, {"total": 1, "items": [ITEM]}])
def test_an_item_with_its_traps(tmp_path: Path, wrapped: Any) -> None:
    (paper,) = read_items(tmp_path, wrapped)
    assert paper == Paper(
        "http://zotero.org/users/1/items/ABC",
        "A study of Things & words",
        year=2010,
        venue="Journal of Things",
        authors=("Charles de la Vallée Jr", "The Group", "Ludwig van Beethoven"),
        external_ids={"DOI": "10.1000/xyz", "PubMed": "123"},
    )
    assert is_csl(tmp_path / "library.json")


def test_dates(tmp_path: Path) -> None:
    dates = [{"date-parts": [["1999", "01"], ["2001"]]}, {"raw": "May 2005"}, {"literal": "in press"}, "2003-02-01"]
    dates += [[{"year": "1998"}], 1997, {"date-parts": [[]]}]
    papers = read_items(tmp_path, [{**ITEM, "issued": issued} for issued in dates])
    years = [paper.year for paper in papers if isinstance(paper, Paper)]
    assert years == [1999, 2005, None, 2003, 1998, 1997, None]


def test_what_is_missing_or_of_another_type(tmp_path: Path) -> None:
    text = '[\n{"title": ["Words", "x"], "author": ["Ann Lee"], "number": "arXiv:1706.03762", "publisher": "arXiv"},\n'
    text += '5,\n\n{"title": {}},\n{"title": "T", "author": [1]}, {"id": 7, "title": "T"}, {"id": 8}]'
    made, *_, seventh, _ = found = read_items(tmp_path, text)
    assert [line.number for line in read_csl(tmp_path / "library.json")] == [2, 3, 5, 6, 6, 6]
    assert isinstance(made, Paper) and isinstance(seventh, Paper)
    assert made.paper_id.startswith("leewords-") and seventh.paper_id == "7"
    assert (made.venue, dict(made.external_ids), made.authors) == ("arXiv", {"ArXiv": "1706.03762"}, ("Ann Lee",))
    bad = [record.reason for record in found if isinstance(record, BadRecord)]
    reasons = ("a int where a JSON object", "title is a dict", "author holds a int", "neither title nor abstract")
    assert all(reason in one for one, reason in zip(bad, reasons, strict=True))
    for no_list in ("", "{}", '[{"title": "x"}', '{"items": {}}', '[{"a": }]', '[] {"a": 1}'):
        with pytest.raises(SourceError):
            read_items(tmp_path, no_list)


def test_what_only_the_own_entry_says_goes_along(tmp_path: Path) -> None:
    (tmp_path / "a.bib").write_text(
        "@article{lee, title={T}, author={Lee, Ann}, journal={J. of X}, year=2001, volume={7}, number=2,"
        " pages={11--19}, publisher={A \\& B}, issn={1234-5678},"
        " abstract={A result.We use Node.JS and www.Acm.org stay.}}\n"
    )
    (paper,) = (line.record for line in read_bibtex(tmp_path / "a.bib"))
    assert isinstance(paper, Paper) and paper.abstract == "A result. We use Node.JS and www.Acm.org stay."
    (item,), (record,) = entries_of([paper], "csl"), entries_of([paper], "ris")
    further = {"volume": "7", "issue": "2", "page": "11–19", "publisher": "A & B", "ISSN": "1234-5678"}
    assert further.items() <= item.items() and item["author"] == [{"family": "Lee", "given": "Ann"}]
    (read,) = rispy.loads(record)
    told = {"volume": "7", "number": "2", "start_page": "11", "end_page": "19", "issn": "1234-5678"}
    assert told.items() <= read.items() and read["secondary_title"] == "J. of X"
