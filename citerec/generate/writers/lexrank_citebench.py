"""LexRank as CiteBench ran it: `lexrank` weighs words within a task, this writer by the whole file of tasks.

Facts from UKPLab/citebench (src/rel_work/baselines/lex_rank.py) and from the package lexrank 0.1.0, its reference.
"""

import functools
import importlib.util
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from citerec.errors import WriterError
from citerec.generate.writers.base import Kind, WriterPart
from citerec.generate.writers.extractive import LEAD_SENTENCES, ExtractiveWriter, Picked, all_sentences
from citerec.texts.tasks import TextTask

NAME = "lexrank-citebench"
THRESHOLD = 0.03
"""Cosine above which two sentences are alike: the package's default."""
_PUNCTUATION = re.compile(r"""[.,;:¡!¿?…⋯&‹›«»"“”\[\]()⟨⟩{}/|\\]""")
# The package leaves out words that hold an address. Its list of domains is that of IANA; these are the frequent ones.
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

    def __init__(self, sentences: int = LEAD_SENTENCES) -> None:
        self._sentences = sentences
        self._idf: Callable[[str], float] | None = None
        super().__init__(NAME, self._picked, settings=self._facts("sentences of the task"))

    def prepare(self, tasks: Iterable[TextTask]) -> None:
        """Counts in how many tasks each word occurs; texts are not kept."""
        self._idf = _idf([word for picked in all_sentences(task) for word in _words(picked.text)] for task in tasks)
        self.settings = {"writer": NAME, **self._facts("tasks of the file")}

    def _facts(self, documents: str) -> dict[str, Any]:
        return {"sentences": self._sentences, "threshold": THRESHOLD, "idf": documents}

    def _picked(self, task: TextTask) -> list[Picked]:
        import numpy as np

        candidates = all_sentences(task)
        if not candidates:
            return []
        words = [_words(candidate.text) for candidate in candidates]
        best = np.argsort(_scores(_alike(words, self._idf or _idf(words))))[::-1]
        return [candidates[place] for place in best[: self._sentences].tolist()]


def _idf(documents: Iterable[Sequence[str]]) -> Callable[[str], float]:
    """The weight of a word: logarithm of all documents that have words over those that have it."""
    found: Counter[str] = Counter()
    count = 0
    for words in documents:
        found.update(set(words))
        count += bool(words)
    return lambda word: math.log(count / found[word] if word in found else count + 1)


def _alike(sentences: Sequence[Sequence[str]], idf: Callable[[str], float]) -> Any:
    """Which sentences are alike, sentences × sentences; each is like itself."""
    import numpy as np
    from scipy.sparse import csr_array

    numbers = {word: number for number, word in enumerate(sorted(set().union(*sentences)))}
    cells = [
        (row, numbers[word], times * idf(word))
        for row, words in enumerate(sentences)
        for word, times in Counter(words).items()
    ]
    alike = np.eye(len(sentences), dtype=bool)
    if cells:
        rows, columns, weights = zip(*cells, strict=True)
        matrix = csr_array((weights, (rows, columns)), shape=(len(sentences), len(numbers)))
        products = (matrix @ matrix.T).toarray()
        lengths = np.sqrt(products.diagonal())
        alike |= products > THRESHOLD * np.outer(lengths, lengths)
    return alike


def _scores(alike: Any) -> Any:
    """The stationary distribution of each group of connected sentences, which sums to the size of the group.

    Degrees of neighbours would give it at once. But many sentences have as many neighbours as others; which of those
    comes first is then a matter of rounding. So that the same one does as in the package, the steps are its own: powers
    of the matrix, squared until nothing changes.
    """
    import numpy as np
    from scipy.sparse.csgraph import connected_components

    steps = alike / alike.sum(axis=1, keepdims=True)
    scores = np.ones(len(alike))
    groups = connected_components(alike)[1]
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        step, now = steps[np.ix_(rows, rows)].T, np.ones(len(rows))
        while len(rows) > 1:
            before, now = now, np.dot(step, now)
            if np.allclose(now, before):
                break
            step = np.dot(step, step)
        scores[rows] = now
    return scores


def _words(sentence: str) -> list[str]:
    """The words of a sentence that count: with letters, without digits, no stop words."""
    words: list[str] = []
    for printed in sentence.split():
        if not _ADDRESS.search(printed):
            apart = _PUNCTUATION.sub(" ", printed.lower())
            words += "".join(letter for letter in apart if letter.isalnum() or letter in "- ").split()
    stop_words = _stop_words()
    return [
        word
        for word in words
        if word not in stop_words
        and any(letter.isalpha() for letter in word)
        and not any(letter.isdigit() for letter in word)
    ]


@functools.cache
def _stop_words() -> frozenset[str]:
    """The package's list for English: a list of ours would choose other sentences."""
    from lexrank import STOPWORDS

    return frozenset(STOPWORDS["en"])


def _open(_name: str, _kind: Kind) -> LexRankOfFile:
    if importlib.util.find_spec("lexrank") is None:
        raise WriterError(f"{NAME} needs the stop words of the package lexrank", "pip install 'citerec[texts]'")
    return LexRankOfFile()


LEXRANK_CITEBENCH = WriterPart(NAME, _open)
