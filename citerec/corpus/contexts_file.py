"""Files of contexts (docs/formats.md) read as citances of the papers that they cite."""

import hashlib
from collections.abc import Mapping
from typing import Any

from citerec.corpus.base import json_lines
from citerec.corpus.json_lines import RecordError
from citerec.corpus.s2ag import known_intents
from citerec.corpus.values import optional_id, read_list, read_text, read_year
from citerec.records import MARKER, Citation, citing_name


def parse_citances(record: Mapping[str, Any]) -> list[Citation]:
    """The citations of a context; one without a cited paper if it cites none. RecordError if it is not a context."""
    text = read_text(record, "text")
    if not text or text.count(MARKER) != 1:
        raise RecordError(f"not a context: its text holds {(text or '').count(MARKER)} {MARKER}, where one should be")
    name = citing_name(optional_id(record, "citing_id"), read_text(record, "citing_key"))
    citing_id = optional_id({"citing_key": name}, "citing_key")
    if citing_id is None:
        raise RecordError("citing_id and citing_key are missing: the paper of the sentence is unknown")
    # This distinguishes several sentences of one paper about another.
    citation_id = optional_id(record, "context_id") or hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
    cited = [optional_id({"cited_ids": value}, "cited_ids") for value in read_list(record, "cited_ids")]
    return [
        Citation(
            citing_id=citing_id,
            cited_id=cited_id,
            contexts=(text,),
            intents=(known_intents([record.get("intent")]),),
            citation_id=citation_id,
            citing_year=read_year(record, "citing_year"),
        )
        for cited_id in dict.fromkeys(value for value in cited if value) or [None]
    ]


CONTEXTS = json_lines("contexts", parse_citances)
