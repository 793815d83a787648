"""Reading S2ORC, both versions, with the traps of either."""

import json
from typing import Any

from citerec.contexts.full_text import parse_full_text
from citerec.contexts.sections import is_introduction, is_related_work, split_number

TEXT = "Introduction\nAs shown in [1], it holds. It was found by Lee [2,\n3].\nMethods\nWe use [9]."


def annotation(start: Any, end: Any, **attributes: Any) -> dict[str, Any]:
    return {"start": start, "end": end} | ({"attributes": attributes} if attributes else {})


def span(words: str, **attributes: Any) -> dict[str, Any]:
    return annotation(TEXT.index(words), TEXT.index(words) + len(words), **attributes)


HEADERS, PARAGRAPHS = [annotation(0, 12), annotation(68, 75)], [annotation(13, 67), annotation(76, 87)]
REFS = [span("[1]", ref_id="b0"), span("[2,", ref_id="b1"), span("3]", ref_id="b2"), span("[9]")]


def entries(start: int) -> list[dict[str, Any]]:
    return [
        annotation(start, start + 3, id="b0", matched_paper_id=7),
        annotation(start + 4, start + 7, id="b1", matched_paper_id="8"),
        annotation(start + 8, start + 11, id="b2"),
    ]


def version_1(**changes: Any) -> dict[str, Any]:
    layers = {"sectionheader": HEADERS, "paragraph": PARAGRAPHS, "bibref": REFS, "bibentry": entries(len(TEXT) + 1)}
    layers |= changes
    encoded = {name: json.dumps(layer) if isinstance(layer, list) else layer for name, layer in layers.items()}
    return {"corpusid": 1, "content": {"text": TEXT + "\nAAA BBB CCC", "annotations": encoded}}


def version_2(**changes: Any) -> dict[str, Any]:
    layers = {"section_header": HEADERS, "paragraph": PARAGRAPHS, "bib_ref": REFS, **changes}
    bibliography = {"text": "AAA BBB CCC", "annotations": {"bib_entry": entries(0)}}
    return {"corpusid": "1", "title": "T", "body": {"text": TEXT, "annotations": layers}, "bibliography": bibliography}


def test_both_versions_are_read_alike() -> None:
    first, second = parse_full_text(version_1()), parse_full_text(version_2())
    assert first.paragraphs == second.paragraphs
    assert [paragraph.section for paragraph in first.paragraphs] == ["Introduction", "Methods"]
    assert first.bib_refs == second.bib_refs and first.bib_entries == second.bib_entries
    assert [ref.entry_id for ref in first.bib_refs] == ["b0", "b1", "b2", None]
    assert list(first.bib_entries) == ["b0", "b1", "b2"]
    assert first.year is None and parse_full_text({**version_2(), "year": "2005"}).year == 2005
    assert first.cited_ids() == {"7", "8"} and first.faults == second.faults == ()


WITHIN = TEXT.index("shown") + 2
PLACES = ((5, 9999), (9, 5), (-3, 4), (5, 5), (None, 4), ("x", 4), (True, 4), (WITHIN, WITHIN + 2))
LONG = [(0, offset) for offset in ("9" * 5000, "9" * 19, 10**18, 1e400)]


def test_what_does_not_fit_its_text_is_set_aside() -> None:
    for wrong in ("no object", *(annotation(*place) for place in (*PLACES, *LONG))):
        text = parse_full_text(version_2(bib_ref=[*REFS, wrong]))
        assert len(text.bib_refs) == len(REFS)
        (fault,) = text.faults
        assert fault.startswith("body.bib_ref")
    text = parse_full_text(version_1(bibref="[{", paragraph='{"start": 1}'))  # broken
    assert (text.bib_refs, len(text.faults)) == ((), 2)
    text = parse_full_text(version_1(bibref=REFS + REFS, paragraph=[annotation(13, 67)] * 2))  # doubled
    assert (len(text.bib_refs), len(text.paragraphs)) == (len(REFS), 1)
    layer = json.dumps([annotation("13", "67")])  # a string of strings
    text = parse_full_text(version_2(paragraph=layer, section_header=None, sentence=[annotation(13, 41)], bib_ref=None))
    assert [(each.start, each.end, each.section) for each in text.paragraphs] == [(13, 67, None)]
    assert (text.sentences, text.bib_refs) == (((13, 41),), ())
    # An entry without a place still says which paper it is.
    text = parse_full_text(version_1(bibentry=[annotation(9999, 10000, id="b0", matched_paper_id=7)]))
    assert (text.bib_entries["b0"], len(text.faults)) == ("7", 1)


RELATED = """Related Work|2 Related Work|2. RELATED WORKS|II. Related Literature|Prior research|A.1 Literature Review|
The related work|Background and Related Work|Related Work and Background:|Review of the literature|2.Related Work|
II.RELATED WORK|2.1.Related work|XIV. Related Work|iv. related work|3) Prior work|2.related work|A Literature Review|
B.Related Work|2. Theoretical Background"""


def test_headlines() -> None:
    assert all(is_related_work(headline) for headline in RELATED.replace("\n", "").split("|"))
    others = ["", "Introduction", "Future Work", "Workflow", "Related workers", "3 Background", "Unrelated Work", None]
    assert not any(is_related_work(headline) for headline in others)
    assert is_related_work("3 Background", introduced=True)  # counts beside an introduction
    assert not is_related_work("3 Methods", introduced=True)
    assert is_introduction("1 Introduction") and is_introduction("1.Introduction")
    assert not is_introduction("Introduction of species")


NUMBERS = "2 Method|2. Method|2.Method|2.1 Model|2.1.Model|II.METHOD|XXIV: Method|II.3 Metrics|A.Proofs|A.1 Lemma"
NO_NUMBERS = "A Survey|3D Vision|2.5D Vision|U.S. Policy|E.coli|XML|vi editors|2.|"  # all of a headline is no number


def test_numbers_of_headlines() -> None:
    for headline, number in zip(NUMBERS.split("|"), "2 2 2 2.1 2.1 II XXIV II.3 A A.1".split(), strict=True):
        assert split_number(headline) == (number, headline.removeprefix(number).strip(" .:"))
    for headline in NO_NUMBERS.split("|"):
        assert split_number(headline) == ("", headline)
