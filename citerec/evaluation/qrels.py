"""Qrels in place of contexts: which papers each context cites, and nothing else."""

from collections.abc import Mapping
from typing import Any

from citerec.errors import InputError
from citerec.records import MARKER, Context
from citerec.retrieve.run import is_a

_COLUMNS = ("context_id", "paper_id")


def contexts_of_qrels(value: Any) -> list[Context] | None:
    """Turns qrels of any kind into contexts without text; None for anything else.

    Built-in systems cannot answer such contexts, and `evaluate` refuses them: they are for runs.

    Args:
        value: `ranx.Qrels`, a DataFrame with the columns `context_id` and `paper_id` (and `relevance`, if some rows
            hold 0), or {context id: {paper id: relevance}}.

    Raises:
        InputError: A column is missing, or a context has no relevant paper.
    """
    if is_a(value, "ranx.Qrels"):
        value = value.to_dict()
    elif is_a(value, "pandas.DataFrame"):
        for column in _COLUMNS:
            if column not in value.columns:
                raise InputError(
                    f"the frame has no column {column!r}", f"Qrels have the columns {', '.join(_COLUMNS)}."
                )
        relevance = value["relevance"] if "relevance" in value.columns else [1] * len(value)
        found: dict[str, dict[str, int]] = {}
        for context_id, paper_id, grade in zip(value["context_id"], value["paper_id"], relevance, strict=True):
            found.setdefault(str(context_id), {})[str(paper_id)] = grade
        value = found
    if not isinstance(value, Mapping):
        return None
    contexts = []
    for context_id, grades in value.items():
        cited = tuple(str(paper_id) for paper_id, grade in grades.items() if grade > 0)
        if not cited:
            raise InputError(f"the context {context_id!r} has no relevant paper", "Leave it out of the qrels.")
        contexts.append(Context(text=MARKER, context_id=str(context_id), cited_ids=cited))
    return contexts
