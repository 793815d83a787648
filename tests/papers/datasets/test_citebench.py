"""The four source data sets of CiteBench as one."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from citerec.corpus.reading import BadRecord
from citerec.errors import BuildError, InputError, SourceError
from citerec.papers.citebench.sources import read_source, unify
from citerec.papers.common.pair_sets import OTHER, positions, unified
from citerec.write.task_files import read_tasks
from citerec.write.tasks import Source, TextTask
from tests.conftest import write_lines

LU = {
    "aid": "2001.00001",
    "mid": "17",
    "abstract": "We sort papers by what they cite.",
    "related_work": "Trees were tried first @cite_12, then nets @cite_1 @cite_7. Nets @cite_1 won.",
    "ref_abstract": {
        "@cite_1": {"mid": "31", "abstract": "Nets for papers."},
        "@cite_12": {"mid": "32", "abstract": "Trees for papers."},
        "@cite_3": {"mid": "", "abstract": ""},
    },
}
CHEN = {"multi_doc": ["[x] Fog slows cars.", "[x] Cars talk."], "abs": "Cars that talk [1] stop in fog [0]; see [4]."}
XING = {
    "src_paper_id": "P10-1",
    "tgt_paper_id": "P05-2",
    "src_abstract": "We translate slang.",
    "tgt_abstract": "We translate news.",
    "explicit_citation": "News was translated by #REFR and #OTHEREFR.",
    "text_before_explicit_citation": "Much was done.",
    "text_after_explicit_citation": "We go on.",
    "train_or_test": "test",
}
ABURAED = {
    "title": "Sorting Stones",
    "abstract": "We sort stones by size.",
    "citation": "Stones were sorted by Lee et al. (2010).",
}
RECORDS = {"lu": LU, "chen": CHEN, "xing": XING, "aburaed": ABURAED}


def task_of(record: dict[str, Any], tmp_path: Path, **options: Any) -> TextTask:
    ((_, task),) = read_source(write_lines(tmp_path / "source.jsonl", [record]), **options)
    assert isinstance(task, TextTask), task
    return task


def test_lu_is_numbered_by_first_mention(tmp_path: Path) -> None:
    task = task_of(LU, tmp_path)
    assert task.targets == ("Trees were tried first [0], then nets [1] #OTHEREFR. Nets [1] won.",)
    assert task.sources == (Source("Trees for papers.", "32"), Source("Nets for papers.", "31"), Source(""))
    assert (task.citing, task.extra) == ("We sort papers by what they cite.", {"citing_id": "2001.00001"})
    # As CiteBench published it: the anchor of the first paper is also replaced in @cite_12, one without a paper stays.
    published = task_of(LU, tmp_path, as_published=True)
    assert published.targets == ("Trees were tried first [0]2, then nets [0] @cite_7. Nets [0] won.",)
    assert [source.text for source in published.sources] == ["Nets for papers.", "Trees for papers.", ""]


def test_aburaed_as_citebench_published_it(tmp_path: Path) -> None:
    tagged = "<t> In 1999 , <cite> sorted 12 stones (Lee et al., 2010) , as Smith and Roe (1999) do [3, 4] . </t>"
    task = task_of({**ABURAED, "abstract": "We sort 12.", "citation": tagged}, tmp_path, as_published=True)
    assert task.targets == ("In #### , [0] sorted ## stones <CITE> , as <CITE> do <CITE> .",)
    assert [source.text for source in task.sources] == ["Sorting Stones We sort ##."]


@pytest.mark.parametrize(
    ("documents", "text", "expected"),
    [
        (
            CHEN["multi_doc"],
            CHEN["abs"],
            ("Cars that talk [0] stop in fog [1]; see #OTHEREFR.", ["Cars talk.", "Fog slows cars."]),
        ),
        # One text, parted at its markers; a citation within an abstract is none.
        ("[x] Fog slows cars [3]. [x] Cars talk.", "It is [1].", ("It is [0].", ["Cars talk.", "Fog slows cars [3]."])),
        ("[1] Fog, as in [7]. [2] Cars talk.", "It is [2].", ("It is [0].", ["Cars talk.", "Fog, as in [7]."])),
        # Documents with numbers of their own are known by these.
        (["[5] Fog.", "[3] Cars."], "It is [3].", ("It is [0].", ["Cars.", "Fog."])),
        # Without numbers, the last one's number and no 0 tell that the text counts from 1.
        (["Fog.", "Cars."], "It is [2].", ("It is [0].", ["Cars.", "Fog."])),
        ("[0] Fog slows cars [1] Cars talk", "It is [1].", ("It is [0].", ["Cars talk", "Fog slows cars"])),
        # Each of a group is renumbered.
        ("[1] Fog. [2] Cars.", "It is [2;1;7].", ("It is [0], [1], #OTHEREFR.", ["Cars.", "Fog."])),
    ],
)
def test_shapes_of_chen(documents: object, text: str, expected: tuple[str, list[str]], tmp_path: Path) -> None:
    task = task_of({"multi_doc": documents, "abs": text}, tmp_path)
    assert (task.targets[0], [source.text for source in task.sources]) == expected
    assert task_of(CHEN, tmp_path, as_published=True).targets == (CHEN["abs"],)


def test_the_source_paper_of_xing_is_the_citing_one(tmp_path: Path) -> None:
    task = task_of(XING, tmp_path)
    assert task.citing == "We translate slang."
    assert task.sources == (Source("We translate news.", "P05-2"),)
    assert task.targets == ("News was translated by [0] and #OTHEREFR.",)
    assert (task.before, task.after) == ("Much was done.", "We go on.")
    assert task.extra == {"citing_id": "P10-1", "split": "test"}
    published = task_of(XING, tmp_path, as_published=True)
    assert (published.citing, published.sources) == ("We translate news.", (Source("We translate slang."),))
    assert published.extra == {"split": "test"}  # an id would stand beside the other paper's abstract


def test_aburaed_as_pairs_of_lines(tmp_path: Path) -> None:
    (tmp_path / "test.txt.src").write_text("sorting stones we sort stones .\nother\n")
    (tmp_path / "test.txt.tgt.tagged").write_text("<t> <cite> sorts stones . </t>\n\n")
    (_, task), bad = read_source(tmp_path / "test.txt.src")
    assert isinstance(task, TextTask)
    assert (task.dataset, task.sources[0].text) == ("aburaed", "sorting stones we sort stones .")
    assert task.targets == ("[0] sorts stones .",)
    assert bad == (2, BadRecord("citation is missing", "other"))
    (tmp_path / "test.txt.tgt.tagged").write_text("one line\n")
    with pytest.raises(SourceError, match="differ in length: line 2"):
        list(read_source(tmp_path / "test.txt.src"))
    (tmp_path / "test.txt.tgt.tagged").unlink()
    with pytest.raises(SourceError, match="has no partner"):
        list(read_source(tmp_path / "test.txt.src"))


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ({**LU, "related_work": None}, "related_work is missing"),
        ({**LU, "ref_abstract": []}, "ref_abstract is not an object"),
        ({**LU, "ref_abstract": {"@cite_1": {"abstract": ""}}}, "no cited text"),
        ({**CHEN, "multi_doc": [3]}, "neither a text nor a list"),
        ({**XING, "tgt_abstract": 4}, "tgt_abstract is a int"),
    ],
)
def test_a_bad_record_is_set_aside_until_they_are_too_many(record: dict[str, Any], why: str, tmp_path: Path) -> None:
    source, out = write_lines(tmp_path / "lu.jsonl", [*[LU] * 30, record]), tmp_path / "out.jsonl"
    tasks, bad = unify([source], out)
    assert (tasks, bad) == ({"lu": 30}, 1)
    (told,) = [json.loads(line) for line in (tmp_path / "out.jsonl.quarantine.jsonl").read_text().splitlines()]
    assert (told["shard"], told["line"]) == ("lu.jsonl", 31) and why in told["reason"]
    before = sorted(tmp_path.iterdir())
    with pytest.raises(BuildError, match=r"more than 0%; the first is .*, line 31: "):
        unify([source], out, max_bad=0)
    assert sorted(tmp_path.iterdir()) == before  # nothing half-written, what stood there stands
    assert len(list(read_tasks(out))) == 30


@pytest.mark.parametrize(
    ("name", "content", "kind", "said"),
    [
        ("lu.jsonl", json.dumps(LU), InputError, "is the file that is read"),
        ("cut.json", json.dumps([LU, LU])[:-9], SourceError, "its list is no JSON"),
        ("deep.json", "[" * 100_000, SourceError, "nested too deep"),
        ("empty.jsonl", "", SourceError, "the sources hold no record"),
    ],
)
def test_files_that_cannot_be_taken(name: str, content: str, kind: type[Exception], said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(kind, match=said):
        unify([tmp_path / name], tmp_path / "lu.jsonl")
    assert [path.name for path in tmp_path.iterdir()] == [name]


CITE = re.compile(r"@cite_\d+")
WORDS = st.lists(st.one_of(st.sampled_from(["so", "they", "say.", "[see"]), st.integers(0, 6).map("@cite_{}".format)))


@given(WORDS, st.lists(st.integers(0, 5), unique=True))
def test_every_anchor_still_leads_to_its_paper(words: list[str], papers: list[int]) -> None:
    names = [f"@cite_{paper}" for paper in papers]
    text, order = unified(" ".join(words), CITE, positions(names))
    assert sorted(order) == list(range(len(papers)))  # each paper once, none lost

    written = re.findall(r"\[(\d+)\]|(#OTHEREFR)", text)
    cited = [word for word in words if CITE.fullmatch(word)]
    assert [OTHER if other else names[order[int(number)]] for number, other in written] == [
        name if name in names else OTHER for name in cited
    ]
    first_mentions = list(dict.fromkeys(int(number) for number, _ in written if number))
    assert first_mentions == list(range(len(first_mentions)))
    assert CITE.sub("@", " ".join(words)) == re.sub(r"\[\d+\]|#OTHEREFR", "@", text)  # the rest of the text stays
