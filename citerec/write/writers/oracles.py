"""Extractive oracles: they look at the target. They are upper bounds of extractive writers, not systems."""

import functools
from collections.abc import Sequence
from typing import Literal

from citerec.errors import WriterError
from citerec.write.metrics.rouge import GreedyRouge, rouge
from citerec.write.tasks import TextTask
from citerec.write.writers.extractive import Picked, all_sentences, extractive


def ext_oracle(task: TextTask, by: Literal["rouge1", "rouge2"] = "rouge2", *, stemming: bool = False) -> list[Picked]:
    """EXT-ORACLE: the sentence with the highest ROUGE F1 against the most similar target.

    CiteSum (Mao et al. 2022, section 3.1) uses ROUGE-2; the authors of SciTLDR, whose published row CiteSum repeats,
    used ROUGE-1. Ties are broken by the other of the two, then by the order of the sources. A WriterError if the task
    has no target.
    """
    kinds = (by, "rouge1" if by == "rouge2" else "rouge2")

    def nearness(candidate: Picked) -> tuple[float, ...]:
        scores = (rouge(candidate.text, target, kinds=kinds, stemming=stemming) for target in targets)
        return max(tuple(score[kind].f1 for kind in kinds) for score in scores)

    targets = targets_of(task)
    return [max(candidates, key=nearness)] if (candidates := all_sentences(task)) else []


def greedy_oracle(task: TextTask) -> list[Picked]:
    """Greedy Oracle: adds the sentence that raises ROUGE-2 F1 most, until none does.

    The choice of Nallapati et al. (AAAI 2017, section 3.1.1), with ROUGE-2 as in OARelatedWork, section 6.1.2, against
    the target with the highest score. The sentences are in the order of the sources. A WriterError if the task has no
    target.
    """
    candidates = all_sentences(task)
    return [candidates[number] for number in greedy([candidate.text for candidate in candidates], targets_of(task))]


def greedy(sentences: list[str], targets: Sequence[str]) -> list[int]:
    """The numbers of the sentences that Greedy Oracle takes, in their order; targets as for `greedy_oracle`."""
    _, chosen = max((_greedy(sentences, target) for target in targets), key=lambda one: one[0])
    return sorted(chosen)


def _greedy(sentences: list[str], target: str) -> tuple[float, list[int]]:
    reached, chosen = 0.0, list[int]()
    growing = GreedyRouge(target, sentences)
    left = list(range(len(sentences)))
    while left:
        best = max(left, key=growing.f1_with)
        f1 = growing.f1_with(best)
        if f1 <= reached:
            break
        reached = f1
        growing.add(best)
        chosen.append(best)
        left.remove(best)
    return reached, chosen


def targets_of(task: TextTask) -> tuple[str, ...]:
    """The targets of a task, for writers that see them; a WriterError if it has none."""
    if not task.targets:
        raise WriterError(
            f"the oracle needs a target, and {task.task_id or 'the task'} has none",
            "It is an upper bound for tasks whose text is known: take another --writer.",
        )
    return task.targets


_by_rouge1 = functools.partial(ext_oracle, by="rouge1", stemming=True)
EXT_ORACLE = extractive("ext-oracle", ext_oracle, is_oracle=True, by="rouge2", stemming=False)
EXT_ORACLE_ROUGE1 = extractive("ext-oracle-rouge1", _by_rouge1, is_oracle=True, by="rouge1", stemming=True)
GREEDY_ORACLE = extractive("greedy-oracle", greedy_oracle, is_oracle=True, by="rouge2", stemming=False)
