import json
from pathlib import Path
from typing import Any

import pytest

from citerec.corpus.csl import is_csl, read_csl
from citerec.corpus.reading import BadRecord
from citerec.errors import SourceError
from citerec.records import Paper

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


def read(tmp_path: Path, value: Any) -> list[Paper | BadRecord]:
    path = tmp_path / "library.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return [line.record for line in read_csl(path)]  # type: ignore[misc]


@pytest.mark.parametrize("wrapped", [[ITEM], {"items": [ITEM]}, {"total": 1, "items": [ITEM]}])
def test_an_item_with_its_traps(tmp_path: Path, wrapped: Any) -> None:
    (paper,) = read(tmp_path, wrapped)
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
    papers = read(tmp_path, [{**ITEM, "issued": issued} for issued in dates])
    years = [paper.year for paper in papers if isinstance(paper, Paper)]
    assert years == [1999, 2005, None, 2003, 1998, 1997, None]


def test_what_is_missing_or_of_another_type(tmp_path: Path) -> None:
    text = '[\n{"title": ["Words", "x"], "author": ["Ann Lee"], "number": "arXiv:1706.03762", "publisher": "arXiv"},\n'
    text += '5,\n\n{"title": {}},\n{"title": "T", "author": [1]}, {"id": 7, "title": "T"}, {"id": 8}]'
    made, *_, seventh, _ = found = read(tmp_path, text)
    assert [line.number for line in read_csl(tmp_path / "library.json")] == [2, 3, 5, 6, 6, 6]
    assert isinstance(made, Paper) and isinstance(seventh, Paper)
    assert made.paper_id.startswith("leewords-") and seventh.paper_id == "7"
    assert (made.venue, dict(made.external_ids), made.authors) == ("arXiv", {"ArXiv": "1706.03762"}, ("Ann Lee",))
    bad = [record.reason for record in found if isinstance(record, BadRecord)]
    reasons = ("a int where a JSON object", "title is a dict", "author holds a int", "neither title nor abstract")
    assert all(reason in one for one, reason in zip(bad, reasons, strict=True))
    for no_list in ("", "{}", '[{"title": "x"}', '{"items": {}}', '[{"a": }]', '[] {"a": 1}'):
        with pytest.raises(SourceError):
            read(tmp_path, no_list)
