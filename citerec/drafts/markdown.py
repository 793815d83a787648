"""Markdown and Quarto drafts: places are `[@?]`, `@TODO` and `<REF>`."""

import re
from pathlib import Path

from citerec.drafts.base import MARKS, Draft, Form, Source, Writer, is_missing

# Every pattern is linear: what repeats is bounded by what cannot be inside of it.
_HIDDEN = (
    r"(?P<hidden>^(?P<fence>`{3,}+|~{3,}+)[^\n]*\n(?:(?!(?P=fence))[^\n]*\n)*(?:(?P=fence)[^\n]*)?"
    r"|<!--(?:[^-]|-(?!->))*+(?:-->|\Z)|`[^`\n]+`|\$\$[^$]+\$\$|(?<!\\)\$[^$\n]+\$|^#{1,6} [^\n]*)"
)
_GROUP = r"\[(?P<group>[^\[\]\n@]*@[^\[\]\n]*)\]"
_BARE = r"(?<![\w@])@(?P<bare>\?+|\w(?:[\w:.#$%&+?<>~/-]*\w)?)"
_TOKEN = re.compile(f"{_HIDDEN}|{_GROUP}|{_BARE}|(?P<blank>\\n[ \\t\\r]*\\n)", re.MULTILINE)
_KEY = re.compile(r"@([^\s,;\]]*)")
_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(?P<fields>(?:(?!---|\.\.\.)[^\n]*\n)*)(?:---|\.\.\.)[^\n]*")
_BRACKETS, _NARRATIVE = Form("[@", "]", "; @"), Form("@", "", " and @")
# What stands before a citation that is a word of its sentence: "@? showed", "shown by @?".
_SPOKEN = re.compile(
    r"(?:\A|\n[ \t\r]*\n|[.!?]\s+|\b(?:by|of|from|see|following|to|with|than|both)\s+)\s*\Z", re.IGNORECASE
)
_BEFORE = 40  # characters that are looked at for it


def read_markdown(path: Path, text: str, marks: re.Pattern[str] = MARKS) -> Draft:
    """The draft in a Markdown file."""
    writer, source, at = Writer(marks), Source(path, text), 0
    if front := _FRONT.match(text):
        _front(writer, front["fields"], path)
        at = front.end()
    for token in _TOKEN.finditer(text, at):
        writer.text(source, at, token.start())
        at = token.end()
        if token["hidden"] is not None:
            if token[0].startswith("#"):
                writer.section = token[0].strip("# \r")
            writer.add(" ")
        elif token["blank"] is not None:
            writer.end_paragraph()
        else:
            _citation(writer, source, token)
    writer.text(source, at, len(text))
    return writer.draft(_BRACKETS)


def _citation(writer: Writer, source: Source, token: re.Match[str]) -> None:
    keys = [token["bare"]] if token["bare"] is not None else _KEY.findall(token["group"])
    if cited_keys := [key for key in keys if not is_missing(key)]:
        shown = f"[{'; '.join(f'@{key}' for key in cited_keys)}]"
        writer.add(source.citation(cited_keys, *token.span(), shown))
    if len(cited_keys) == len(keys):
        return
    form = _NARRATIVE if _SPOKEN.search(source.text, max(0, token.start() - _BEFORE), token.start()) else _BRACKETS
    if token["bare"] is None:
        before, after = _around(token["group"])
        form = Form(f"[{before}", f"{after}]", "; ", "@")
    writer.add(source.place(*token.span(), form))


def _around(group: str) -> tuple[str, str]:
    """What stands around the missing keys of a group: "see @croft; " and ", p. 3" in `see @croft; @?, p. 3`."""
    matches = [match for match in _KEY.finditer(group) if is_missing(match[1])]
    after, at = "", matches[0].end()
    for match in matches[1:]:  # a further missing key goes, with the separator and the words before it
        between = group[at : match.start()]
        after += between.rpartition(";")[0] or between.rstrip().removesuffix(";")
        at = match.end()
    return group[: matches[0].start()], after + group[at:]


def _front(writer: Writer, fields: str, path: Path) -> None:
    """Takes title and bibliographies from the front matter."""
    import yaml

    try:
        metadata = yaml.safe_load(fields)
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError):  # such as a date in month 13
        return  # pandoc tells what is wrong with it
    title, named = (metadata.get(name) if isinstance(metadata, dict) else None for name in ("title", "bibliography"))
    writer.title = title if isinstance(title, str) else None
    listed = named if isinstance(named, list) else [named]
    writer.bibliographies += [
        path.parent / one for one in listed if isinstance(one, str) and one.strip() and "\0" not in one
    ]
