"""What extractive baselines share: where they take sentences from, and those most like a target.

Greedy Oracle and EXT-ORACLE are upper bounds, not systems.
"""

from collections.abc import Sequence

from citerec.write.metrics import grown_rouge, tokens_of
from citerec.write.tasks import Sentence, Source, TextTask
from citerec.write.writers.base import WriterPart, targets_of
from citerec.write.writers.extractive import END, ExtractiveWriter, extractive, source_sentences, uncited


def documents(task: TextTask) -> list[tuple[tuple[int, ...], Source]]:
    """What sentences are taken from, each with its attributions: the citing paper if it is given, then the sources.

    The citing paper has no number: it cites, and is not cited.
    """
    own = [((), task.citing_source)] if task.citing_source else []
    return [*own, *(((number,), source) for number, source in enumerate(task.sources))]


def all_sentences(task: TextTask, each: int | None = None) -> list[Sentence]:
    """The first sentences of each document (None: all): LEAD of OARelatedWork, EXT-LEAD of CiteSum for one source."""
    taken = ((attributions, source_sentences(source)[:each]) for attributions, source in documents(task))
    return [Sentence(sentence, attributions) for attributions, sentences in taken for sentence in sentences]


def cited(sentence: Sentence, _task: TextTask) -> str:
    """A sentence with its citation before the full stop: "… [0]."; its own citations are left out."""
    text, stop, closing, _ = END.split(uncited(sentence.text), maxsplit=1)
    citations = "".join(f" [{number}]" for number in sentence.attributions)
    return f"{text}{closing}{citations}{stop or '.'}"


def oracle(
    sentences: Sequence[str],
    targets: Sequence[str],
    kinds: Sequence[int] = (2,),
    *,
    most: int = 0,
    stemming: bool = False,
) -> list[int]:
    """The numbers of the sentences whose ROUGE against the most similar target is highest, in their order.

    It adds the sentence that raises ROUGE F1 most, until none does: Greedy Oracle (Nallapati et al., AAAI 2017, section
    3.1.1), by ROUGE-2 as in OARelatedWork, section 6.1.2. With `most` 1 it is EXT-ORACLE. CiteSum (Mao et al. 2022,
    section 3.1) uses ROUGE-2; the authors of SciTLDR, whose published row CiteSum repeats, used ROUGE-1.

    Args:
        sentences: The sentences to choose from.
        targets: The texts to compare with.
        kinds: The lengths of n-grams. Later kinds break ties of the first; then the order of the sentences does.
        most: How many sentences it chooses at most; 0 for as many as help.
        stemming: Whether words are stemmed.
    """
    tokens = tokens_of(sentences, stemming=stemming)

    def choose(target: Sequence[str]) -> tuple[tuple[float, ...], list[int]]:
        reached, chosen = (0.0,) * len(kinds), list[int]()
        for _ in range(min(most or len(sentences), len(sentences))):
            text = [token for number in chosen for token in tokens[number]]
            scores = list(zip(*(grown_rouge(text, tokens, target, n).tolist() for n in kinds), strict=True))
            best = max((number for number in range(len(sentences)) if number not in chosen), key=scores.__getitem__)
            if scores[best] <= reached:
                break
            reached = scores[best]
            chosen.append(best)
        return reached, chosen

    of_targets = map(choose, tokens_of(targets, stemming=stemming))
    return sorted(max(of_targets, key=lambda choice: choice[0])[1])


def oracle_writer(name: str, kinds: Sequence[int], *, most: int = 0, stemming: bool = False) -> WriterPart:
    """The writer of what `oracle` chooses; a WriterError if a task has no target. If no sentence helps, the first."""

    def pick(task: TextTask) -> list[Sentence]:
        targets, candidates = targets_of(task), all_sentences(task)
        numbers = oracle([one.text for one in candidates], targets, kinds, most=most, stemming=stemming)
        return [candidates[number] for number in numbers] or candidates[:most]

    settings = {"by": f"rouge{kinds[0]}", "stemming": stemming}
    return extractive(ExtractiveWriter(name, pick, is_oracle=True, settings=settings))
