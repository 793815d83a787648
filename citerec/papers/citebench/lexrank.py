"""LexRank as CiteBench ran it: `lexrank` weighs words within a task, this writer by the whole file of tasks.

Facts from UKPLab/citebench (src/rel_work/baselines/lex_rank.py) and from the package lexrank 0.1.0, its reference.
"""

import importlib.util
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from citerec.errors import WriterError
from citerec.write.tasks import TextTask
from citerec.write.writers.base import Kind, WriterPart
from citerec.write.writers.extractive import LEAD_SENTENCES, ExtractiveWriter, Picked, all_sentences
from citerec.write.writers.graphs import neighbours

NAME = "lexrank-citebench"
THRESHOLD = 0.03
"""Cosine above which two sentences are alike: the package's default."""
# The package leaves out words that hold an address, and takes long to find them. Its list of domains is that of IANA;
# these are the frequent ones.
_ADDRESS = re.compile(
    r"\w@\w[\w-]*\.\w|https?://|ftp://|\bwww\.|[\w-]\.(?:com|org|net|edu|gov|info|io|ai|eu|uk|de|fr|ch|nl|ca|au|cn|jp)\b",
    re.IGNORECASE,
)


class LexRankOfFile(ExtractiveWriter):
    """Takes the sentences with the most neighbours, best first.

    Words are weighted by the tasks of the file that `prepare` reads; without one, by the sentences of the task.

    Sentences are neighbours if their cosine is above `THRESHOLD`, stop words and words with digits left out. Their
    scores are the stationary distribution of a walk from neighbour to neighbour, without damping.
    """

    def __init__(self) -> None:
        self._idf: Callable[[str], float] | None = None
        super().__init__(NAME, self._picked, settings=self._facts("sentences of the task"))

    def prepare(self, tasks: Iterable[TextTask]) -> None:
        """Counts in how many tasks each word occurs; texts are not kept."""
        self._idf = _idf([word for picked in all_sentences(task) for word in _words(picked.text)] for task in tasks)
        self.settings = {"writer": NAME, **self._facts("tasks of the file")}

    def _facts(self, documents: str) -> dict[str, Any]:
        return {"sentences": LEAD_SENTENCES, "threshold": THRESHOLD, "idf": documents}

    def _picked(self, task: TextTask) -> list[Picked]:
        import numpy as np

        candidates = all_sentences(task)
        if not candidates:
            return []
        words = [_words(candidate.text) for candidate in candidates]
        best = np.argsort(_scores(neighbours(words, self._idf or _idf(words), THRESHOLD).toarray()))[::-1]
        return [candidates[place] for place in best[:LEAD_SENTENCES].tolist()]


def _idf(documents: Iterable[Sequence[str]]) -> Callable[[str], float]:
    """The weight of a word: logarithm of all documents that have words over those that have it."""
    found: Counter[str] = Counter()
    count = 0
    for words in documents:
        found.update(set(words))
        count += bool(words)
    return lambda word: math.log(count / found[word] if word in found else count + 1)


def _scores(alike: Any) -> Any:
    """The stationary distribution of a walk from neighbour to neighbour, by the package.

    Degrees of neighbours would give it at once. But many sentences have as many neighbours as others; which of those
    comes first is then a matter of rounding, as the package rounds.
    """
    from lexrank.algorithms.power_method import stationary_distribution

    return stationary_distribution(alike / alike.sum(axis=1, keepdims=True), normalized=False)


def _words(sentence: str) -> list[str]:
    """The words of a sentence that count: with letters, without digits, no stop words of the package."""
    from lexrank import STOPWORDS
    from lexrank.utils.text import clean_text, filter_words, separate_punctuation

    text = " ".join(word for word in sentence.split() if not _ADDRESS.search(word))
    words: list[str] = filter_words(clean_text(separate_punctuation(text)).split(), STOPWORDS["en"])
    return words


def _open(_name: str, _kind: Kind) -> LexRankOfFile:
    if importlib.util.find_spec("lexrank") is None:
        raise WriterError(f"{NAME} needs the package lexrank", "pip install 'citerec[texts]'")
    return LexRankOfFile()


LEXRANK_CITEBENCH = WriterPart(NAME, _open)
