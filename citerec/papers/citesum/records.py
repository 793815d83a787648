"""Published data sets of summaries as they come from the Hugging Face hub, as records of citerec's own shape.

| data set | text | summary | other fields | seen in |
|---|---|---|---|---|
| CiteSum | `src` | `tgt` | `paper_id`, `title`, `discipline` | the card of `yuningm/citesum` |
| XSum | `document` | `summary` | `id` | `xsum.py` of `EdinburghNLP/xsum` |
| Gigaword | `document` | `summary` | | the card of `Harvard/gigaword` |
"""

from collections.abc import Mapping
from typing import Any

from citerec.write.task_files import parse_task
from citerec.write.tasks import TextTask

_SHAPES = (("src", "tgt"), ("document", "summary"))
_OF_SOURCE = ("paper_id", "title")


class Summaries:
    """A text and its summary. In CiteSum a `paper_id` names the cited paper: it is no id of the task.

    It occurs as often as the paper is cited.
    """

    name = "summaries"

    def recognises(self, record: Mapping[str, Any]) -> bool:
        """Whether a record has one of these shapes."""
        return _shape_of(record) is not None

    def parse(self, record: Mapping[str, Any], default_id: str = "", *, sources_needed: bool = True) -> TextTask:
        """The record as a task; errors as for `parse_task`."""
        text, summary = _shape_of(record) or _SHAPES[0]
        rest = {name: value for name, value in record.items() if name not in (text, summary, "title")}
        paper = {name: record[name] for name in _OF_SOURCE if record.get(name) is not None}
        sources = {"sources": [paper]} if paper else {}
        own = {**rest, "input": record[text], "target": record[summary], **sources}
        return parse_task(own, default_id, sources_needed=sources_needed)


SUMMARIES = Summaries()


def _shape_of(record: Mapping[str, Any]) -> tuple[str, str] | None:
    if not record.keys().isdisjoint(("input", "source")):
        return None
    return next((shape for shape in _SHAPES if record.keys() >= set(shape)), None)
