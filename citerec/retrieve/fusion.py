"""Several ranked lists as one."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from citerec.records import Reason
from citerec.retrieve.protocol import Candidate
from citerec.settings import Fusion

_REASONS = {"lucene": "words", "dense": "vectors"}


def fuse(
    lists: Mapping[str, Sequence[Candidate]], settings: Fusion, k: int | None = None, *, explain: bool = False
) -> list[Candidate]:
    """The k best candidates of several lists, best first; ties go by paper id.

    `rrf` is reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009): `Σ_list w_list / (k + rank)`.
    `weighted` scales the scores of each list to 0–1 first: `Σ_list w_list · (score − least) / (most − least)`. What is
    not in a list gets nothing for it.

    Args:
        lists: Candidates by the name of the retriever, each best first.
        settings: The method, and the weight of each list by its name.
        k: How many; all by default.
        explain: Whether each candidate is to say what each list gave it.
    """
    scores: dict[str, float] = defaultdict(float)
    reasons: dict[str, list[Reason]] = defaultdict(list)
    found: dict[str, Candidate] = {}
    for name, candidates in lists.items():
        weight = getattr(settings, name)
        for candidate, share in zip(candidates, _shares(candidates, settings), strict=True):
            scores[candidate.paper_id] += weight * share
            if explain:
                reasons[candidate.paper_id].append(Reason(_REASONS[name], weight * share))
            known = found.get(candidate.paper_id)
            found[candidate.paper_id] = candidate if known is None else _both(known, candidate)
    ordered = sorted(scores.items(), key=lambda item: (-item[1], item[0].encode()))
    return [
        replace(
            found[paper_id],
            score=score,
            signals={**found[paper_id].signals, "fused": score},
            reasons=strongest(reasons.get(paper_id, ())),
        )
        for paper_id, score in ordered[:k]
    ]


def strongest(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    """Reasons that say something, the strongest first, whichever way they pull."""
    return tuple(sorted((one for one in reasons if one.score), key=lambda one: (-abs(one.score), one.name)))


def _shares(candidates: Sequence[Candidate], settings: Fusion) -> list[float]:
    if not candidates:
        return []
    if settings.method == "rrf":
        return [1 / (settings.k + rank) for rank in range(1, len(candidates) + 1)]
    most, least = candidates[0].score, candidates[-1].score
    # One score for all: all are best.
    return [(candidate.score - least) / (most - least) if most > least else 1.0 for candidate in candidates]


def _both(first: Candidate, second: Candidate) -> Candidate:
    return replace(first, citance=first.citance or second.citance, signals={**first.signals, **second.signals})
