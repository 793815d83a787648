"""CiteSum: citing sentences as one-sentence summaries of the papers that they cite (Mao et al., 2022, 2.1)."""

import contextlib
import operator
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from citerec.contexts.author_year import names_before
from citerec.contexts.documents import Document
from citerec.contexts.extract import Rules, Tally, extract_contexts
from citerec.contexts.hierarchy import hierarchy, outermost
from citerec.contexts.repeats import full_texts
from citerec.contexts.split import splitter_identity
from citerec.contexts.usable import OUTCOMES
from citerec.corpus.result_lines import writing_lines
from citerec.files.resume import Step
from citerec.index.manifest import open_store
from citerec.papers.common.pair_sets import Plan, write_pair
from citerec.records import MARKER, Context, Paper
from citerec.write.metrics.rouge import rouge
from citerec.write.sentences import sentences_of
from citerec.write.task_files import task_record
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

    By default as in Mao et al. They do not say whether words are stemmed; their recall for SciTLDR is reached only with
    stemming (docs/text-data.md).
    """

    rouge1: float = 0.5
    rouge2: float = 0.2
    rouge_l: float = 0.4
    stemming: bool = True

    def recalls(self, abstract: str, sentence: str) -> tuple[float, float, float]:
        """Recall of the sentence's words, pairs and longest subsequence."""
        scores = rouge(abstract, sentence, stemming=self.stemming)
        return scores["rouge1"].recall, scores["rouge2"].recall, scores["rougeL"].recall

    def holds(self, recalls: tuple[float, float, float]) -> bool:
        """Whether each is high enough."""
        return all(map(operator.ge, recalls, (self.rouge1, self.rouge2, self.rouge_l)))


def citesum_plan(nearness: Nearness, split: str = "pysbd", *, min_abstract: int = MIN_ABSTRACT) -> Plan:
    """How CiteSum is built.

    `split` names the sentence splitter for sources without sentences. Abstracts have more than `min_abstract`
    characters.
    """
    splitting = {"split": split, "split_is": splitter_identity(split)}
    parameters = {"nearness": asdict(nearness), **splitting, "min_abstract": min_abstract}
    return Plan(DATASET, Step(_pairs_of_shard, version=1), STEPS, parameters, unit="cited papers")


def summary_of(sentence: str) -> str:
    """A citing sentence with `REF` for the citation span, which includes names before a number: "Lee et al. [8]"."""
    at = sentence.index(MARKER)
    names = names_before(sentence, len(sentence[:at].rstrip()))
    start = names.start if names and names.sure else at
    return " ".join(f"{sentence[:start]}{CITED}{sentence[at + len(MARKER) :]}".split())


def _pairs_of_shard(shard: Path, out: Path, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    nearness, rules = Nearness(**parameters["nearness"]), Rules(single=True, split=parameters["split"])
    counts, tally = Counter[str](), Tally()
    with writing_lines(out) as write, contextlib.closing(open_store(Path(parameters["index"]))) as store:
        for text in full_texts(shard, parameters, counts, write):
            contexts = _contexts(Document(text), rules, tally, counts)
            papers = store.papers({paper_id for context in contexts for paper_id in context.cited_ids})
            for context in contexts:
                paper = papers.get(context.cited_ids[0])
                if paper is None or len(paper.abstract or "") <= parameters["min_abstract"]:
                    continue
                counts[STEPS[4]] += 1
                printed = context.text.replace(MARKER, context.marker or "")
                if nearness.holds(recalls := nearness.recalls(paper.abstract or "", printed)):
                    counts[STEPS[5]] += 1
                    write_pair(paper.paper_id, task_record(_pair(context, paper, recalls)), write)
    counts[STEPS[2]], counts[STEPS[3]] = tally.sentences, tally.contexts
    return {**counts, OUTCOMES: {outcome: count for outcome, count in tally.outcomes.items() if outcome != "usable"}}


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


def _pair(context: Context, paper: Paper, recalls: tuple[float, float, float]) -> TextTask:
    abstract, rounded = paper.abstract or "", [round(recall, 4) for recall in recalls]
    return TextTask(
        task_id=context.context_id,
        sources=(Source(abstract, paper.paper_id, paper.title, sentences_of(abstract)),),
        targets=(summary_of(context.text),),
        dataset=DATASET,
        extra={"paper_id": paper.paper_id, "citing_id": context.citing_id, "rouge_recall": rounded},
    )
