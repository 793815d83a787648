"""Reading S2ORC, both versions, with the traps of either."""

import json
from pathlib import Path
from typing import Any

import pytest

from citerec.contexts.s2orc import FullText, find_texts, parse_full_text, read_s2orc
from citerec.corpus.json_lines import BadRecord, RecordError
from citerec.errors import SourceError
from tests.conftest import write_lines

TEXT = "Introduction\nAs shown in [1], it holds. It was found by Lee [2,\n3].\nMethods\nWe use [9]."
BODY = [("sectionheader", 0, 12), ("paragraph", 13, 67), ("sectionheader", 68, 75), ("paragraph", 76, 87)]


def annotation(start: Any, end: Any, **attributes: Any) -> dict[str, Any]:
    return {"start": start, "end": end, "attributes": attributes} if attributes else {"start": start, "end": end}


def span(words: str, **attributes: Any) -> dict[str, Any]:
    return annotation(TEXT.index(words), TEXT.index(words) + len(words), **attributes)


REFS = [span("[1]", ref_id="b0"), span("[2,", ref_id="b1"), span("3]", ref_id="b2"), span("[9]")]


def entries(start: int) -> list[dict[str, Any]]:
    return [
        annotation(start, start + 3, id="b0", matched_paper_id=7),
        annotation(start + 4, start + 7, id="b1", matched_paper_id="8"),
        annotation(start + 8, start + 11, id="b2"),
    ]


def version_1(**changes: Any) -> dict[str, Any]:
    layers: dict[str, Any] = {
        name: [annotation(start, end) for layer, start, end in BODY if layer == name]
        for name in ("sectionheader", "paragraph")
    }
    layers |= {"bibref": REFS, "bibentry": entries(len(TEXT) + 1)} | changes
    encoded = {name: json.dumps(layer) if isinstance(layer, list) else layer for name, layer in layers.items()}
    return {"corpusid": 1, "content": {"text": TEXT + "\nAAA BBB CCC", "annotations": encoded}}


def version_2(**changes: Any) -> dict[str, Any]:
    layers: dict[str, Any] = {
        "section_header": [annotation(start, end) for layer, start, end in BODY if layer == "sectionheader"],
        "paragraph": [annotation(start, end) for layer, start, end in BODY if layer == "paragraph"],
        "bib_ref": REFS,
    } | changes
    bibliography = {"text": "AAA BBB CCC", "annotations": {"bib_entry": entries(0)}}
    return {"corpusid": "1", "title": "T", "body": {"text": TEXT, "annotations": layers}, "bibliography": bibliography}


def test_both_versions_are_read_alike() -> None:
    first, second = parse_full_text(version_1()), parse_full_text(version_2())
    assert first.paragraphs == second.paragraphs
    assert [paragraph.section for paragraph in first.paragraphs] == ["Introduction", "Methods"]
    assert first.bib_refs == second.bib_refs
    assert [ref.entry_id for ref in first.bib_refs] == ["b0", "b1", "b2", None]
    assert first.bib_entries == second.bib_entries
    assert {name: entry.text for name, entry in first.bib_entries.items()} == {"b0": "AAA", "b1": "BBB", "b2": "CCC"}
    assert first.cited_ids() == {"7", "8"}
    assert first.faults == second.faults == ()


def test_layers_may_be_strings_lists_or_null_and_offsets_strings() -> None:
    as_string = version_2(paragraph=json.dumps([annotation("13", "67")]), section_header=None)
    assert [(each.start, each.end, each.section) for each in parse_full_text(as_string).paragraphs] == [(13, 67, None)]
    assert parse_full_text(version_1(bibref=None)).bib_refs == ()
    assert parse_full_text(version_1(paragraph=None)).paragraphs == ()


def test_sentences_of_the_source_are_kept() -> None:
    assert parse_full_text(version_2(sentence=[annotation(13, 41)])).sentences == ((13, 41),)
    assert parse_full_text(version_2(sentence=None)).sentences is None


@pytest.mark.parametrize(
    "wrong",
    [
        annotation(5, 9999),
        annotation(9, 5),
        annotation(-3, 4),
        annotation(5, 5),
        annotation(None, 4),
        annotation("x", 4),
        annotation(True, 4),
        "no object",
        annotation(TEXT.index("shown") + 2, TEXT.index("shown") + 4),
    ],
)
def test_what_does_not_fit_its_text_is_set_aside(wrong: Any) -> None:
    text = parse_full_text(version_1(bibref=[*REFS, wrong]))
    assert len(text.bib_refs) == len(REFS)
    assert len(text.faults) == 1
    assert text.faults[0].startswith("content.bibref")


def test_doubled_spans_count_once() -> None:
    text = parse_full_text(version_1(bibref=REFS + REFS, paragraph=[annotation(13, 67)] * 2))
    assert len(text.bib_refs) == len(REFS)
    assert len(text.paragraphs) == 1


def test_broken_layers_are_faults_of_the_record_not_its_end() -> None:
    text = parse_full_text(version_1(bibref="[{", paragraph='{"start": 1}'))
    assert text.bib_refs == ()
    assert len(text.faults) == 2


def test_an_entry_without_a_place_still_says_which_paper_it_is() -> None:
    text = parse_full_text(version_1(bibentry=[annotation(9999, 10000, id="b0", matched_paper_id=7)]))
    assert text.bib_entries["b0"].paper_id == "7"
    assert len(text.faults) == 1


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"content": {"text": "x"}}, "corpusid is missing"),
        ({"corpusid": 1}, "neither"),
        ({"corpusid": 1, "content": None}, "text is missing"),
        ({"corpusid": 1, "content": {"text": None}}, "text is missing"),
        ({"corpusid": 1, "content": {"text": 4}}, "is a int"),
        ({"corpusid": 1, "content": []}, "text is missing"),
        ({"corpusid": 1, "body": {"text": "x", "annotations": [1]}}, "is a list"),
    ],
)
def test_records_that_cannot_be_used(record: dict[str, Any], reason: str) -> None:
    with pytest.raises(RecordError, match=reason):
        parse_full_text(record)


def test_bad_lines_do_not_end_a_shard(tmp_path: Path) -> None:
    shard = write_lines(
        tmp_path / "s.jsonl.gz", [version_1(), ["no object"], {"corpusid": 2}, version_2()], compress=True
    )
    records = [line.record for line in read_s2orc(shard)]
    assert [type(record) for record in records] == [FullText, BadRecord, BadRecord, FullText]


def test_finding_shards(tmp_path: Path) -> None:
    first = write_lines(tmp_path / "one" / "s2orc" / "b.jsonl", [version_1()])
    second = write_lines(tmp_path / "one" / "s2orc" / "a.jsonl", [version_1()])
    assert find_texts([tmp_path / "one"]) == find_texts([tmp_path / "one" / "s2orc"]) == [second, first]
    assert find_texts([first]) == [first]
    write_lines(tmp_path / "one" / "s2orc_v2" / "a.jsonl", [version_2()])
    with pytest.raises(SourceError, match="both versions"):
        find_texts([tmp_path / "one"])
    with pytest.raises(SourceError, match="does not exist"):
        find_texts([tmp_path / "none"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match="no shards"):
        find_texts([tmp_path / "empty"])


@pytest.mark.parametrize("offset", ["9" * 5000, "9" * 19, 10**18, 1e400])
def test_an_offset_of_many_digits_is_a_fault_of_its_annotation(offset: Any) -> None:
    text = parse_full_text(version_2(paragraph=[annotation(0, offset), annotation(13, 67)]))
    assert [(paragraph.start, paragraph.end) for paragraph in text.paragraphs] == [(13, 67)]
    (fault,) = text.faults
    assert "does not fit a text" in fault


def test_a_line_whose_numbers_or_layers_nobody_can_read_is_a_bad_record(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    deep = "[" * 900 + "]" * 900
    lines = [f'{{"corpusid": {"9" * 5000}}}', f'{{"corpusid": {deep}}}', json.dumps(version_1())]
    path.write_text("\n".join(lines), encoding="utf-8")
    first, second, third = (line.record for line in read_s2orc(path))
    assert isinstance(first, BadRecord)
    assert isinstance(second, BadRecord)
    assert isinstance(third, FullText)
