"""`citerec contexts extract` from outside, held against the truth of a synthetic release."""

import re
from pathlib import Path

from filelock import FileLock

from citerec.contexts.read import read_contexts
from tests.conftest import Citerec
from tests.e2e.test_cli import one_line
from tests.unit.test_build import World, is_complete, key_of, lines_of

PLACED = ("text", "before", "after", "section", "marker", "style", "end")


def test_single_citations_are_those_of_the_truth(citerec_here: Citerec, tmp_path: Path, s2_release: Path) -> None:
    world, path = World(s2_release), tmp_path / "contexts.jsonl"
    options = ("--out", "contexts.jsonl", "--workers", 2, "--max-bad", 0.1)
    result = citerec_here("contexts", "extract", s2_release / "s2orc_v2", *options, code=0)
    records, said = lines_of(path), result.stdout + result.stderr
    # Of papers of which the truth can speak: extraction knows no papers.
    known = [one for one in records if (paper := world.papers.get(one["cited_ids"][0])) and is_complete(paper)]
    found = {key_of(record): record for record in known}
    assert set(found) == set(world.truth)
    for key, one in world.truth.items():
        record = found[key]
        assert (record["citing_id"], record["cited_ids"]) == (one["citing_id"], [one["cited_id"]])
        assert {name: record[name] for name in PLACED} == {name: one[name] for name in PLACED}
    # What else there is cites papers without authors, title or venue, or none of the release.
    assert len(records) - len(found) <= world.traps["sentences"]["incomplete"] + world.traps["sentences"]["outside"]
    assert len({record["context_id"] for record in records}) == len(records)
    contexts = list(read_contexts(path, cited=True))
    assert [context.context_id for context in contexts] == [record["context_id"] for record in records]
    quarantine = lines_of(Path(f"{path}.quarantine.jsonl"))
    assert {line["reason"].partition(":")[0] for line in quarantine} > {"body.bib_ref", "body.paragraph"}
    places = [(line["shard"], line["line"]) for line in quarantine]
    assert places == sorted(places)
    texts = world.traps["texts"]["records"] - world.traps["texts"]["doubled_text"]
    assert f"contexts.jsonl: {len(records):,} contexts of " in said and f"{texts:,} texts" in said
    assert re.search(rf"^ *{len(records):,} +usable *$", said, re.MULTILINE)
    bad = sum(world.traps["bad_records"]["s2orc_v2"].values())
    assert f"Set aside: {bad:,} lines that are not full texts" in said


def test_what_cannot_be_written_or_read_is_one_line(citerec_here: Citerec, tmp_path: Path, s2_release: Path) -> None:
    """Two do not write one file, and a source is never written over."""
    (tmp_path / ".contexts.jsonl.work").mkdir()
    with FileLock(tmp_path / ".contexts.jsonl.work" / "lock"):
        result = citerec_here("contexts", "extract", s2_release / "s2orc_v2", "--out", "contexts.jsonl")
    one_line(result, 1, "another process is writing contexts.jsonl")
    assert not (tmp_path / "contexts.jsonl").exists()
    whole = sorted((s2_release / "s2orc_v2").iterdir())[0].read_bytes()
    (tmp_path / "texts.jsonl").write_bytes(whole)
    one_line(citerec_here("contexts", "extract", "texts.jsonl", "--out", "texts.jsonl"), 2, "texts.jsonl")
    assert (tmp_path / "texts.jsonl").read_bytes() == whole
    (tmp_path / "empty").mkdir()
    for arguments, code, told in (
        (("empty",), 2, "empty holds no shards of S2ORC"),
        ((s2_release / "s2orc_v2", "--max-bad", 0), 1, "texts are bad"),
        (("texts.jsonl", "-c", "split=nope"), 2, "the spaCy model nope cannot be loaded"),
    ):
        one_line(citerec_here("contexts", "extract", *arguments, "--out", "contexts.jsonl"), code, told)
    one_line(citerec_here("contexts", "extract", "texts.jsonl", "--out", "empty"), 2, "empty is a folder")
