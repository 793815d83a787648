"""The baselines of CiteBench (Funkquist et al. 2023, section 3.3): LEAD, TextRank and LexRank.

LexRank is that of the authors' code (UKPLab/citebench, src/rel_work/baselines/lex_rank.py): the package lexrank with
its stop words, its threshold and its order, best first, words weighted by the whole file of tasks.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from citerec.papers.common.extractive import all_sentences, documents
from citerec.write.tasks import Sentence, TextTask
from citerec.write.writers.base import WriterPart
from citerec.write.writers.extractive import ExtractiveWriter, extractive

SENTENCES = 3
"""How many sentences LEAD and LexRank take."""
TEXTRANK_SHARE = 0.2
"""Share of the sentences that summa takes by default."""
THRESHOLD = 0.03
"""Cosine above which two sentences are alike: the default of the package lexrank."""


def lead(task: TextTask) -> list[Sentence]:
    """LEAD: the first three sentences of the sources, one after another."""
    return all_sentences(task)[:SENTENCES]


def textrank(task: TextTask) -> list[Sentence]:
    """TextRank of all sources together, by `summa` (Mihalcea and Tarau, EMNLP 2004).

    From fewer than five sentences it takes none, because a fifth of them is less than one. A sentence that runs over
    the end of a source may be of any.
    """
    parts = documents(task)
    sentences = []
    for sentence in summa(" ".join(source.text for _, source in parts), ratio=TEXTRANK_SHARE):
        whole = (attributions for attributions, source in parts if sentence in source.text)
        sentences.append(Sentence(sentence, next(whole, tuple(range(len(task.sources))))))
    return sentences


def summa(text: str, **options: Any) -> list[Any]:
    """The sentences that summa takes; none of a text of one sentence, whose graph has no edge."""
    from summa.summarizer import summarize

    return list(summarize(text, split=True, **options)) if text.strip() else []


class LexRank(ExtractiveWriter):
    """LexRank: the sentences with the most neighbours, best first (Erkan and Radev, JAIR 2004).

    Words are weighted by the tasks of the file that `prepare` reads; without one, by the sentences of the task.
    """

    def __init__(self) -> None:
        self._ranker: Any = None
        facts = {"sentences": SENTENCES, "threshold": THRESHOLD, "idf": "sentences of the task"}
        super().__init__("lexrank", self._central, settings=facts)

    def prepare(self, tasks: Iterable[TextTask]) -> None:
        """Counts in how many tasks each word occurs; texts are not kept."""
        self._ranker = _ranker([sentence.text for sentence in all_sentences(task)] for task in tasks)
        self.settings = {**self.settings, "idf": "tasks of the file"}

    def _central(self, task: TextTask) -> list[Sentence]:
        candidates = all_sentences(task)
        if not candidates:
            return []
        texts = [candidate.text for candidate in candidates]
        scores = (self._ranker or _ranker([[text] for text in texts])).rank_sentences(texts, THRESHOLD)
        # As the package orders equals.
        return [candidates[place] for place in scores.argsort()[::-1][:SENTENCES].tolist()]


def _ranker(documents: Iterable[Sequence[str]]) -> Any:
    """The package's LexRank, with the idf of some documents.

    The package counts the same, but looks into each document for each word, which takes long for many.
    """
    from lexrank import STOPWORDS, LexRank

    ranker = LexRank([["word"]], STOPWORDS["en"])
    counts, size = Counter[str](), 0
    for sentences in documents:
        words = {word for sentence in sentences for word in ranker.tokenize_sentence(sentence)}
        counts.update(words)
        size += bool(words)
    idf = {word: math.log(size / count) for word, count in counts.items()}
    ranker.idf_score = defaultdict(lambda: math.log(size + 1), idf)
    return ranker


LEAD = extractive(ExtractiveWriter("lead", lead, settings={"sentences": SENTENCES}))
TEXTRANK = extractive(ExtractiveWriter("textrank", textrank, settings={"share": TEXTRANK_SHARE}))
LEXRANK = WriterPart("lexrank", lambda _name, _kind: LexRank())
