"""CiteSum: citing sentences as one-sentence summaries of the papers that they cite (Mao et al., 2022, 2.1)."""

import operator
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

from citerec.contexts.callouts import names_before
from citerec.contexts.documents import Document
from citerec.contexts.extract import Rules, Tally, extract_contexts
from citerec.contexts.s2orc import FullText
from citerec.contexts.sections import hierarchy, outermost
from citerec.papers.common.pair_sets import Plan, Reading
from citerec.records import MARKER, Context, Paper
from citerec.settings import Positive, Share
from citerec.write.metrics.rouge import rouge
from citerec.write.sentences import sentences_of
from citerec.write.tasks import Source, TextTask

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

    Abstracts have more than `min_abstract` characters.

    By default as in Mao et al. They do not say whether words are stemmed; their recall for SciTLDR is reached only with
    stemming (docs/papers.md).
    """

    rouge1: Share = 0.5
    rouge2: Share = 0.2
    rouge_l: Share = 0.4
    stemming: bool = True
    min_abstract: Positive = MIN_ABSTRACT

    def recalls(self, abstract: str, sentence: str) -> tuple[float, float, float]:
        """Recall of the sentence's words, pairs and longest subsequence."""
        scores = rouge(abstract, sentence, stemming=self.stemming)
        return scores["rouge1"].recall, scores["rouge2"].recall, scores["rougeL"].recall

    def holds(self, recalls: tuple[float, float, float]) -> bool:
        """Whether each is high enough."""
        return all(map(operator.ge, recalls, (self.rouge1, self.rouge2, self.rouge_l)))


def citesum_plan(nearness: Nearness, split: str = "pysbd") -> Plan:
    """How CiteSum is built; `split` names the sentence splitter for sources without sentences."""
    parameters = {"nearness": asdict(nearness), "split": split}
    return Plan(DATASET, citesum_tasks, STEPS, parameters, unit="cited papers")


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
    for text in texts:
        contexts = _contexts(Document(text), rules, tally, counts)
        papers = reading.index.store.papers({context.cited_ids[0] for context in contexts})
        for context in contexts:
            paper = papers.get(context.cited_ids[0])
            if paper is None or len(paper.abstract or "") <= nearness.min_abstract:
                continue
            counts[STEPS[4]] += 1
            printed = context.text.replace(MARKER, context.marker or "")
            if nearness.holds(recalls := nearness.recalls(paper.abstract or "", printed)):
                counts[STEPS[5]] += 1
                yield paper.paper_id, _task(context, paper, recalls)
    counts[STEPS[2]], counts[STEPS[3]] = tally.sentences, tally.contexts


def _contexts(document: Document, rules: Rules, tally: Tally, counts: "Counter[str]") -> list[Context]:
    """The sentences of a text's Related Work sections and subsections that cite exactly one linked paper."""
    flat = document.sections()
    if not any(_HEADLINE.search(section.headline) for section in flat):
        return []
    places = [place for each in outermost(hierarchy(flat), _HEADLINE.search) for place in each.all_paragraphs()]
    if not places:
        return []
    counts[STEPS[1]] += 1
    paragraphs = tuple(document.paragraphs[place] for place in places)
    return list(extract_contexts(replace(document.text, paragraphs=paragraphs), rules, tally=tally))


def _task(context: Context, paper: Paper, recalls: tuple[float, float, float]) -> TextTask:
    abstract, rounded = paper.abstract or "", [round(recall, 4) for recall in recalls]
    return TextTask(
        task_id=context.context_id,
        sources=(Source(abstract, paper.paper_id, paper.title, sentences_of(abstract)),),
        targets=(summary_of(context.text),),
        dataset=DATASET,
        extra={"paper_id": paper.paper_id, "citing_id": context.citing_id, "rouge_recall": rounded},
    )
