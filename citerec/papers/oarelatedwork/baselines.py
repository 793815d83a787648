"""The extractive systems of OARelatedWork (Docekal et al. 2024, section 6.1): LEAD, TextRank, Greedy Oracle."""

import functools

from citerec.papers.citebench.baselines import summa
from citerec.papers.common.extractive import all_sentences, cited, documents, oracle_writer
from citerec.write.tasks import Sentence, TextTask
from citerec.write.writers.extractive import ExtractiveWriter, extractive

WORDS = 150
"""Words of a text of `textrank-each` by default."""


def textrank_each(task: TextTask) -> list[Sentence]:
    """TextRank of each source separately, each with its share of the words (section 6.1.3).

    As many words as the first target by default; `WORDS` if there is none. Even if its share is less than a sentence, a
    source gets its best one: it must be cited.
    """
    words = len(task.targets[0].split()) if task.targets else WORDS
    sources = documents(task)
    share = max(1, round(words / max(1, len(sources))))
    sentences = []
    for attributions, source in sources:
        texts = summa(source.text, words=share)
        if not texts and (ranked := summa(source.text, ratio=1.0, scores=True)):
            texts = [max(ranked, key=lambda pair: pair[1])[0]]
        sentences += [Sentence(text, attributions) for text in texts]
    return sentences


LEAD_EACH = extractive(ExtractiveWriter("lead-each", functools.partial(all_sentences, each=1), cited))
TEXTRANK_EACH = extractive(ExtractiveWriter("textrank-each", textrank_each, cited))
GREEDY_ORACLE = oracle_writer("greedy-oracle", (2,))
