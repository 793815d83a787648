import gzip
import hashlib
import importlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

BENCHMARKS = str(Path(__file__).parent.parent.parent / "benchmarks")
# Not as a package: another distribution already calls one of its own `benchmarks`.
sys.path.insert(0, BENCHMARKS)
try:
    release = importlib.import_module("release")
    papers_module = importlib.import_module("release_papers")
    rates_module = importlib.import_module("release_rates")
    marked = importlib.import_module("release_sentences").marked
    true_intent = importlib.import_module("release_shapes").true_intent
    Words = importlib.import_module("release_words").Words
finally:
    sys.path.remove(BENCHMARKS)

PAPERS, TEXTS, SHARDS, SEED = 1200, 400, 3, 7
RATES = rates_module.Rates()
SIGN = "\ue000"
Read = dict[str, Any]


class Written:
    """A release, read back by hand."""

    def __init__(self, folder: Path, traps: Read) -> None:
        self.folder, self.traps = folder, traps
        self.truth = [orjson.loads(line) for line in (folder / "truth.jsonl").read_bytes().splitlines()]
        self.papers = {int(one["corpusid"]): one for one in self.good("papers")}
        self.first = {int(one["corpusid"]): one for one in self.good("s2orc")}
        self.second = {int(one["corpusid"]): one for one in self.good("s2orc_v2")}

    def lines(self, dataset: str) -> Iterator[bytes]:
        for path in sorted((self.folder / dataset).iterdir()):
            yield from gzip.decompress(path.read_bytes()).splitlines()

    def good(self, dataset: str) -> Iterator[Read]:
        key = "citingcorpusid" if dataset == "citations" else "corpusid"
        for line in self.lines(dataset):
            try:
                record = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            if not isinstance(record, dict) or record.get(key) is None:
                continue
            holder = record.get("content") or record.get("body") or {}
            if dataset.startswith("s2orc") and not holder.get("text"):
                continue
            yield record


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    out = tmp_path_factory.mktemp("release") / "out"
    done = release.write_release(out, papers=PAPERS, texts=TEXTS, shards=SHARDS, seed=SEED)
    assert done.contexts == done.traps["contexts"]
    return Written(out, done.traps)


def layer(annotations: Read, name: str) -> list[tuple[int, int, Read]] | None:
    value = annotations.get(name)
    value = orjson.loads(value) if isinstance(value, str) else value
    if value is None:
        return None
    return [(int(one["start"]), int(one["end"]), one.get("attributes") or {}) for one in value]


def digest(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def is_complete(paper: Read) -> bool:
    names = [author["name"] for author in paper["authors"] or [] if author["name"]]
    venue = paper["venue"] or (paper["journal"] or {}).get("name")
    return bool(names and venue and (paper["title"] or "").strip())


def near(count: int, of: int, rate: float) -> bool:
    """Whether a count of independent draws is within five standard deviations of what its rate says."""
    return abs(count - of * rate) <= 5 * (of * rate * (1 - rate)) ** 0.5 + 1


def test_the_same_arguments_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "other"):
        release.write_release(tmp_path / name, papers=200, texts=20, shards=2, seed=3)
    release.write_release(tmp_path / "third", papers=200, texts=20, shards=2, seed=4)
    assert digest(tmp_path / "one") == digest(tmp_path / "other")
    different = digest(tmp_path / "third")
    assert not set(digest(tmp_path / "one").values()) & set(different.values())


def test_the_number_of_shards_changes_no_truth(tmp_path: Path) -> None:
    for shards in (1, 4):
        release.write_release(tmp_path / str(shards), papers=200, texts=20, shards=shards, seed=3)
        assert len(list((tmp_path / str(shards) / "s2orc").iterdir())) == shards
    truths = [(tmp_path / str(shards) / "truth.jsonl").read_bytes() for shards in (1, 4)]
    assert truths[0] == truths[1]


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    for arguments in ({"papers": 100}, {"papers": 300, "texts": 301}, {"papers": 300, "shards": 0}):
        with pytest.raises(ValueError, match=r"papers|shards"):
            release.write_release(tmp_path / "out", **arguments)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(ValueError, match="not empty"):
        release.write_release(tmp_path / "full", papers=300)
    with pytest.raises(ValueError, match="sound"):
        rates_module.Rates(sound=1.5)
    with pytest.raises(ValueError, match="more than all"):
        rates_module.Rates(sound=0.9, group=0.2)


def test_without_traps_every_citation_is_usable(tmp_path: Path) -> None:
    kinds = dict.fromkeys((*rates_module.KINDS, "no_stop", *rates_module.NULL_LAYERS), 0.0)
    rates = rates_module.Rates(**{**kinds, "sound": 0.3, "bad_record": 0, "doubled_text": 0})
    done = release.write_release(tmp_path / "out", papers=200, texts=15, shards=1, seed=1, rates=rates)
    assert set(done.traps["sentences"]) == {"none", "sound"}
    assert done.contexts == done.traps["sentences"]["sound"] == done.traps["texts"]["bib_refs"]
    assert done.traps["bad_records"] == {name: {} for name in release.DATASETS}


def test_a_release_without_texts(tmp_path: Path) -> None:
    done = release.write_release(tmp_path / "out", papers=200, texts=0, shards=2, seed=1)
    assert done.contexts == 0
    assert (tmp_path / "out" / "truth.jsonl").read_bytes() == b""
    assert len(list((tmp_path / "out" / "s2orc").iterdir())) == 2


def test_sentences_are_planted_at_their_rates(written: Written) -> None:
    planted = Counter(written.traps["sentences"])
    every = planted.total()
    usable = planted["sound"] + planted["year_beside"]
    assert usable == written.traps["contexts"] == len(written.truth)
    in_names = RATES.range * 0.35  # where names are cited, a group stands for a range
    expected = {kind: getattr(RATES, kind) for kind in rates_module.KINDS} | {
        "range": RATES.range - in_names, "group": RATES.group + in_names,
    }  # fmt: skip
    # The last sentence of a paragraph may be overwritten, and the style belongs to a text: some slack beside chance.
    for kind, rate in expected.items():
        if kind not in rates_module.USABLE:
            assert near(planted[kind], every, rate) or abs(planted[kind] / every - rate) < 0.15 * rate + 0.001, kind
    lost = RATES.paragraph_null * (RATES.sound + RATES.year_beside)
    share = (usable + planted["sound_without_layer"]) / every
    assert abs(share - (RATES.sound + RATES.year_beside - lost)) < 0.01
    assert near(planted["no_stop"], written.traps["texts"]["paragraphs"] - TEXTS, RATES.no_stop)


def test_texts_are_planted_at_their_rates(written: Written) -> None:
    texts = written.traps["texts"]
    for name in ("text_ids_as_strings", "offsets_as_strings", "abstract_doubled", "paragraph_outside", "bib_ref_null",
                 "paragraph_doubled", "bib_entry_null", "paragraph_null", "section_header_null", "sentence_layer",
                 "entries_from_one", "headerless", "doubled_text"):  # fmt: skip
        assert near(texts.get(name, 0), TEXTS, getattr(RATES, name)), name
    assert texts["not_in_papers"] == round(TEXTS * RATES.not_in_papers)
    assert texts["records"] == TEXTS + texts["doubled_text"]
    for name in ("first", "second"):
        assert len(getattr(written, name)) == TEXTS
    assert sum(number not in written.papers for number in written.first) == texts["not_in_papers"]
    strings = sum(isinstance(one["corpusid"], str) for one in written.first.values())
    assert strings == texts["text_ids_as_strings"]
    nulls = sum(one["content"]["annotations"]["bibref"] is None for one in written.first.values())
    assert nulls == texts["bib_ref_null"]


def test_all_styles_and_places_occur(written: Written) -> None:
    styles = Counter(line["style"] for line in written.truth)
    assert dict(styles) == written.traps["styles"]
    assert set(styles) == {"numbered-brackets", "numbered-parentheses", "superscript", "author-year-parentheses",
                           "author-year-text"}  # fmt: skip
    assert set(written.traps["places"]) == {"first", "middle", "last", "end", "after_stop"}
    assert {line["intent"] for line in written.truth} == {"background", "method", "result", None}
    assert any(line["section"] is None for line in written.truth)
    assert any(line["before"] == "" for line in written.truth)
    assert any(line["after"] == "" for line in written.truth)


def test_bad_lines_are_those_counted(written: Written) -> None:
    for dataset in release.DATASETS:
        found: Counter[str] = Counter()
        key = "citingcorpusid" if dataset == "citations" else "corpusid"
        for line in written.lines(dataset):
            try:
                record = orjson.loads(line)
            except orjson.JSONDecodeError:
                found["broken_json"] += 1
                continue
            if isinstance(record, list):
                found["array"] += 1
            elif record.get(key) is None:
                found["no_id"] += 1
            elif dataset.startswith("s2orc"):
                holder = record["content"] if "content" in record else record["body"]
                found["content_null"] += holder is None
                found["text_null"] += holder is not None and holder["text"] is None
        assert dict(+found) == written.traps["bad_records"][dataset]
        assert all(found.values())


def test_a_text_that_stands_twice_is_the_same_in_another_shard(written: Written) -> None:
    places: dict[int, list[tuple[int, Read]]] = {}
    for shard, path in enumerate(sorted((written.folder / "s2orc").iterdir())):
        for line in gzip.decompress(path.read_bytes()).splitlines():
            try:
                record = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            if isinstance(record, dict) and record.get("corpusid") and (record["content"] or {}).get("text"):
                places.setdefault(int(record["corpusid"]), []).append((shard, record))
    twice = [found for found in places.values() if len(found) > 1]
    assert len(twice) == written.traps["texts"]["doubled_text"] > 0
    for (early, one), (late, other) in twice:
        assert one == other
        assert early < late or early == late == SHARDS - 1


def test_the_truth_points_into_both_versions(written: Written) -> None:
    for line in written.truth:
        first, second = written.first[line["citing_id"]]["content"], written.second[line["citing_id"]]["body"]
        here = slice(line["start"], line["end"])
        assert first["text"][here] == second["text"][here] == line["marker"]
        assert line["text"].count("<REF>") == 1
        assert line["text"][-1] in ".?!"
        assert not re.match(r"[\d⁰¹²³⁴-⁹]", line["text"])
        assert line["text"] == " ".join(line["text"].split())


def test_the_truth_follows_from_the_annotations(written: Written) -> None:
    """Each line has one bib ref within its marker, which leads to a complete paper; no other bib ref lies beside it."""
    entries: dict[int, Read] = {}
    for number, record in written.first.items():
        listed = layer(record["content"]["annotations"], "bibentry") or []
        entries[number] = {one["id"]: one.get("matched_paper_id") for _, _, one in listed}
        assert all(record["content"]["text"][end - 1] == "." for _, end, _ in listed)
    narrow = 0
    for line in written.truth:
        record = written.first[line["citing_id"]]["content"]
        refs = layer(record["annotations"], "bibref") or []
        paragraph = next(one for one in layer(record["annotations"], "paragraph") or [] if inside(line, one))
        own = [one for one in refs if line["start"] <= one[0] < one[1] <= line["end"]]
        assert len(own) == 1
        assert own[0][1] == line["end"]
        assert paragraph[1] <= len(record["text"])
        narrow += own[0][0] > line["start"]
        cited = int(entries[line["citing_id"]][own[0][2]["ref_id"]])
        assert cited == line["cited_id"] != line["citing_id"]
        assert is_complete(written.papers[cited])
    in_text = written.traps["styles"]["author-year-text"]
    assert near(narrow, in_text, RATES.narrow)


def inside(line: Read, span: tuple[int, int, Read]) -> bool:
    return 0 <= span[0] <= line["start"] and line["end"] <= span[1]


def test_both_versions_say_the_same(written: Written) -> None:
    shapes: Counter[str] = Counter()
    for number, one in written.first.items():
        other = written.second[number]
        text, body, bibliography = one["content"]["text"], other["body"], other["bibliography"]
        assert text == body["text"] + bibliography["text"]
        first, second = one["content"]["annotations"], body["annotations"]
        assert all(value is None or isinstance(value, str) for value in first.values())
        for name in ("title", "abstract", "section_header", "paragraph", "bib_ref"):
            assert layer(first, name.replace("_", "")) == layer(second, name)
            shapes[type(second[name]).__name__] += 1
        entries, shifted = layer(bibliography["annotations"], "bib_entry"), layer(first, "bibentry")
        assert (entries is None) == (shifted is None)
        for (start, end, attributes), (start_1, end_1, attributes_1) in zip(entries or [], shifted or [], strict=True):
            assert bibliography["text"][start:end] == text[start_1:end_1]
            assert attributes == attributes_1
        assert "sentence" not in first
    assert set(shapes) == {"str", "list", "NoneType"}


def test_marked_follows_the_rule() -> None:
    for text, marker, style, wanted in (
        ("We show [3] it.", "[3]", "numbered-brackets", "We show <REF> it."),
        ("We show[3]it.", "[3]", "numbered-brackets", "We show <REF> it."),
        ('A "word"[3], and.', "[3]", "numbered-brackets", 'A "word" <REF>, and.'),
        ("It was word12 next.", "12", "superscript", "It was word <REF> next."),
        ("It was word,12 next.", "12", "superscript", "It was word, <REF> next."),
        ("It was word.12", "12", "superscript", "It was word <REF>."),
        ("It was word?¹²", "¹²", "superscript", "It was word <REF>?"),
        ("It was word12.", "12", "superscript", "It was word <REF>."),
        ("Lee et al. (1997a) show it.", "Lee et al. (1997a)", "author-year-text", "<REF> show it."),
        ("It  was by  Lee & Kim (1998).", "Lee & Kim (1998)", "author-year-text", "It was by <REF>."),
    ):
        start = text.index(marker)
        assert marked(text, start, start + len(marker), style) == wanted


def test_true_intent_needs_one_class() -> None:
    assert true_intent(None) is None
    assert true_intent([]) is None
    assert true_intent(["background"]) == "background"
    assert true_intent(["background", "result"]) is None
    assert true_intent([["methodology"], None]) == "method"
    assert true_intent([["methodology"], ["method"]]) == "method"
    assert true_intent([["background"], ["result"]]) is None
    assert true_intent([None, []]) is None


def test_the_truths_intent_is_that_of_the_pairs_row(written: Written) -> None:
    rows: dict[tuple[int, int], Read] = {}
    for record in written.good("citations"):
        if record["citedcorpusid"] is not None:
            pair = int(record["citingcorpusid"]), int(record["citedcorpusid"])
            assert pair not in rows
            rows[pair] = record
    for line in written.truth:
        row = rows.get((line["citing_id"], line["cited_id"]))
        assert line["intent"] == (true_intent(row["intents"]) if row else None)
        if row and row["contexts"]:
            sentence = next(one for one in row["contexts"] if line["marker"] in one)
            assert sentence in written.first[line["citing_id"]]["content"]["text"]
            assert row["intents"] is None or row["intents"] == [] or isinstance(row["intents"][0], str | list | None)
    planted = written.traps["citations"]
    assert near(planted["cited_null"], planted["rows"], RATES.cited_null)
    assert planted["with_contexts"] < planted["rows"] / 2
    assert min(planted[f"intents_{form}"] for form in ("flat", "nested", "null")) > 0


def test_papers_have_fields_years_and_lacks_as_told(written: Written) -> None:
    fields: Counter[str] = Counter()
    anywhere: Counter[str] = Counter()
    for paper in written.papers.values():
        categories = [one["category"] for one in paper["s2fieldsofstudy"] or []]
        fields[categories[0] if categories else ""] += 1
        anywhere.update(set(categories))
    assert len(written.papers) == PAPERS
    for name in papers_module.LARGE:
        assert fields[name] >= 0.03 * PAPERS, name
    for name in papers_module.LOW_RESOURCE:
        assert 0 < anywhere[name] < 0.03 * PAPERS, name
    assert fields["Agricultural And Food Sciences"] and fields["Agricultural and Food Sciences"] and fields[""]
    counts = written.traps["papers"]
    incomplete = counts["no_venue"] + counts["no_authors"] + counts["no_title"]
    assert sum(not is_complete(paper) for paper in written.papers.values()) == incomplete
    assert counts["no_venue"] == round(PAPERS * RATES.no_venue)
    assert counts["ids_as_strings"] == sum(isinstance(one["corpusid"], str) for one in written.papers.values())
    years = {paper["year"] for paper in written.papers.values()}
    assert years == {None, *range(1990, 2024)}
    cited = [paper["citationcount"] for paper in written.papers.values()]
    assert None in cited
    known = sorted(count for count in cited if count is not None)
    assert known[len(known) // 4] < 5
    assert known[-1] > 50 * known[len(known) // 2]


def test_some_records_of_abstracts_stand_twice(written: Written) -> None:
    records = [json.dumps(record) for record in written.good("abstracts")]
    assert len(records) - len(set(records)) == written.traps["abstracts"]["doubled"]
    assert near(len(set(records)), PAPERS, RATES.abstract)


def masked_sentences(record: Read) -> Iterator[list[str]]:
    """The sentences of each paragraph of a v2 record, with a sign for each citation.

    A superscript behind a full stop goes before it, because it belongs to the sentence that ends there; the names
    before a span of only `(1997a)` belong to the citation.
    """
    text, annotations = record["body"]["text"], record["body"]["annotations"]
    names = re.compile(r"[\w'’-]+(?: et al\.| (?:and|&) [\w'’-]+)? $")
    refs = set()
    for start, end, _ in layer(annotations, "bib_ref") or []:
        if 0 <= start < end <= len(text):
            is_year = re.fullmatch(r"\(\d{4}[a-h]?\)", text[start:end])
            before = names.search(text[max(0, start - 80) : start]) if is_year else None
            refs.add((start - len(before.group()) if before else start, end))
    sentences = layer(annotations, "sentence") or []
    for first, last, _ in sorted({(one[0], one[1], 0) for one in layer(annotations, "paragraph") or []}):
        if 0 <= first < last <= len(text):
            yield [masked(text, start, end, refs) for start, end, _ in sentences if first <= start < last]


def masked(text: str, start: int, end: int, refs: set[tuple[int, int]]) -> str:
    out, at = "", start
    for first, last in sorted(ref for ref in refs if start <= ref[0] and ref[1] <= end):
        out += text[at:first]
        out = f"{out[:-1]}{SIGN}{out[-1]}" if last == end and out[-1:] in (".", "?", "!") else out + SIGN
        at = last
    return out + text[at:end]


def test_sentences_are_those_that_pysbd_finds(written: Written) -> None:
    segmenter = importlib.import_module("pysbd").Segmenter(language="en", clean=False)
    tried = 0
    for record in list(written.second.values())[:90]:
        # Without bib refs, citations cannot be masked.
        if record["body"]["annotations"].get("sentence") and record["body"]["annotations"]["bib_ref"]:
            for sentences in masked_sentences(record):
                assert [one.strip() for one in segmenter.segment(" ".join(sentences))] == sentences
                tried += len(sentences)
    assert tried > 3000


def test_sentences_have_four_to_sixty_words_and_begin_and_end_as_told(written: Written) -> None:
    lengths: Counter[int] = Counter()
    for record in written.second.values():
        text = record["body"]["text"]
        spans = layer(record["body"]["annotations"], "sentence") or []
        paragraphs = layer(record["body"]["annotations"], "paragraph")
        ends = {end for _, end, _ in paragraphs or []}
        for start, end, _ in spans:
            sentence = text[start:end]
            lengths[len(sentence.split())] += 1
            # A letter, a citation, or a footnote's digit.
            assert sentence[0].isupper() or sentence[0] in "([" or sentence[0].isdigit()
            whole = re.sub(r"[\d⁰¹²³⁴-⁹]+$", "", sentence)
            assert sentence[-1] in ".?!" or whole[-1] in ".?!" or paragraphs is None or end in ends
            assert "\n" not in sentence
    assert min(lengths) >= 4
    assert max(lengths) <= 60
    assert max(lengths) > 45


def test_no_made_up_word_is_an_abbreviation() -> None:
    abbreviations = importlib.import_module("pysbd.lang.english").English.Abbreviation.ABBREVIATIONS
    words = Words(SEED)
    made_up = {*words.nouns, *words.adjectives, *words.adverbs, *(f"{noun}s" for noun in words.nouns)}
    assert abbreviations
    assert not made_up & {word.casefold() for word in abbreviations}
    assert min(map(len, made_up)) > 4
