"""Metrics by name: what each must do; against rouge-score, bert-score and cases worked by hand; presets of papers."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import orjson
import pytest
from hypothesis import given, strategies as st
from rouge_score.rouge_scorer import RougeScorer

from citerec.discourse.classifier import Probabilities, Tagger, TaggerManifest
from citerec.discourse.linear import LinearTagger
from citerec.errors import ModelError
from citerec.files.progress import Progress, no_progress
from citerec.models.find import find_model, quiet_libraries
from citerec.papers.citebench.metrics import Discourse
from citerec.papers.oarelatedwork.metrics import block_match
from citerec.write.metrics import (
    PRESETS,
    TEXT_METRICS,
    Floats,
    MetricOptions,
    PairMetric,
    TextMetric,
    citation_score,
    numbers,
    open_bertscore,
    open_metrics,
    open_rouge,
    rouge,
)
from citerec.write.task_files import read_tasks
from citerec.write.tasks import Prediction, Source, TextTask, content_terms, sentences_of, terms_of, words_of
from tests.discourse.toy import sentences
from tests.tiny_seq2seq import write_tiny_bart

SOURCES = tuple(Source(f"text {number}", f"W{number}", f"Title {number}") for number in range(4))
PARSER = Source("It parses 1,000 sentences in 0.50 seconds.", "W0", "A fast parser", authors=("Ada Lee",))


def prediction(text: str, *targets: str, sources: tuple[Source, ...] = ()) -> Prediction:
    return Prediction(TextTask("t", sources, targets=targets), text, "w")


def opened(name: str, **options: Any) -> TextMetric:
    ((metric,), _) = open_metrics([name], workers=1, **options)
    return metric


def scores_of(name: str, *texts: Prediction, **options: Any) -> Floats:
    return opened(name, **options).scores(texts, no_progress)


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Models and taggers for the metrics that need one."""
    bart = write_tiny_bart(tmp_path_factory.mktemp("bart"), ["A tree parser . It parses 3 trees ."])
    (folder := tmp_path_factory.mktemp("tagger") / "toy").mkdir()
    examples = sentences()
    labels = tuple(sorted({label for one in examples for label in one.labels}))
    LinearTagger.fit(examples, TaggerManifest(model="linear", scheme="toy", labels=labels), seed=1).save(folder)
    taggers: dict[str, Path] = {name: folder for name, part in TEXT_METRICS.items() if part.needs_tagger}
    models = {"bertscore_model": "all-MiniLM-L6-v2", "bertscore_layer": 6, "bartscore_model": str(bart)}
    return {**models, "taggers": taggers, "workers": 1}


@pytest.mark.parametrize("name", list(TEXT_METRICS))
def test_every_metric_keeps_the_contract(name: str, parts: dict[str, Any]) -> None:
    task = TextTask("t", (Source("A parser of trees.", "W0"),), targets=("A parser [0].", "Trees."))
    texts = [Prediction(task, "A tree parser [0]. It parses 3 trees.", "w"), Prediction(task, "", "w")]
    found = []
    for _ in range(2):
        metrics, corpus_metrics = open_metrics([name], **parts)
        (metric,) = (*metrics, *corpus_metrics)
        assert metric.name == name
        assert orjson.dumps(dict(metric.settings)) != b"{}"
        for one in metrics:
            scores = one.scores(texts, no_progress)
            found.append(scores.tobytes())
            assert scores.shape == (2, len(one.columns))
            assert one.scores([], no_progress).shape == (0, len(one.columns))
            without = one.scores([prediction("")], no_progress)
            assert np.isnan(without).any() or not any(column.better for column in one.columns)
        for one in corpus_metrics:
            found.append(orjson.dumps(one.summary(texts, no_progress)))
            nothing = one.summary([], no_progress)
            assert nothing["kl_divergence"] is None if "kl_divergence" in nothing else nothing == {"values": {}}
    assert found[0] == found[1]


WORDS = st.text("abAB é0 .-\n", max_size=40) | st.text(max_size=30)


@given(WORDS, WORDS, st.booleans())
def test_rouge_is_that_of_rouge_score(text: str, reference: str, stemming: bool) -> None:
    kinds = ("rouge1", "rouge2", "rouge3", "rougeL", "rougeLsum")
    theirs = RougeScorer(list(kinds), use_stemmer=stemming).score(reference, text)
    ours = rouge(text, reference, stemming=stemming, kinds=kinds)
    assert {kind: tuple(score) for kind, score in ours.items()} == {kind: tuple(theirs[kind]) for kind in kinds}
    pairs = open_rouge(MetricOptions(stemming=stemming), "rouge2").pairs([(text, reference)], no_progress)
    assert pairs == [ours["rouge2"].f1]


@pytest.mark.parametrize(
    ("works", "text", "target", "expected"),
    [
        # Two of three cited are right, two of four wanted are found: 2 * 2/3 * 1/2 / (7/6) = 4/7.
        ("sources", "[0] and [1, 1], but [9]", "[0-3]", (2 / 3, 2 / 4, 4 / 7)),
        # What is not in the input: wrong in the text, left out of the target.
        ("sources", "[0] [7]", "[0] [7]", (1 / 2, 1, 2 / 3)),
        # By identifier, by title, by number.
        ("sources", "<cite> W1 <sep> x </cite> <cite> unknown <sep> title 2 </cite>", "[1] [2]", (1, 1, 1)),
        ("sources", "<cite> W8 <sep> x </cite> [1]", "<cite> W1 <sep> Title 1 <sep> Lee </cite>", (1 / 2, 1, 2 / 3)),
        # Known to no source, on both sides.
        ("named", "<cite> UNK <sep> On Trees </cite>", "<cite> UNK <sep> on trees. <sep> Lee </cite>", (1, 1, 1)),
        ("named", "[0]", "[0] <cite> UNK <sep> On Trees </cite>", (1, 1 / 2, 2 / 3)),
        (
            "named",
            "[0] <cite> UNK <sep> Rivers </cite>",
            "[0] <cite> UNK <sep> On Trees </cite>",
            (1 / 2, 1 / 2, 1 / 2),
        ),
        # What neither has a name for counts nowhere, and a title of a source is that source.
        ("named", "<cite> UNK <sep> Title 2 </cite>", "[2]", (1, 1, 1)),
    ],
)
def test_citations_by_hand(
    works: Literal["sources", "named"], text: str, target: str, expected: tuple[float, float, float]
) -> None:
    assert citation_score(text, target, SOURCES, works) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("self-reference", "As OUR  WORK shows", [1]),
        ("self-reference", "Here we presented a parser of our workers.", [0]),
        # Words: a, fast, tagger; of them "tagger" is new. Pairs: "a fast" is in the title, "fast tagger" is not.
        ("novelty", "A fast tagger [0].", [1 / 3, 1 / 2, 1, np.nan]),
        # 8 words without the citations, 2 sentences; the source has 7 words.
        ("length", "State-of-the-art parsers don't wait [0, 1]. They parse 3.5 trees [0].", [8, 2, 7 / 8]),
        # Lee, fast, parser; the tagger is in no source, and [7] is no number of the text.
        ("grounding", "Lee and a fast parser and the tagger [7].", [3 / 4, np.nan]),
        ("grounding", "A parser parses in 0.5 s 1000, and 7 and 10.", [2 / 3, 2 / 4]),
        ("grounding", "It is [0].", [np.nan, np.nan]),
    ],
)
def test_what_describes_a_text_by_hand(name: str, text: str, expected: list[float]) -> None:
    (found,) = scores_of(name, prediction(text, sources=(PARSER,)))
    assert found == pytest.approx(expected, nan_ok=True)


def test_sentences_words_and_numbers() -> None:
    sentences = ("As Lee et al. (1997) show.", "It rains", "A headline", "It does.")
    assert sentences_of("As Lee et al. (1997) show. It rains\nA headline\n\nIt does.") == sentences
    assert words_of("The state-of-the-art don't, 3.5!") == ["The", "state-of-the-art", "don't", "3.5"]
    assert terms_of("The state-of-the-art don’t") == ["the", "state", "of", "the", "art", "don't"]
    content = ["lee's", "parser", "parses", "sentences", "s"]
    assert content_terms("Lee's parser parses 1000 sentences in 2 s, it does not.") == content
    assert numbers("1,000") == numbers("1000.0") != numbers("1001")
    found = ["95.3", "12", "15", "3", "10,20", "1.2.3"]
    assert [str(one) for one in numbers("95.3% of 12-15, ($3), 10,20; 1.2.3; GPT-2, F1, v1.5")] == found


MINILM = "all-MiniLM-L6-v2"
PAIRS = [
    ("A parser reads a sentence.", "A sentence is read by a parser."),
    ("A parser reads a sentence.", "Rain fell on the hills."),
    ("The same text.", "The same text."),
    ("", "Not empty."),
    ("Not empty.", "\u200b "),
]


def bertscore(model: str, layer: int | None = None, rescaled: bool = False) -> PairMetric:
    options = MetricOptions(bertscore_model=model, bertscore_layer=layer, bertscore_rescaled=rescaled, device="cpu")
    return open_bertscore(options)


@pytest.fixture(scope="module")
def minilm() -> PairMetric:
    return bertscore(MINILM, 6)


def test_bertscore_is_that_of_bert_score(minilm: PairMetric, capfd: pytest.CaptureFixture[str]) -> None:
    from bert_score import BERTScorer

    ours = minilm.pairs(PAIRS, no_progress)[:, 0]
    assert capfd.readouterr() == ("", "")
    with quiet_libraries():
        scorer = BERTScorer(model_type=find_model(MINILM), num_layers=6, device="cpu")
    _, _, f1 = scorer.score([text for text, _ in PAIRS[:3]], [reference for _, reference in PAIRS[:3]])
    assert np.allclose(ours[:3], f1.numpy(), rtol=0, atol=1e-6)
    assert ours[2] == pytest.approx(1) and ours[1] < ours[0] < 1
    assert ours[3:].tolist() == [0, 0]


def test_bertscore_of_texts_their_targets_and_blocks(minilm: PairMetric) -> None:
    each = minilm.pairs(PAIRS[:2], no_progress)[:, 0]
    targets = tuple(reference for _, reference in PAIRS[:2])
    tasks = [TextTask("a", (), targets=targets), TextTask("b", ()), TextTask("c", (), targets=targets[1:])]
    told: list[tuple[str, int, int]] = []
    scores = minilm.scores([Prediction(task, PAIRS[0][0], "w") for task in tasks], lambda *now: told.append(now))
    assert scores.shape == (3, 1) and math.isnan(scores[1, 0])
    assert scores[[0, 2], 0] == pytest.approx([each[0], each[1]], abs=1e-6)
    assert told[-1] == ("BERTScore", 3, 3)
    # Blocks are matched by it, in any order.
    text, target = f"{PAIRS[0][0]}\n{PAIRS[1][1]}", f"{PAIRS[1][1]}\n{PAIRS[0][1]}"
    blocks = block_match(minilm)
    (found,) = blocks.scores([Prediction(TextTask("t", (), targets=(target,)), text, "w")], no_progress)
    assert found == pytest.approx([(1 + each[0]) / 2] * 3, abs=1e-6)
    assert blocks.settings["score"] == {"name": "bertscore", **minilm.settings}
    for rescaled, message in ((False, "knows no best layer of the model"), (True, "has no baseline of the model")):
        with pytest.raises(ModelError, match=message):
            bertscore(MINILM, 6 if rescaled else None, rescaled)


TARGET = "# Related work\nparsing of trees\n\ntagging of words"


def shared_words(pairs: Sequence[tuple[str, str]], _on_progress: Progress) -> Floats:
    """Words that two texts share, of those that either has."""
    sets = [(set(one.split()), set(other.split())) for one, other in pairs]
    return np.array([len(one & other) / len(one | other) for one, other in sets], float)


@pytest.mark.parametrize(
    ("text", "targets", "references", "expected"),
    [
        ("tagging of words\n\n\n  parsing of trees  \n \n# Related work", [TARGET], "best", [1, 1, 1]),  # in any order
        (f"# Methods\n{TARGET}", [TARGET], "best", [6 / 7, 3 / 4, 1]),  # a headline too many
        ("", ["a block"], "best", [0, 0, 0]),
        ("a block", [""], "best", [0, 0, 0]),
        ("a block", [], "best", [np.nan] * 3),
        ("a b", ["c", "a b"], "first", [0, 0, 0]),
    ],
)
def test_texts_by_hand(text: str, targets: list[str], references: Any, expected: list[float]) -> None:
    metric = block_match(PairMetric("words", (), {}, "best", shared_words), references=references)
    (found,) = metric.scores([Prediction(TextTask("t", (), targets=tuple(targets)), text, "w")], no_progress)
    assert found == pytest.approx(expected, nan_ok=True)


LABELS = ("uses", "extends", "compares")


class FirstWord(Tagger):
    """Labels a sentence by its first word: what a tagger gives can be read off the text."""

    name = "first-word"
    scheme = "words"
    labels = LABELS

    def tag(self, paragraphs: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
        return [tuple(sentence.split()[0].lower() for sentence in paragraph) for paragraph in paragraphs]

    def probabilities(self, paragraphs: Sequence[Sequence[str]]) -> list[Probabilities]:
        return [
            np.array([[float(label == tag) for label in self.labels] for tag in tags]) for tags in self.tag(paragraphs)
        ]


def firsts(tasks: Sequence[TextTask], number: int) -> list[Prediction]:
    """The first sentence of each source of some tasks as their predictions."""
    return [
        Prediction(task, "\n".join(sentences_of(source.text)[0] for source in task.sources if source.text), "firsts")
        for task in tasks[:number]
    ]


def measured(preset: str, metric: str, texts: Sequence[Prediction], **options: object) -> np.ndarray:
    (opened,), _ = open_metrics(**PRESETS[preset].arguments(names=[metric], workers=1, **options))
    return opened.scores(texts, no_progress)


def rouge_score(text: str, target: str, *, stemming: bool, longest: str = "rougeL") -> list[float]:
    """As the package has it."""
    kinds = ["rouge1", "rouge2", longest]
    scores = RougeScorer(kinds, use_stemmer=stemming).score(target, text)
    return [scores[kind].fmeasure for kind in kinds]


@pytest.mark.shared
def test_rouge_of_each_preset_is_that_of_its_paper(citebench: list[TextTask], shared: Path) -> None:
    texts = firsts(citebench, 50)
    expected = [rouge_score(text.text, text.task.targets[0], stemming=False) for text in texts]
    assert measured("citebench", "rouge", texts).tolist() == expected
    # OARelatedWork compares stems, sentence by sentence.
    expected = []
    for text in texts[:15]:
        written, target = ("\n".join(sentences_of(one)) for one in (text.text, text.task.targets[0]))
        expected.append(rouge_score(written, target, stemming=True, longest="rougeLsum"))
    assert measured("oarelatedwork", "rouge", texts[:15]).tolist() == expected
    # SciTLDR takes all figures of the target with the best ROUGE-1; of equal ones the first, as `<` does there.
    texts = firsts(list(read_tasks(shared / "text" / "scitldr" / "dev.jsonl")), 40)
    each = [[rouge_score(text.text, target, stemming=True) for target in text.task.targets] for text in texts]
    best, first = ([max(one, key=lambda scores: scores[0]) for one in each], [one[0] for one in each])
    assert best != first
    assert measured("scitldr", "rouge", texts).tolist() == best
    assert measured("citesum", "rouge", texts).tolist() == first


def summary(*texts: tuple[str, tuple[str, ...]]) -> dict[str, Any]:
    predictions = [
        Prediction(TextTask(str(number), (), targets=targets), text, "w")
        for number, (text, targets) in enumerate(texts)
    ]
    found = dict(Discourse("intent", FirstWord()).summary(predictions, no_progress))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    return found


def test_labels_and_their_divergence_by_hand() -> None:
    # Targets: uses 1/2, extends 1/2; system: uses 3/4, extends 1/4.
    found = summary(
        ("Uses of trees grow. Uses of words too.", ("Uses a tree.", "Extends a tree.")),
        ("Extends it. Uses it.", ("Uses it. Extends it.",)),
    )
    assert found["targets"] == {"uses": 0.5, "extends": 0.5, "compares": 0}
    assert found["system"] == {"uses": 0.75, "extends": 0.25, "compares": 0}
    assert found["kl_divergence"] == pytest.approx(0.5 * math.log(0.5 / 0.75) + 0.5 * math.log(0.5 / 0.25))
    assert found["missing"] == []
    # A label that the system lacks makes it infinite and is named; one that only the system has does not.
    lacks = summary(("Uses it.", ("Uses it. Compares it.",)))
    assert (lacks["kl_divergence"], lacks["missing"]) == ("∞", ["compares"])
    more = summary(("Uses it. Extends it.", ("Uses it.",)))
    assert (more["kl_divergence"], more["missing"]) == (pytest.approx(math.log(2)), [])
    assert summary(("Uses it.", ()))["kl_divergence"] is None
    silent = summary((" ", ("Uses it.",)))
    assert (silent["system"], silent["kl_divergence"], silent["missing"]) == ({}, "∞", ["uses"])
