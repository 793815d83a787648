"""Extractive writers take the sentences that their recipes name, and say where each comes from."""

import itertools

import pytest
from hypothesis import assume, example, given, strategies as st
from lexrank import STOPWORDS, LexRank
from summa.summarizer import summarize

from citerec.papers.common.extractive import all_sentences, cited
from citerec.write.anchors import mentions
from citerec.write.tasks import Sentence, Source, TextTask
from citerec.write.writers import open_writer
from citerec.write.writers.extractive import attributed, impersonal

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


def task_of(*texts: str) -> TextTask:
    return TextTask("t", tuple(map(Source, texts)), targets=("word " * 40,))


@pytest.mark.parametrize(
    ("name", "sentences"),
    [
        ("lead", [("Graphs are hard.", (0,)), ("They grow fast.", (0,)), ("We propose a kernel for them.", (0,))]),
        ("lead-each", [("Graphs are hard [0].", (0,)), ("Trees are easy [2].", (2,))]),
        ("ext-lead", [("Graphs are hard.", (0,)), ("Trees are easy.", (2,))]),
        ("ext-heuristic", [("We propose a kernel for them.", (0,)), ("In this paper, trees are cut.", (2,))]),
        ("attributed", [("[0] propose a kernel for them.", (0,)), ("“Trees are cut” [2].", (2,))]),
        ("ext-oracle", [("In this paper, trees are cut.", (2,))]),
    ],
)
def test_what_each_takes(name: str, sentences: list[tuple[str, tuple[int, ...]]]) -> None:
    prediction = open_writer(name, "citation").write(TASK)
    assert [(sentence.text, sentence.attributions) for sentence in prediction.sentences] == sentences
    assert prediction.text == " ".join(text for text, _ in sentences)


def test_the_surest_sentence_is_taken_and_sentences_of_the_data_set_are_kept() -> None:
    task = task_of("Trees are cut in this paper. They fall. We present a saw.")
    assert open_writer("contribution", "tldr").write(task).text == "We present a saw."
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
    own = open_writer("attributed", "citation").write(task).sentences[0]
    assert own == Sentence("Lee [0] cuts them, as did.", (0,))
    (first, second, third) = open_writer("lead", "citation").write(task).sentences
    assert first == Sentence("Trees fall [1].", (0,), ("[1]",))
    assert second == Sentence(second.text, (0,), ("(Lee, 2001)", "[0, 2]"))
    assert third.unknown == ()
    assert open_writer("lead-each", "citation").write(task).sentences[0].text == "Trees fall [0]."


ONE, TWO, THREE = ("Ada Bee",), ("Ada Bee", "Cy Dee"), ("Ada Bee", "Cy Dee", "Eve Eff")


@pytest.mark.parametrize(
    ("sentence", "authors", "said"),
    [
        ("We propose a kernel.", (), "[0] propose a kernel."),
        ("We propose a kernel.", ONE, "Bee [0] proposes a kernel."),
        ("We have shown it.", TWO, "Bee and Dee [0] have shown it."),
        ("In this paper we give our proof.", THREE, "Bee et al. [0] give their proof."),
        ("This paper presents what we did.", TWO, "The paper of Bee and Dee [0] presents what they did."),
        ("To solve this problem, we give a proof.", ONE, "Bee [0] gives a proof."),
        ("We not only propose it, we prove it.", ONE, "Bee [0] not only proposes it, they prove it."),
        ("We propose it and evaluate our design.", ONE, "Bee [0] proposes it and evaluates their design."),
        ("I am sure that my proof holds.", ONE, "Bee [0] is sure that their proof holds."),
        ("Proofs are given by us.", TWO, "Proofs are given by Bee and Dee [0]."),
        ("Our proof holds.", TWO, "Bee and Dee's [0] proof holds."),
        ("This work is new.", (), "The work [0] is new."),
        ("In this work, kernels “of the US” are ours!", ONE, "“Kernels ‘of the US’ are ours” [0]!"),
    ],
)
def test_what_a_paper_says_of_itself_is_said_of_its_authors(sentence: str, authors: tuple[str, ...], said: str) -> None:
    task = TextTask("t", (Source(sentence, authors=authors),))
    assert attributed(Sentence(sentence, (0,)), task) == said


def test_the_greedy_oracle_takes_what_makes_up_the_target() -> None:
    task = TextTask("t", (Source("a b c. d e f. x y z. g h i."),), targets=("a b c d e f g h i",))
    assert open_writer("greedy-oracle", "citation").write(task).text == "a b c. d e f. g h i."


def test_textrank_is_summas_and_sentences_stand_in_the_sources_that_they_name(citebench: list[TextTask]) -> None:
    for task in citebench:
        text = " ".join(source.text for source in task.sources)
        written = [open_writer(name, "citation").write(task).sentences for name in ("textrank", "lexrank")]
        assert [picked.text for picked in written[0]] == summarize(text, split=True)
        for picked in itertools.chain(*written):
            named = " ".join(task.sources[number].text for number in picked.attributions)
            assert picked.text in " ".join(named.split()) or picked.text in named


def test_lexrank_of_citebench_is_that_of_the_package(citebench: list[TextTask]) -> None:
    sentences = [[sentence.text for sentence in all_sentences(task)] for task in citebench]
    reference = LexRank(sentences, stopwords=STOPWORDS["en"])
    writer = open_writer("lexrank", "citation")
    writer.prepare(citebench)
    for task, texts in zip(citebench, sentences, strict=True):
        written = [sentence.text for sentence in writer.write(task).sentences]
        assert written == reference.get_summary(texts, summary_size=3)


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("In this paper, we bridge A and propose B.", "Bridges A and proposes B."),
        ("We experimentally show that our kernel works.", "Experimentally shows that their kernel works."),
        ("This paper also presents a kernel.", "Also presents a kernel."),
        ("To do so, we cut trees of this work.", "To do so, they cut trees of the work."),
        ("We found a kernel.", "They found a kernel."),
        ("This article is new.", "The article is new."),
        ("Trees fall.", "Trees fall."),
    ],
)
def test_a_tldr_names_no_author(sentence: str, said: str) -> None:
    assert impersonal(Sentence(sentence, (0,)), TASK) == said


def test_what_stands_alone_comes_before_what_leans() -> None:
    source = Source("These methods propose trees. Do we propose lakes? Snow falls. Here we propose ice.", authors=ONE)
    assert open_writer("attributed", "citation").write(TextTask("t", (source,))).text == "Bee [0] proposes ice."
