"""Whether citations fit their sentences, and which sentence of an abstract says it; against the shipped model."""

import json
from pathlib import Path

import pytest

from citerec.drafts.support import shipped_curves, supporting_sentence
from citerec.records import Paper
from tests.conftest import Citerec

ABSTRACTS = {
    "transformer": (
        "Attention is all you need",
        "We propose a network that uses only attention. It needs no recurrence.",
    ),
    "bm25": (
        "The probabilistic relevance framework",
        "Documents are ranked by BM25. It comes from a model of relevance.",
    ),
    "adam": (
        "Adam: a method for stochastic optimization",
        "An algorithm for gradient-based optimization is introduced.",
    ),
    "resnet": ("Deep residual learning", "Residual connections make deeper networks easier to train."),
    "lakes": ("Counting lakes by satellite", "Lakes and ponds are counted from orbit every winter."),
    "glue": ("GLUE: a multi-task benchmark", ""),
}
FORMS = [("d.tex", r"\cite{%s}", r"\bibliography{refs}"), ("d.md", "[@%s]", "")]


@pytest.mark.parametrize(("name", "cite", "end"), FORMS)
def test_what_fits_and_what_does_not(name: str, cite: str, end: str, tmp_path: Path, citerec_here: Citerec) -> None:
    entries = [
        f"@article{{{key}, title={{{title}}}, author={{A}}, abstract={{{text}}}}}\n"
        for key, (title, text) in ABSTRACTS.items()
    ]
    (tmp_path / "refs.bib").write_text("".join(entries))
    said = f"A network with only attention and no recurrence {cite % 'transformer'}. We rank documents by BM25 "
    said += (
        f"{cite % 'bm25'}.\n\nResidual connections help to train deep networks {cite % 'lakes'}, {cite % 'resnet'}. "
    )
    said += f"The benchmarks are of several tasks {cite % 'glue'} and optimization {cite % 'adam'}.\n{end}\n"
    (tmp_path / name).write_text(said)
    run = citerec_here("check", name, "--bib", "refs.bib", "--support", "--format", "json")
    value = json.loads(run.stdout)
    judged = {one["key"]: (one["verdict"], one["says"]) for one in value["citations"]}
    assert judged["transformer"][0] == judged["bm25"][0] == judged["resnet"][0] == "supports"
    assert judged["bm25"][1] == "Documents are ranked by BM25."
    assert judged["lakes"][0] == "does not fit" and judged["glue"][1] == ""
    noted = [(one["severity"], one["message"]) for one in value["findings"] if one["code"] == "may-not-fit"]
    assert ("note", "lakes may not fit this sentence: “Counting lakes by satellite”") in noted
    shown = citerec_here("check", name, "--bib", "refs.bib", "--support", "--ignore", "may-not-fit")
    assert shown.returncode == 0 and "supports bm25: “Documents are ranked by BM25.”" in shown.stdout
    assert "6 citations compared" in shown.stdout


def test_small_libraries_and_papers_without_an_abstract(tmp_path: Path, citerec_here: Citerec) -> None:
    (tmp_path / "refs.bib").write_text("@article{a, title={Lakes}, author={A}}\n")
    (tmp_path / "d.tex").write_text(r"Trains are late \cite{a}. \bibliography{refs}")
    run = citerec_here("check", "d.tex", "--support")
    assert run.returncode == 0 and "1 citation compared: 1 not compared." in run.stdout  # too few to tell


def test_the_best_sentence_is_one_of_the_abstract() -> None:
    paper = Paper("1", "Lakes", "Lakes are counted. Ponds are not; dams are. Rain falls.")
    sentence, supports = supporting_sentence("Lakes were counted by many.", paper)
    assert sentence == "Lakes are counted." and supports
    assert supporting_sentence("Nothing of this kind.", paper)[1] is False
    assert supporting_sentence("Lakes were counted.", Paper("1", "Lakes")) == ("", False)
    assert {0 < curve.threshold < 1 for curve in shipped_curves().values()} == {True}
