"""Org drafts: places are `[cite:@?]` and the marks of all drafts."""

import re
from pathlib import Path

from citerec.drafts.base import MARKS, Draft, Form, Source, Writer, is_missing, read_tokens

# Every pattern is linear: what repeats is bounded by what cannot be inside of it.
_TOKEN = re.compile(
    r"(?P<hidden>^[ \t]*+\#\+begin_(?P<block>src|example|export|comment)\b(?:(?!\#\+end_(?P=block))[\s\S])*+"
    r"(?:\#\+end_(?P=block)|\Z)|^[ \t]*+\#(?!\+)[^\n]*+|~[^~\n]*+~|(?<![\w])=[^=\n]++=(?![\w])|\$[^$\n]++\$"
    r"|\\\[(?:(?!\\[\[\]])[\s\S])*+\\\]|\\\((?:(?!\\[()])[^\n])*+\\\))"
    r"|^[ \t]*+\#\+(?P<name>\w++):[ \t]*+(?P<value>[^\n]*+)"
    r"|^\*++[ \t]++(?P<heading>[^\n]*+)"
    r"|\[cite(?P<style>/[\w/-]*+)?:(?P<group>[^\[\]]*+)\]"
    r"|(?P<blank>\n[ \t\r]*\n)",
    re.MULTILINE | re.IGNORECASE,
)
_KEY = re.compile(r"@([^\s,;\]]*)")
_FORM = Form("[cite:@", "]", ";@")


def read_org(path: Path, text: str, marks: re.Pattern[str] = MARKS) -> Draft:
    """The draft in an Org file."""
    writer, source = Writer(marks), Source(path, text)

    def take(token: re.Match[str]) -> bool:
        if token["name"] is not None:
            writer.end_paragraph()
            _keyword(writer, path, token["name"].lower(), token["value"].strip())
        elif token["group"] is not None:
            _citation(writer, source, token)
        else:
            return False
        return True

    read_tokens(writer, source, _TOKEN, take)
    return writer.draft(_FORM, Form("[cite/t:@", "]", ";@"))


def _keyword(writer: Writer, path: Path, name: str, value: str) -> None:
    if name == "title":
        writer.title = value or None
    elif name == "bibliography" and value:
        writer.bibliographies.append(path.parent / value.strip('"'))


def _citation(writer: Writer, source: Source, token: re.Match[str]) -> None:
    found = list(_KEY.finditer(token["group"]))
    keys = [one[1] for one in found if not is_missing(one[1])]
    if keys:
        writer.add(source.citation(keys, *token.span(), f"[{'; '.join(f'@{key}' for key in keys)}]"))
    if len(keys) < len(found):
        group, first = token["group"], next(one for one in found if is_missing(one[1]))
        before, after = group[: first.start()], group[first.end() :]
        rest = "".join(f";@{one[1]}" for one in found if one.start() > first.start() and not is_missing(one[1]))
        after = rest if any(is_missing(one[1]) for one in found[found.index(first) + 1 :]) else after
        writer.add(source.place(*token.span(), Form(f"[cite{token['style'] or ''}:{before}", f"{after}]", ";", "@")))
