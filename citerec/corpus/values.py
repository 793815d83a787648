"""Reading single values out of records whose fields may be null, missing, or of another type than documented.

Each function raises RecordError if a value is of another type.
"""

from collections.abc import Mapping
from types import UnionType
from typing import Any, TypeVar

from citerec.corpus.json_lines import RecordError
from citerec.corpus.plain import plain
from citerec.files.text import one_line, printable

LONGEST_ID = 512
LAST_YEAR = 9999


Value = TypeVar("Value")


def _value(record: Mapping[str, Any], key: str, of: type[Value]) -> Value | None:
    """The value of a key; None if it is null or missing."""
    value = record.get(key)
    if value is None or isinstance(value, of):
        return value
    raise RecordError(f"{key} is a {type(value).__name__}, not a {of.__name__}: {value!r:.60}")


def read_id(record: Mapping[str, Any], key: str) -> str:
    """A required identifier: whole numbers and non-empty strings become a string."""
    value = optional_id(record, key)
    if value is None:
        raise RecordError(f"{key} is missing")
    return value


def optional_id(record: Mapping[str, Any], key: str) -> str | None:
    """An identifier of up to 512 characters, without white space and control characters; None if there is none."""
    value = _identifier(record, key)
    # White space would break the lines of a TREC file, and Lucene limits the length of terms.
    if value and (len(value) > LONGEST_ID or not value.isprintable() or " " in value):
        raise RecordError(f"{key} has white space, control characters or over {LONGEST_ID} characters: {value!r:.60}")
    return value


def read_external_id(record: Mapping[str, Any], key: str) -> str | None:
    """An identifier of another scheme, without control characters; None if the record has none."""
    value = _identifier(record, key)
    return printable(value).strip() or None if value else None


def _identifier(record: Mapping[str, Any], key: str) -> str | None:
    value = record.get(key)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return (_value(record, key, str) or "").strip() or None


def read_text(record: Mapping[str, Any], key: str) -> str | None:
    """A text with white space folded and control characters out, or None if it is null, missing or blank."""
    value = _value(record, key, str)
    return one_line(value) or None if value else None


def read_plain(record: Mapping[str, Any], key: str) -> str | None:
    """A title, venue or name as `read_text` reads it, without entities, tags and LaTeX: `citerec.corpus.plain`."""
    text = read_text(record, key)
    return plain(text) or None if text else None


def read_year(record: Mapping[str, Any], key: str) -> int | None:
    """A year from 0 to 9999, or None if it is null or missing."""
    year = read_count(record, key)
    if year is not None and year > LAST_YEAR:
        raise RecordError(f"{key} is not a year: {year}")
    return year


def read_count(record: Mapping[str, Any], key: str) -> int | None:
    """A whole number from 0, also written as "2005" or 2005.0; None if it is null or missing."""
    value = record.get(key)
    if value is None or value == "":
        return None
    try:
        number = -1.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = -1.0
    if not number.is_integer() or not 0 <= number < 2**31:
        raise RecordError(f"{key} is not a whole number from 0: {value!r:.60}")
    return int(number)


def read_object(record: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """An object; empty if it is null or missing."""
    return _value(record, key, dict) or {}


def read_list(record: Mapping[str, Any], key: str, of: type | UnionType = object) -> list[Any]:
    """A list of items of one type; empty if it is null or missing."""
    items = _value(record, key, list) or []
    for item in items:
        if not isinstance(item, of):
            raise RecordError(f"{key} holds a {type(item).__name__}: {item!r:.60}")
    return items


def read_strings(record: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """The strings of a list, each as `read_text` gives a text, without nulls, blanks and repeats."""
    items = (one_line(item) for item in read_list(record, key, str | None) if item)
    return tuple(dict.fromkeys(filter(None, items)))
