"""Typst drafts: places are `@?`, `#cite(<?>)` and the marks of all drafts."""

import re
from pathlib import Path

from citerec.drafts.base import MARKS, Draft, Form, Source, Writer, is_missing, read_tokens

# Every pattern is linear: what repeats is bounded by what cannot be inside of it.
_TOKEN = re.compile(
    r"(?P<hidden>(?P<fence>`{3,})(?:(?!(?P=fence))[\s\S])*+(?:(?P=fence)|\Z)|(?<!\\)`[^`\n]*+`|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)"
    r"|(?<![:\\])//[^\n]*+|(?<!\\)\$(?:[^$\\]|\\[\s\S])*+\$|<(?!REF>)[\w:.-]++>)"
    r"|^[ \t]*+=++[ \t]++(?P<heading>[^\n]*+)"
    r"|#bibliography\((?P<bibliography>[^()]*+(?:\([^()]*+\))?[^()]*+)\)"
    r"|#cite\(\s*+(?:<(?P<cite>[^<>\n]*+)>|label\(\"(?P<label>[^\"\n]*+)\"\))(?P<rest>[^()]*+)\)"
    r"|(?<![\w@\\])@(?P<key>\?++|\w(?:[\w:.-]*\w)?)(?P<supplement>\[[^\[\]\n]*+\])?"
    r"|\#(?:set|show|import|let|include)\b[^\n]*+"
    r"|(?P<blank>\n[ \t\r]*\n)",
    re.MULTILINE,
)
_LABEL = re.compile(r"(?<!cite\()<([\w:.-]+)>")
_NAMED = re.compile(r"\"([^\"\n]+\.bib)\"")
_TITLE = re.compile(r"#set\s+document\([^()]*?title:\s*(?:\"([^\"\n]*)\"|\[([^\[\]\n]*)\])")
_FORM = Form("#cite(<", ">)", ">) #cite(<")  # also right within a word


def read_typst(path: Path, text: str, marks: re.Pattern[str] = MARKS) -> Draft:
    """The draft in a Typst file."""
    writer, source, labels = Writer(marks), Source(path, text), set(_LABEL.findall(text))
    if title := _TITLE.search(text):
        writer.title = title[1] or title[2]

    def take(token: re.Match[str]) -> bool:
        key = next((token[name] for name in ("key", "cite", "label") if token[name] is not None), None)
        if token["bibliography"] is not None:
            writer.bibliographies += [path.parent / name for name in _NAMED.findall(token["bibliography"])]
        elif key is None or key in labels:  # a label is what a cross-reference names
            return False
        elif is_missing(key):
            writer.add(source.place(*token.span(), _form(token)))
        else:
            writer.add(source.citation([key], *token.span(), f"[@{key}]"))
        return True

    read_tokens(writer, source, _TOKEN, take)
    return writer.draft(_FORM, Form("#cite(<", '>, form: "prose")', '>, form: "prose") #cite(<'))


def _form(token: re.Match[str]) -> Form:
    """What the citation that replaces a place looks like: that of the place."""
    if token["key"] is None:
        return Form("#cite(<", f">{token['rest']})", f">{token['rest']}) #cite(<")
    return Form("@", token["supplement"] or "", " @")
