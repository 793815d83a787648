"""ROUGE is rouge-score's, whatever way it is asked for."""

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from rouge_score.rouge_scorer import RougeScorer

from citerec.write.metrics import MetricOptions, grown_rouge, open_rouge, rouge, tokens_of
from citerec.write.task_files import read_tasks
from citerec.write.tasks import Prediction, TextTask, sentences_of

WORDS = st.text("abAB é0 .-\n", max_size=40) | st.text(max_size=30)


def prediction(text: str, *targets: str) -> Prediction:
    return Prediction(TextTask("t", (), targets=targets), text, "w")


def quietly(doing: str, done: int, whole: int) -> None:
    pass


@pytest.fixture(scope="module")
def leads(shared: Path) -> list[Prediction]:
    """The first three sentences of what each of CiteBench's 50 tasks cites."""
    tasks = read_tasks(shared / "text" / "citebench" / "sample.json")
    texts = [
        Prediction(task, " ".join(sentences_of(" ".join(source.text for source in task.sources))[:3]), "lead")
        for task in tasks
    ]
    assert len(texts) == 50
    return texts


@pytest.mark.shared
def test_two_processes_give_the_same_and_tell_how_far_they_are(leads: list[Prediction]) -> None:
    told: list[tuple[str, int, int]] = []
    texts = [prediction(text.text[start : start + 60], *text.task.targets) for text in leads for start in range(20)]
    two = open_rouge(MetricOptions(workers=2)).scores(texts, lambda *now: told.append(now))
    assert np.array_equal(two, open_rouge(MetricOptions(workers=1)).scores(texts, quietly))
    assert told[0] == ("ROUGE", 0, 1000) and told[-1] == ("ROUGE", 1000, 1000)
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)


@given(WORDS, WORDS, st.booleans())
def test_any_two_texts_score_as_by_rouge_score(prediction: str, reference: str, stemming: bool) -> None:
    kinds = ("rouge1", "rouge2", "rouge3", "rougeL", "rougeLsum")
    theirs = RougeScorer(list(kinds), use_stemmer=stemming).score(reference, prediction)
    ours = rouge(prediction, reference, stemming=stemming, kinds=kinds)
    assert {kind: tuple(score) for kind, score in ours.items()} == {kind: tuple(theirs[kind]) for kind in kinds}
    assert open_rouge(MetricOptions(stemming=stemming), "rouge2").pairs([(prediction, reference)], quietly) == [
        ours["rouge2"].f1
    ]


def test_without_target_there_is_no_score_and_without_text_it_is_zero() -> None:
    scores = open_rouge(MetricOptions()).scores(
        [prediction("a b"), prediction("", "a b"), prediction("a b", "")], quietly
    )
    assert np.isnan(scores[0]).all()
    assert not scores[1:].any()
    assert open_rouge(MetricOptions()).scores([], quietly).shape == (0, 3)


def test_what_stands_in_a_citation_tag_is_no_text() -> None:
    target = "Parsing was begun <cite> W1 <sep> A title of seven words <sep> Lee </cite> long ago."
    scores = open_rouge(MetricOptions()).scores([prediction("Parsing was begun <cite> long ago.", target)], quietly)
    assert scores.tolist() == [[1, 1, 1]]


def test_settings_tell_all_that_scores_depend_on() -> None:
    settings = open_rouge(MetricOptions(stemming=True, rouge_l="summary", references="first")).settings
    assert settings == {
        "package": f"rouge-score {version('rouge-score')}",
        "stemming": True,
        "rouge_l": "summary",
        "sentences": f"pysbd {version('pysbd')}",
        "references": "first",
        "measure": "f1",
    }
    assert "sentences" not in open_rouge(MetricOptions()).settings  # nothing is split


@given(
    st.text("abc ", max_size=30),
    st.lists(st.text("abc .", max_size=12), min_size=1, max_size=5),
    st.integers(1, 3),
    st.data(),
)
def test_growing_texts_score_as_whole_ones(
    reference: str, sentences: Sequence[str], n: int, data: st.DataObject
) -> None:
    wanted, *tokens = tokens_of([reference, *sentences], stemming=False)
    chosen: list[int] = []
    for _ in range(3):
        number = data.draw(st.integers(0, len(sentences) - 1))
        text = [token for one in chosen for token in tokens[one]]
        chosen.append(number)
        whole = rouge(" ".join(sentences[one] for one in chosen), reference, kinds=(f"rouge{n}",))[f"rouge{n}"]
        assert grown_rouge(text, tokens, wanted, n)[number] == whole.f1
