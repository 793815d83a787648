"""TextRank and LexRank: the sentences most similar to the others."""

import functools
import itertools
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from citerec.write.tasks import TextTask
from citerec.write.writers.base import Kind, WriterPart
from citerec.write.writers.extractive import (
    LEAD_SENTENCES,
    ExtractiveWriter,
    Picked,
    all_sentences,
    cited,
    documents,
    extractive,
)

TEXTRANK_SHARE = 0.2
"""Share of the sentences that summa takes by default."""
WORDS = 150
"""Words of a text by default."""
LEXRANK_THRESHOLD = 0.1
"""Cosine from which two sentences are alike (Erkan and Radev, JAIR 2004, section 5.1)."""
_DAMPING = 0.85
_TOLERANCE = 1e-9


def textrank(task: TextTask, share: float = TEXTRANK_SHARE) -> list[Picked]:
    """TextRank of all sources together, by `summa` (Mihalcea and Tarau, EMNLP 2004; CiteBench ran it so).

    From fewer than five sentences it takes none, because a fifth of them is less than one.
    """
    given = documents(task)
    text = " ".join(source.text for _, source in given)
    starts = list(itertools.accumulate((len(source.text) + 1 for _, source in given), initial=0))[:-1]
    picked: list[Picked] = []
    done = 0
    for sentence in _summa(text, ratio=share):
        # In the order of the text, so that a sentence that occurs twice is found twice.
        start = max(text.find(sentence, done), 0)
        done = start + 1
        first, last = (bisect_right(starts, place) for place in (start, start + len(sentence) - 1))
        attributions = itertools.chain.from_iterable(numbers for numbers, _ in given[first - 1 : last])
        picked.append(Picked(sentence, tuple(attributions)))
    return picked


def textrank_each(task: TextTask, words: int | None = None) -> list[Picked]:
    """TextRank of each source separately, each with its share of the words (OARelatedWork, section 6.1.3).

    As many words as the first target by default, as in OARelatedWork; `WORDS` if there is none.
    """
    words = words or (len(task.targets[0].split()) if task.targets else WORDS)
    given = documents(task)
    share = max(1, round(words / max(1, len(given))))
    return [
        Picked(sentence, attributions)
        for attributions, source in given
        # Even if its share is less than a sentence, a source gets its best one: it must be cited.
        for sentence in _summa(source.text, words=share) or _best(source.text)
    ]


def _best(text: str) -> list[str]:
    """The sentence that TextRank ranks first."""
    ranked = _summa(text, ratio=1.0, scores=True)
    return [max(ranked, key=lambda pair: pair[1])[0]] if ranked else []


def _summa(text: str, **options: Any) -> list[Any]:
    from summa.summarizer import summarize

    # For one sentence it gives none: the graph has no edge.
    found: list[Any] = summarize(text, split=True, **options) if text.strip() else []
    return found


def lexrank(task: TextTask, sentences: int = LEAD_SENTENCES, threshold: float = LEXRANK_THRESHOLD) -> list[Picked]:
    """LexRank: the sentences most central among those of all sources (Erkan and Radev, JAIR 2004).

    PageRank over the graph in which sentences are neighbours whose cosine, words weighted by tf · idf, is above a
    threshold; idf is over the sentences of the task. They come in the order of the sources.
    """
    import numpy as np

    candidates = all_sentences(task)
    if len(candidates) <= sentences:
        return candidates
    words = [_words(candidate.text) for candidate in candidates]
    counts = Counter(word for of_sentence in words for word in set(of_sentence))
    scores = _centrality(neighbours(words, lambda word: math.log(len(words) / counts[word]), threshold))
    best = np.argsort(-scores, kind="stable")[:sentences]
    return [candidates[place] for place in sorted(best.tolist())]


def neighbours(sentences: Sequence[Sequence[str]], idf: Callable[[str], float], threshold: float) -> Any:
    """Which sentences are alike, given their words: a sparse matrix, sentences × sentences, of 1 for neighbours.

    Two are neighbours if their cosine, words weighted by tf · idf, is above a threshold. Each is like itself, even if
    its words weigh nothing.
    """
    import numpy as np
    from scipy.sparse import csr_array, diags_array

    numbers = {word: number for number, word in enumerate(sorted(set().union(*sentences)))}
    counts = [Counter(words) for words in sentences]
    rows = [row for row, of_sentence in enumerate(counts) for _ in of_sentence]
    columns = [numbers[word] for of_sentence in counts for word in of_sentence]
    values = [times * idf(word) for of_sentence in counts for word, times in of_sentence.items()]
    weights = csr_array((values, (rows, columns)), shape=(len(sentences), max(1, len(numbers))), dtype=np.float64)
    lengths = np.sqrt(weights.multiply(weights).sum(axis=1))
    weights = diags_array(1 / np.maximum(lengths, _TOLERANCE)) @ weights
    alike = (weights @ weights.T > threshold).astype(np.float64).tolil()
    alike.setdiag(1.0)
    return alike.tocsr()


def _centrality(alike: Any) -> Any:
    """PageRank of sentences by their neighbours."""
    import numpy as np
    from scipy.sparse import diags_array

    steps = diags_array(1 / alike.sum(axis=1)) @ alike
    size = alike.shape[0]
    scores = np.full(size, 1 / size)
    while True:
        after = _DAMPING * (scores @ steps) + (1 - _DAMPING) / size
        if np.abs(after - scores).sum() < _TOLERANCE:
            # Values that differ only by rounding are equal: the first counts.
            return np.round(after, 9)
        scores = after


def _words(sentence: str) -> list[str]:
    return "".join(letter if letter.isalnum() else " " for letter in sentence.lower()).split()


def _open_each(name: str, _kind: Kind, words: int | None = None) -> ExtractiveWriter:
    pick = functools.partial(textrank_each, words=words)
    return ExtractiveWriter(name, pick, phrase=cited, settings={"words": words})


TEXTRANK = extractive("textrank", textrank, share=TEXTRANK_SHARE)
TEXTRANK_EACH = WriterPart("textrank-each", _open_each)
LEXRANK = extractive("lexrank", lexrank, sentences=LEAD_SENTENCES, threshold=LEXRANK_THRESHOLD)
