"""Extractive writers take the sentences that their recipes name, and say where each comes from."""

import itertools
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, example, given, strategies as st
from summa.summarizer import summarize

from citerec.errors import InputError
from citerec.write.anchors import mentions, surname, surnames
from citerec.write.metrics import rouge
from citerec.write.task_files import read_tasks
from citerec.write.tasks import Sentence, Source, TextTask
from citerec.write.writers import WRITERS, open_writer
from citerec.write.writers.extractive import all_sentences, attributed, cited, lexrank, textrank, textrank_each

pytestmark = pytest.mark.slow

TASK = TextTask(
    "t",
    (
        Source("Graphs are hard. They grow fast. We propose a kernel for them. It wins."),
        Source(""),
        Source("Trees are easy. In this paper, trees are cut. We like trees."),
    ),
    targets=("A kernel for graphs was proposed [0].", "Trees are cut [2]."),
)


@pytest.mark.parametrize(
    ("name", "sentences"),
    [
        ("lead", [("Graphs are hard.", (0,)), ("They grow fast.", (0,)), ("We propose a kernel for them.", (0,))]),
        ("lead-each", [("Graphs are hard [0].", (0,)), ("Trees are easy [2].", (2,))]),
        ("ext-lead", [("Graphs are hard.", (0,)), ("Trees are easy.", (2,))]),
        ("ext-heuristic", [("We propose a kernel for them.", (0,)), ("In this paper, trees are cut.", (2,))]),
        ("attributed", [("[0] propose a kernel for them.", (0,)), ("Trees are cut [2].", (2,))]),
        ("ext-oracle", [("In this paper, trees are cut.", (2,))]),
    ],
)
def test_what_each_takes(name: str, sentences: list[tuple[str, tuple[int, ...]]]) -> None:
    prediction = open_writer(name, "citation").write(TASK)
    assert [(sentence.text, sentence.attributions) for sentence in prediction.sentences] == sentences
    assert prediction.text == " ".join(text for text, _ in sentences)
    assert prediction.writer == name
    assert prediction.is_oracle == ("oracle" in name)


def test_the_surest_sentence_is_taken() -> None:
    said = "Trees are cut in this paper. They fall. We present a saw."
    (sentence,) = open_writer("contribution", "tldr").write(TextTask("t", (Source(said),))).sentences
    assert sentence.text == "We present a saw."
    (other,) = open_writer("contribution", "tldr").write(TextTask("t", (Source("Trees fall. Saws cut."),))).sentences
    assert other.text == "Trees fall."


def test_the_sentences_of_the_data_set_are_kept() -> None:
    source = Source("One. Two. Three.", sentences=("One. Two.", "Three."))
    assert open_writer("ext-lead", "tldr").write(TextTask("t", (source,))).text == "One. Two."


@given(
    st.text(st.characters(exclude_characters="[](){}【】\\"), min_size=1),
    st.lists(st.integers(0, 20), min_size=1, max_size=3),
)
@example("\n", [0])
def test_a_citation_changes_nothing_but_the_end(sentence: str, numbers: list[int]) -> None:
    assume(not mentions(sentence, ()))
    text = cited(Sentence(sentence, tuple(numbers)), TASK)
    citations = "".join(f" [{number}]" for number in numbers)
    assert text.count(citations) == 1
    assert text.replace(citations, "") in (sentence, f"{sentence}.")
    assert text[-1] in ".?!"
    assert len(text[text.index(citations) + len(citations) :]) == 1


def test_what_a_source_cites_is_none_of_ours() -> None:
    source = Source("Trees fall [1]. We cut them, as (Lee, 2001) did [0, 2].", authors=("Ann Lee",))
    task = TextTask("t", (source, Source("Other.")))
    attributed_text = open_writer("attributed", "citation").write(task).sentences[0]
    assert attributed_text == Sentence("Lee [0] cut them, as did.", (0,))
    (first, second, third) = open_writer("lead", "citation").write(task).sentences
    assert first == Sentence("Trees fall [1].", (0,), ("[1]",))
    assert second == Sentence(second.text, (0,), ("(Lee, 2001)", "[0, 2]"))
    assert third.unknown == ()
    assert open_writer("lead-each", "citation").write(task).sentences[0].text == "Trees fall [0]."


@pytest.mark.parametrize(
    ("sentence", "authors", "said"),
    [
        ("We propose a kernel.", (), "[0] propose a kernel."),
        ("We propose a kernel.", ("Ada Lovelace",), "Lovelace [0] proposes a kernel."),
        ("We also study kernels.", ("Ada Lovelace",), "Lovelace [0] also studies kernels."),
        ("We have shown it.", ("A Bee", "C Dee"), "Bee and Dee [0] have shown it."),
        ("In this paper we give our proof.", ("A Bee", "C Dee", "E Eff"), "Bee et al. [0] give their proof."),
        (
            "This paper presents what we did.",
            ("A Bee", "C Dee"),
            "The paper of Bee and Dee [0] presents what they did.",
        ),
        ("To solve this problem, we give a proof.", ("A Bee",), "Bee [0] gives a proof."),
        ("Using kernels, we give a proof.", ("A Bee",), "Using kernels, Bee [0] gives a proof."),
        ("We not only propose it, we prove it.", ("A Bee",), "Bee [0] not only proposes it, they prove it."),
        ("We propose it and evaluate our design.", ("A Bee",), "Bee [0] proposes it and evaluates their design."),
        ("We found that trees make shade.", ("A Bee",), "Bee [0] found that trees make shade."),
        ("I am sure that my proof holds.", ("A Bee",), "Bee [0] is sure that their proof holds."),
        ("We am sure.", (), "[0] are sure."),
        ("Proofs are given by us.", ("A Bee", "C Dee"), "Proofs are given by Bee and Dee [0]."),
        ("Our proof holds.", ("A Bee", "C Dee"), "Bee and Dee's [0] proof holds."),
        ("Our proof holds.", (), "Their proof holds [0]."),
        ("This work is new.", (), "The work [0] is new."),
        ("Kernels of the US are ours!", ("A Bee",), "Kernels of the US are theirs [0]!"),
        ("Kernels work (in all cases).", ("A Bee",), "Kernels work (in all cases) [0]."),
    ],
)
def test_what_a_paper_says_of_itself_is_said_of_its_authors(sentence: str, authors: tuple[str, ...], said: str) -> None:
    task = TextTask("t", (Source(sentence, authors=authors),))
    assert attributed(Sentence(sentence, (0,)), task) == said


@pytest.mark.parametrize(
    ("author", "expected"),
    [
        ("Karen Sparck Jones", "Jones"), ("Ana de la Cruz", "de la Cruz"), ("Wang, Li", "Wang"), ("Plato", "Plato"),
        ("R. Cummins Jr.", "Cummins"), ("Smith, Jr.", "Smith"), ("van Dijk", "van Dijk"), ("Vincent Van Gogh", "Gogh"),
    ],
)  # fmt: skip
def test_surnames(author: str, expected: str) -> None:
    assert surname(author) == expected
    assert surnames([author, "", "B Dee"]) == f"{expected} and Dee"
    assert surnames([author, "B Dee", "C Eff"]) == f"{expected} et al."


def test_greedy_oracle() -> None:
    source = Source("a b c. d e f. x y z. g h i.")
    task = TextTask("t", (source,), targets=("a b c d e f g h i",))
    chosen = open_writer("greedy-oracle", "citation").write(task).sentences
    assert [sentence.text for sentence in chosen] == ["a b c.", "d e f.", "g h i."]
    reached = rouge("a b c. d e f. g h i.", task.targets[0])["rouge2"].f1
    for number in range(1, 5):
        for others in itertools.combinations(["a b c.", "d e f.", "x y z.", "g h i."], number):
            assert rouge(" ".join(others), task.targets[0])["rouge2"].f1 <= reached


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
    picked = textrank_each(TextTask("t", tuple(Source(text) for _ in range(20)), targets=("word " * 40,)))
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


def test_unknown_writers_are_told_the_known_ones() -> None:
    with pytest.raises(
        InputError,
        match=f"no writer 'leed'. Did you mean lead.* Choose: {', '.join(WRITERS)}, or the folder of a model",
    ):
        open_writer("leed", "citation")


def test_scitldr(shared: Path) -> None:
    """Stemmed, and against the nearest reference, as its authors measure it: docs/results.md has the table."""
    from citerec.write.metrics import MetricOptions, open_rouge

    tasks = list(read_tasks(shared / "text" / "scitldr" / "dev.jsonl"))
    metric = open_rouge(MetricOptions(stemming=True, workers=1))
    expected = {
        "ext-lead": (30.1, 10.6, 23.0),
        "ext-heuristic": (36.5, 15.7, 28.6),
        "contribution": (39.8, 18.7, 31.9),
        "ext-oracle": (45.3, 26.6, 38.2),
        "ext-oracle-rouge1": (47.8, 24.7, 38.2),
    }
    for name, figures in expected.items():
        texts = list(open_writer(name, "tldr").write_many(tasks))
        means = 100 * metric.scores(texts, lambda *_: None).mean(axis=0)
        assert tuple(means.round(1)) == figures, name
