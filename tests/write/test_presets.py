"""Presets against the packages and formulas that the authors of the papers used, on the data at hand."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from citerec.models.find import find_model, quiet_libraries
from citerec.papers.citebench.metrics import Discourse, citebench_sentences
from citerec.write.drafting import PRESETS
from citerec.write.metrics import TEXT_METRICS, MetricOptions, open_metrics
from citerec.write.task_files import read_tasks
from citerec.write.tasks import Prediction, sentences_of
from tests.write.test_metrics_discourse import FirstWord

KINDS = ("rouge1", "rouge2", "rougeL")


def quietly(*_: object) -> None:
    pass


def firsts(path: Path, number: int) -> list[Prediction]:
    """The first sentence of each source of some tasks as their predictions."""
    tasks = [task for _, task in zip(range(number), read_tasks(path), strict=False)]
    return [
        Prediction(task, "\n".join(sentences_of(source.text)[0] for source in task.sources if source.text), "firsts")
        for task in tasks
    ]


def measured(preset: str, metric: str, texts: Sequence[Prediction], **options: object) -> np.ndarray:
    (opened,), _ = open_metrics(**PRESETS[preset].arguments(names=[metric], workers=1, **options))
    return opened.scores(texts, quietly)


def f1s(text: str, target: str, *, stemming: bool, kinds: Sequence[str] = KINDS) -> list[float]:
    """As rouge-score has it."""
    from rouge_score.rouge_scorer import RougeScorer

    scores = RougeScorer(list(kinds), use_stemmer=stemming).score(target, text)
    return [scores[kind].fmeasure for kind in kinds]


@pytest.mark.parametrize("name", list(PRESETS))
def test_a_preset_sets_what_its_metrics_depend_on(name: str) -> None:
    preset = PRESETS[name]
    assert set(preset.metrics) <= set(TEXT_METRICS)
    assert set(preset.options) <= {field.name for field in fields(MetricOptions) if field.init}
    needed = {"rouge": {"stemming", "rouge_l", "references"}, "citations": {"cited_works", "references"}}
    needed["bertscore"] = {"bertscore_model", "bertscore_layer", "bertscore_rescaled", "references"}
    needed["intent"] = {"intent_sentences", "discourse_mean"}
    for metric in preset.metrics:
        assert needed.get(metric, set()) <= set(preset.options)
    assert preset.used(taggers=dict.fromkeys(("intent", "corwa")))["differs"] == {}


def test_what_is_given_by_hand_wins_and_is_named() -> None:
    preset = PRESETS["citebench"]
    assert preset.arguments()["names"] == ["rouge", "bertscore"]  # no tagger is given
    assert preset.arguments(taggers={"corwa": Path("tagger")})["names"] == ["rouge", "bertscore", "corwa"]
    used = preset.used(names=["rouge"], stemming=True, rouge_l="sentence", workers=2)
    assert used["differs"] == {"metrics": ["rouge", "bertscore", "intent", "corwa"], "stemming": False}
    assert used["settings"] == {"metrics": ["rouge"], **preset.options, "stemming": True}


@pytest.mark.shared
def test_rouge_of_citebench_is_rouge_score_without_stems(shared: Path) -> None:
    texts = firsts(shared / "text" / "citebench" / "sample.json", 50)
    expected = [f1s(text.text, text.task.targets[0], stemming=False) for text in texts]
    assert measured("citebench", "rouge", texts).tolist() == expected


@pytest.mark.shared
def test_rouge_of_scitldr_is_that_of_the_target_with_the_best_rouge1(shared: Path) -> None:
    texts = firsts(shared / "text" / "scitldr" / "dev.jsonl", 40)
    best, first = [], []
    for text in texts:
        of_targets = [f1s(text.text, target, stemming=True) for target in text.task.targets]
        best.append(max(of_targets, key=lambda scores: scores[0]))  # of equal ones the first, as `<` does there
        first.append(of_targets[0])
    assert best != first
    assert measured("scitldr", "rouge", texts).tolist() == best
    assert measured("citesum", "rouge", texts).tolist() == first


@pytest.mark.shared
def test_rouge_of_oarelatedwork_compares_stems_sentence_by_sentence(shared: Path) -> None:
    texts = firsts(shared / "text" / "citebench" / "sample.json", 15)
    kinds = ("rouge1", "rouge2", "rougeLsum")
    expected = []
    for text in texts:
        prediction, target = ("\n".join(sentences_of(one)) for one in (text.text, text.task.targets[0]))
        expected.append(f1s(prediction, target, stemming=True, kinds=kinds))
    assert measured("oarelatedwork", "rouge", texts).tolist() == expected


@pytest.mark.shared
@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")  # of bert-score
@pytest.mark.parametrize(
    ("preset", "known"), [("citebench", "distilbert-base-uncased"), ("oarelatedwork", "bert-base-uncased")]
)
def test_bertscore_is_that_of_bert_score_for_a_folder_of_the_name(
    preset: str, known: str, shared: Path, tmp_path: Path
) -> None:
    import bert_score

    # The models of the papers are not at hand: MiniLM stands in for them, under a name whose baseline bert-score has.
    folder = tmp_path / known
    folder.symlink_to(find_model("all-MiniLM-L6-v2"))
    texts = firsts(shared / "text" / "citebench" / "sample.json", 4)
    layer, rescaled = 5, PRESETS[preset].options["bertscore_rescaled"]
    ours = measured(preset, "bertscore", texts, bertscore_model=str(folder), bertscore_layer=layer)
    baseline = Path(bert_score.__file__).parent / "rescale_baseline" / "en" / f"{known}.tsv"
    with quiet_libraries():
        _, _, f1 = bert_score.score(
            [text.text for text in texts],
            [text.task.targets[0] for text in texts],
            model_type=str(folder),
            num_layers=layer,
            lang="en",
            rescale_with_baseline=rescaled,
            baseline_path=str(baseline) if rescaled else None,
            batch_size=1,
        )
    assert rescaled == (preset == "oarelatedwork")
    assert ours[:, 0] == pytest.approx(f1.numpy(), abs=1e-4)


class Length(FirstWord):
    """Labels sentences by their number of words, so that any text has several labels."""

    def tag(self, paragraphs: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
        return [tuple(self.labels[len(sentence.split()) % 3] for sentence in one) for one in paragraphs]


@pytest.mark.shared
def test_discourse_of_citebench_is_the_mean_of_the_data_sets_and_its_kl_that_of_scipy(shared: Path) -> None:
    from scipy.stats import entropy

    texts = [
        replace(text, task=replace(text.task, dataset="xing" if number % 5 else "lu"))
        for number, text in enumerate(firsts(shared / "text" / "citebench" / "sample.json", 50))
    ]
    options = PRESETS["citebench"].options
    metric = Discourse("intent", Length(), sentences=options["intent_sentences"], mean=options["discourse_mean"])
    found = metric.summary(texts, quietly)

    def shares(of_targets: bool) -> np.ndarray:
        each = []
        for dataset in ("lu", "xing"):
            counts = Counter[str]()
            for text in texts:
                if text.task.dataset == dataset:
                    said = text.task.targets[0] if of_targets else text.text
                    counts.update(Length().tag([citebench_sentences(said, citing=of_targets)])[0])
            each.append([counts[label] / counts.total() for label in Length.labels])
        return np.mean(each, axis=0)

    p, q = shares(True), shares(False)
    assert list(found["targets"].values()) == pytest.approx(p) and list(found["system"].values()) == pytest.approx(q)
    assert found["kl_divergence"] == pytest.approx(float(entropy(p, q)), abs=1e-12)
    pooled = Discourse("intent", Length(), sentences="citebench").summary(texts, quietly)
    assert pooled["targets"] != found["targets"]


def test_citebench_labels_long_sentences_and_of_targets_those_that_cite() -> None:
    text = "Trees are used for tagging [0] very often. Is that so? It is, says a second paper [12]. We do not. So there"
    assert citebench_sentences(text, citing=False) == [
        "Trees are used for tagging [0] very often.",
        "Is that so? It is, says a second paper [12].",
    ]
    assert citebench_sentences(text, citing=True) == ["Trees are used for tagging [0] very often."]
    assert citebench_sentences("", citing=True) == []
    assert not any(re.search(r"^\s|\s$", one) for one in citebench_sentences(f" {text} ", citing=False))
