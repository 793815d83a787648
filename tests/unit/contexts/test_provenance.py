"""Digests of what parts learnt from: what they know again, and what files say."""

from dataclasses import replace
from pathlib import Path

import pytest

from citerec.contexts.provenance import NOTHING, PROVENANCE, Provenance, digests_of, provenance_of_part, read_provenance
from citerec.errors import ModelError
from citerec.records import Context

ONE = Context(text="Words were counted by <REF>.", context_id="one", citing_id="12")
OTHER = Context(text="Vectors are compared (<REF>).", context_id="other", citing_key="CorpusId:12")


def test_a_sentence_is_known_again_under_another_id() -> None:
    again = replace(ONE, context_id="again", citing_id=None, text="words  were counted by <REF>")
    assert set(digests_of(again)) < set(digests_of(ONE))
    elsewhere = replace(again, text="Words were <REF> counted by.")
    assert set(digests_of(elsewhere)).isdisjoint(digests_of(ONE))


def test_a_citing_paper_is_known_by_id_and_by_key() -> None:
    assert len(set(digests_of(ONE)) & set(digests_of(OTHER))) == 1
    assert set(digests_of(ONE)).isdisjoint(digests_of(replace(OTHER, citing_key="CorpusId:13")))
    # A paper's name is no sentence.
    assert set(digests_of(Context(text="12", citing_id=None))).isdisjoint(digests_of(ONE))


def test_files_come_back(tmp_path: Path) -> None:
    provenance = (
        Provenance.of([ONE], [replace(OTHER, citing_key="B")])
        | Provenance(unsaid=("old",))
        | Provenance(unsaid=("old",))
    )
    assert (len(provenance.trained_on), len(provenance.tuned_on), provenance.unsaid) == (2, 2, ("old",))
    provenance.write(tmp_path / PROVENANCE)
    (tmp_path / "manifest.json").write_text("{}")
    assert provenance_of_part(tmp_path) == provenance
    assert "counted" not in (tmp_path / PROVENANCE).read_text()
    first = (tmp_path / PROVENANCE).read_bytes()
    provenance_of_part(tmp_path).write(tmp_path / PROVENANCE)
    assert (tmp_path / PROVENANCE).read_bytes() == first


def test_what_says_nothing(tmp_path: Path) -> None:
    assert provenance_of_part(tmp_path) == NOTHING  # made elsewhere
    assert provenance_of_part("allenai/scibert_scivocab_uncased") == NOTHING
    (tmp_path / "ltr").mkdir()
    (tmp_path / "ltr" / "manifest.json").write_text("{}")
    assert provenance_of_part(tmp_path / "ltr").unsaid == ("ltr",)
    assert read_provenance(tmp_path / "fusion.provenance.json", "fusion").unsaid == ("fusion",)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"kind": "citerec-provenance", "version": 2}', '{"kind": 1, "version": 1}']
)
def test_broken_files_are_said(tmp_path: Path, text: str) -> None:
    (tmp_path / PROVENANCE).write_text(text)
    with pytest.raises(ModelError, match="is broken"):
        read_provenance(tmp_path / PROVENANCE, "part")
