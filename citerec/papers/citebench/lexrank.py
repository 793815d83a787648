"""LexRank as CiteBench ran it: the package lexrank, with words weighted by the whole file of tasks.

As in UKPLab/citebench (src/rel_work/baselines/lex_rank.py): the package's stop words, threshold and order, best first.
"""

import importlib.util
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from citerec.errors import WriterError
from citerec.write.tasks import Sentence, TextTask
from citerec.write.writers.base import Kind, WriterPart
from citerec.write.writers.extractive import LEAD_SENTENCES, ExtractiveWriter, all_sentences

NAME = "lexrank-citebench"
THRESHOLD = 0.03
"""Cosine above which two sentences are alike: the package's default."""


class LexRankOfFile(ExtractiveWriter):
    """Takes the sentences with the most neighbours, best first.

    Words are weighted by the tasks of the file that `prepare` reads; without one, by the sentences of the task.
    """

    def __init__(self) -> None:
        self._ranker: Any = None
        facts = {"sentences": LEAD_SENTENCES, "threshold": THRESHOLD, "idf": "sentences of the task"}
        super().__init__(NAME, self._central, settings=facts)

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
        return [candidates[place] for place in scores.argsort()[::-1][:LEAD_SENTENCES].tolist()]


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


def _open(_name: str, _kind: Kind) -> LexRankOfFile:
    if importlib.util.find_spec("lexrank") is None:
        raise WriterError(f"{NAME} needs the package lexrank", "pip install 'citerec[texts]'")
    return LexRankOfFile()


LEXRANK_CITEBENCH = WriterPart(NAME, _open)
