"""Sentences that are most like a target: Greedy Oracle and EXT-ORACLE. They are upper bounds, not systems."""

from collections.abc import Sequence

from citerec.write.metrics import grown_rouge, tokens_of
from citerec.write.tasks import Sentence, TextTask
from citerec.write.writers.base import WriterPart, targets_of
from citerec.write.writers.extractive import ExtractiveWriter, all_sentences, extractive


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
