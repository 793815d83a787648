"""TextRank is summa's; LexRank's centrality is that of another PageRank; sentences stand in the sources they name."""

import itertools
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from summa.summarizer import summarize

from citerec.write.task_files import read_tasks
from citerec.write.tasks import Source, TextTask
from citerec.write.writers.extractive import all_sentences, lexrank, textrank, textrank_each

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def sample(shared: Path) -> list[TextTask]:
    return list(read_tasks(shared / "text" / "citebench" / "sample.json"))


def test_textrank_is_summas(sample: list[TextTask]) -> None:
    for task in sample:
        text = " ".join(source.text for source in task.sources)
        assert [picked.text for picked in textrank(task)] == summarize(text, split=True)


def test_sentences_stand_in_the_sources_that_they_name(sample: list[TextTask]) -> None:
    for task in sample:
        for picked in [*textrank(task), *lexrank(task), *textrank_each(task)]:
            named = " ".join(task.sources[number].text for number in picked.attributions)
            assert picked.text in " ".join(named.split()) or picked.text in named


def test_textrank_of_little_is_nothing() -> None:
    assert textrank(TextTask("t", (Source("One tree. Two trees."),))) == []
    assert textrank_each(TextTask("t", (Source("One tree."), Source("")))) == []
    assert lexrank(TextTask("t", (Source("1. 2. 3. -. +."),))) != []


def test_every_source_has_its_best_sentence_however_small_its_share() -> None:
    text = "Cats chase small mice. Cats chase mice and birds every day. Dogs chase cats and mice. Stocks fell today."
    picked = textrank_each(TextTask("t", tuple(Source(text) for _ in range(20))), 40)
    assert [one.attributions for one in picked] == [(number,) for number in range(20)]


def test_lexrank_is_pagerank_over_what_is_alike(sample: list[TextTask]) -> None:
    task = sample[0]
    sentences = [picked.text for picked in all_sentences(task)]
    bags = ["".join(c if c.isalnum() else " " for c in sentence.lower()).split() for sentence in sentences]
    idf = {word: np.log(len(bags) / sum(word in bag for bag in bags)) for bag in bags for word in bag}

    def cosine(one: list[str], other: list[str]) -> float:
        def weights(bag: list[str]) -> dict[str, float]:
            return {word: bag.count(word) * idf[word] for word in set(bag)}

        first, second = weights(one), weights(other)
        shared = sum(weight * second.get(word, 0) for word, weight in first.items())
        return float(shared / np.sqrt(sum(w**2 for w in first.values()) * sum(w**2 for w in second.values())))

    pairs = itertools.product(range(len(bags)), repeat=2)
    graph = nx.Graph((i, j) for i, j in pairs if i == j or cosine(bags[i], bags[j]) > 0.1)
    ranks = nx.pagerank(graph, alpha=0.85, tol=1e-12)
    best = sorted(sorted(ranks, key=lambda number: (-round(ranks[number], 8), number))[:3])
    assert [picked.text for picked in lexrank(task)] == [sentences[number] for number in best]


def test_lexrank_takes_what_most_are_like_and_the_first_of_equals() -> None:
    text = "Stocks fell. Rain came. Cats sleep. Snow melts. Cats chase mice. Mice eat cheese."
    picked = lexrank(TextTask("t", (Source(text),)))
    assert [one.text for one in picked] == ["Stocks fell.", "Rain came.", "Cats chase mice."]
