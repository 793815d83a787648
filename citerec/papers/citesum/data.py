"""Published data sets of summaries as they come from the Hugging Face hub, as records of citerec's own shape.

| data set | text | summary | other fields | seen in |
|---|---|---|---|---|
| CiteSum | `src` | `tgt` | `paper_id`, `title`, `discipline` | the card of `yuningm/citesum` |
| XSum | `document` | `summary` | `id` | `xsum.py` of `EdinburghNLP/xsum` |
| Gigaword | `document` | `summary` | | the card of `Harvard/gigaword` |
"""

import operator
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from citerec.contexts.extract import Rules, Tally, extract_contexts
from citerec.contexts.full_text import Document, FullText
from citerec.contexts.markers import names_before
from citerec.errors import InputError
from citerec.files.progress import Progress, no_progress
from citerec.files.writing import apart
from citerec.papers.common.pair_sets import Plan, Reading
from citerec.papers.common.sections import hierarchy, outermost
from citerec.records import MARKER, Context, Paper
from citerec.settings import Positive, Share
from citerec.write.metrics import CorpusMetric, MetricPart, rouge
from citerec.write.task_files import TaskFormat, parse_task, read_tasks, write_tasks
from citerec.write.tasks import PREFIX, Prediction, Source, TextTask, sentences_of

_SHAPES = (("src", "tgt"), ("document", "summary"))


def _shape_of(record: Mapping[str, Any]) -> tuple[str, str] | None:
    if not record.keys().isdisjoint(("input", "source")):
        return None
    return next((shape for shape in _SHAPES if record.keys() >= set(shape)), None)


def parse_summary(record: Mapping[str, Any], default_id: str = "", *, sources_needed: bool = True) -> TextTask:
    """A text and its summary as a task; errors as for `parse_task`.

    In CiteSum a `paper_id` names the cited paper: it is no id of the task. It occurs as often as the paper is cited.
    """
    text, summary = _shape_of(record) or _SHAPES[0]
    rest = {name: value for name, value in record.items() if name not in (text, summary, "title")}
    paper = {name: record[name] for name in ("paper_id", "title") if record.get(name) is not None}
    sources = {"sources": [paper]} if paper else {}
    own = {**rest, "input": record[text], "target": record[summary], **sources}
    return parse_task(own, default_id, sources_needed=sources_needed)


SUMMARIES = TaskFormat("summaries", _shape_of, parse_summary)


DATASET = "citesum"
CITED = "REF"
"""Stands in a summary for the citation span (CiteSum)."""

MIN_ABSTRACT = 100
"""Characters that an abstract must exceed (morningmoni/CiteSum, data_processing/extract_excerpt.py)."""

STEPS = (
    "texts",
    "texts with a section of related work",
    "sentences that cite there",
    "of them, that cite one paper, and it is linked",
    "of them, whose cited paper has an abstract",
    "of them, near enough to the abstract",
)
_HEADLINE = re.compile(r"\brelated\s+works?\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Nearness:
    """How similar a sentence must be to the abstract: least ROUGE recall, the share of it that the abstract has.

    By default as in Mao et al. They do not say whether words are stemmed; their recall for SciTLDR is reached only with
    stemming (docs/papers.md).

    Attributes:
        rouge1: The least share of a sentence's words that the abstract has, 0 to 1.
        rouge2: The least share of a sentence's pairs of words that the abstract has.
        rouge_l: The least share of a sentence that is in its longest common subsequence with the abstract.
        stemming: Whether words are compared by their stems.
        min_abstract: The characters that an abstract must exceed.
    """

    rouge1: Share = 0.5
    rouge2: Share = 0.2
    rouge_l: Share = 0.4
    stemming: bool = True
    min_abstract: Positive = MIN_ABSTRACT


def summary_of(sentence: str) -> str:
    """A citing sentence with `REF` for the citation span, which includes names before a number: "Lee et al. [8]"."""
    at = sentence.index(MARKER)
    names = names_before(sentence, len(sentence[:at].rstrip()))
    start = names.start if names and names.sure else at
    return " ".join(f"{sentence[:start]}{CITED}{sentence[at + len(MARKER) :]}".split())


def citesum_tasks(texts: Iterator[FullText], reading: Reading) -> Iterator[tuple[str, TextTask]]:
    """A task for each sentence near enough to the abstract that it cites, after the cited paper."""
    settings, counts, tally = reading.settings, reading.counts, Tally(outcomes=reading.outcomes)
    nearness, rules = Nearness(**settings["nearness"]), Rules(single=True, split=settings["split"])
    least = (nearness.rouge1, nearness.rouge2, nearness.rouge_l)
    for text in texts:
        contexts = _contexts(Document(text), rules, tally, counts)
        papers = reading.index.store.papers({context.cited_ids[0] for context in contexts})
        for context in contexts:
            paper = papers.get(context.cited_ids[0])
            if paper is None or len(paper.abstract or "") <= nearness.min_abstract:
                continue
            counts[STEPS[4]] += 1
            printed = context.text.replace(MARKER, context.marker or "")
            scores = rouge(paper.abstract or "", printed, stemming=nearness.stemming)
            recalls = [score.recall for score in scores.values()]
            if all(map(operator.ge, recalls, least)):
                counts[STEPS[5]] += 1
                yield paper.paper_id, _task(context, paper, recalls)
    counts[STEPS[2]], counts[STEPS[3]] = tally.sentences, tally.contexts


CITESUM_PLAN = Plan(DATASET, citesum_tasks, STEPS, Nearness, "nearness")
"""How CiteSum is built."""


def _contexts(document: Document, rules: Rules, tally: Tally, counts: "Counter[str]") -> list[Context]:
    """The sentences of a text's Related Work sections and subsections that cite exactly one linked paper."""
    tree = hierarchy(document.sections())
    places = [place for each in outermost(tree, _HEADLINE.search) for place in each.all_paragraphs()]
    if not places:
        return []
    counts[STEPS[1]] += 1
    paragraphs = tuple(document.paragraphs[place] for place in places)
    return list(extract_contexts(replace(document.text, paragraphs=paragraphs), rules, tally))


def _task(context: Context, paper: Paper, recalls: Sequence[float]) -> TextTask:
    abstract, rounded = paper.abstract or "", [round(recall, 4) for recall in recalls]
    return TextTask(
        task_id=context.context_id,
        sources=(Source(abstract, paper.paper_id, paper.title, sentences_of(abstract)),),
        targets=(summary_of(context.text),),
        dataset=DATASET,
        extra={"paper_id": paper.paper_id, "citing_id": context.citing_id, "rouge_recall": rounded},
    )


Goal = Literal["summary", "title", "discipline"]
Part = Literal["title", "discipline", "introduction", "conclusion"]


def recast(task: TextTask, goal: Goal, parts: Sequence[Part], *, several: bool) -> TextTask | None:
    """A task about one paper for another goal; None if its target is not known.

    Args:
        task: The task.
        goal: What to write.
        parts: What to read besides the text; never what is to be written.
        several: Whether there are other goals: the name of the goal is then the prefix of the input.

    Raises:
        InputError: The task is about several papers.
    """
    if len(task.sources) != 1:
        raise InputError(f"{task.task_id} has {len(task.sources)} sources", "Give tasks about one paper each.")
    (source,), texts = task.sources, parts_of(task)
    targets = task.targets if goal == "summary" else (texts[goal],)
    if not any(map(str.strip, targets)):
        return None
    if read := {part: texts[part] for part in parts if part != goal and texts[part]}:
        first = [read[part] for part in ("title", "discipline") if part in read]
        first = [text if text.endswith((".", "?", "!")) else f"{text}." for text in first]
        last = [read[part] for part in ("introduction", "conclusion") if part in read]
        source = replace(source, text=" ".join([*first, source.text, *last]), sentences=())
    if goal == "title":
        source = replace(source, title="")
    extra = {**task.extra, **({PREFIX: f"{goal}:"} if several else {})}
    names = filter(None, [task.dataset, goal if goal != "summary" or several else ""])
    return replace(task, sources=(source,), targets=targets, dataset="-".join(names), extra=extra)


def recast_file(
    path: Path, out: Path, goals: Sequence[Goal], parts: Sequence[Part] = (), *, on_progress: Progress = no_progress
) -> dict[str, int]:
    """Writes the tasks of a file for each goal; returns how many, and how many were left out, by what is missing.

    Args:
        path: The tasks.
        out: The file to write.
        goals: What to write: the summary, which is the target of the file, the title, or the discipline. With several,
            each task is written once for each.
        parts: What to read besides the text, as for `recast`.
        on_progress: Called as the work goes on.

    Raises:
        SourceError: The file cannot be read.
        InputError: A record is no task about one paper, nothing is left, or no task has a part that is to be read.
        BuildError: The result cannot be written.
    """
    counts: Counter[str] = Counter()
    has: Counter[str] = Counter()
    apart(out, path)

    def recast_tasks() -> Iterator[TextTask]:
        for task in read_tasks(path):
            has.update(part for part, value in parts_of(task).items() if value)
            for goal in goals:
                goal_task = recast(task, goal, parts, several=len(goals) > 1)
                counts[goal if goal_task else f"without {goal}: left out"] += 1
                if goal_task:
                    yield goal_task
        wanted = (*parts, *(goal for goal in goals if goal != "summary"))
        if missing := [name for name in wanted if not has[name]]:
            raise InputError(f"no task of {path} has a {missing[0]}", f'Give records with "{missing[0]}": "…".')

    write_tasks(recast_tasks(), out, on_progress)
    return dict(counts)


def parts_of(task: TextTask) -> dict[str, str]:
    """What is known about the first paper of a task, by the name of the part; empty texts if it is not."""
    parts = {"title": task.sources[0].title.strip(), "discipline": discipline_of(task.extra) or ""}
    for name in ("introduction", "conclusion"):
        value = task.extra.get(name)
        texts = value if isinstance(value, list) else [value]
        parts[name] = " ".join(" ".join(text.split()) for text in texts if isinstance(text, str) and text.strip())
    return parts


def discipline_of(fields: Mapping[str, Any]) -> str | None:
    """The discipline of a paper: the first field of study, if there are several (Mao et al. 2022, section 2.2).

    `discipline` is a text, a list of them, or CiteSum's object with `mag_field_of_study`. None if none is known.
    """
    value = fields.get("discipline")
    if isinstance(value, Mapping):
        value = value.get("mag_field_of_study")
    if isinstance(value, list):
        value = next((one for one in value if isinstance(one, str) and one.strip()), None)
    return value.strip() or None if isinstance(value, str) else None


class Labels(CorpusMetric):
    """F1 of texts as labels, over all texts together."""

    name = "labels"
    settings: Mapping[str, Any] = {
        "package": "scikit-learn, f1_score",
        "over": "labels of targets and texts; zero where one is never right",
        "texts": "without case and white space at the ends; the first target",
    }

    def summary(self, texts: Sequence[Prediction], on_progress: Progress) -> Mapping[str, Any]:
        """`values`: macro_f1, weighted_f1 and accuracy, from 0 to 1; empty if no text has a target."""
        from sklearn.metrics import accuracy_score, f1_score

        on_progress(self.name, 0, 1)
        pairs = [(_label(one.task.targets[0]), _label(one.text)) for one in texts if one.task.targets]
        if not pairs:
            return {"values": {}}
        wanted, answers = map(list, zip(*pairs, strict=True))
        f1 = {kind: float(f1_score(wanted, answers, average=kind, zero_division=0)) for kind in ("macro", "weighted")}
        accuracy = float(accuracy_score(wanted, answers))
        return {"values": {"macro_f1": f1["macro"], "weighted_f1": f1["weighted"], "accuracy": accuracy}}


def _label(text: str) -> str:
    return " ".join(text.split()).casefold()


LABELS = MetricPart("labels", lambda _: Labels())
