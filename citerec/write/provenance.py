"""How a task is known again among those that a writer learned from."""

from citerec.contexts.learnt import Learnt, digest, folded
from citerec.files.hashing import hash_sample
from citerec.write.tasks import TextTask


def subjects(task: TextTask) -> list[int]:
    """What a task is about: the citing paper if it is known, else the cited papers together, in any order.

    Returns:
        A number for each name of it, ids before texts. Tasks that share a number are about the same papers.
    """
    known = task.extra.get("citing_id")
    citing_id = "" if known is None else str(known)
    if citing_id or task.citing:
        ids, texts = {citing_id}, {folded(task.citing)}
    else:
        ids, texts = {source.paper_id or "" for source in task.sources}, {folded(one.text) for one in task.sources}
    # Ids tell papers apart only where each has one.
    names = (("id", *sorted(ids if "" not in ids else ())), ("text", *sorted(texts - {""})))
    return [hash_sample(0, *name) for name in names if len(name) > 1]


def task_digests(task: TextTask) -> list[str]:
    """Digests of a task's targets, and of what it is about."""
    targets = [digest("text", folded(target)) for target in task.targets if target.strip()]
    return targets + [digest("about", str(number)) for number in subjects(task)]


def served_in_training(task: TextTask, learnt: Learnt) -> bool:
    """Whether a writer learned from a task, or was tuned on it, or on one with the same target or subject."""
    digests = task_digests(task)
    return not (learnt.learnt_from.isdisjoint(digests) and learnt.tuned_on.isdisjoint(digests))
