"""Markdown and Quarto drafts: places are `[@?]`, `@TODO` and `<REF>`."""

import re
from pathlib import Path

from citerec.drafts.base import MARKS, Draft, Form, Source, Writer, is_missing, read_tokens

# Every pattern is linear: what repeats is bounded by what cannot be inside of it.
_HIDDEN = (
    r"(?P<hidden>^(?P<fence>`{3,}+|~{3,}+)[^\n]*\n(?:(?!(?P=fence))[^\n]*\n)*(?:(?P=fence)[^\n]*)?"
    r"|<!--(?:[^-]|-(?!->))*+(?:-->|\Z)|`[^`\n]+`|\$\$[^$]+\$\$|(?<!\\)\$[^$\n]+\$)|^#{1,6} (?P<heading>[^\n]*)"
)
_GROUP = r"\[(?P<group>[^\[\]\n@]*@[^\[\]\n]*)\]"
_BARE = r"(?<![\w@])@(?P<bare>\?+|\w(?:[\w:.#$%&+?<>~/-]*\w)?)"
_REST = rf"{_GROUP}|{_BARE}|(?P<blank>\n[ \t\r]*\n)"
_TOKEN = re.compile(f"{_HIDDEN}|{_REST}", re.MULTILINE)
_OF_DOCUMENT = re.compile(rf"^(?:# (?P<heading>[^\n]*)|% (?P<title>[^\n]*))|{_REST}", re.MULTILINE)
_KEY = re.compile(r"@([^\s,;\]]*)")
_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(?P<fields>(?:(?!---|\.\.\.)[^\n]*\n)*)(?:---|\.\.\.)[^\n]*")
_BRACKETS, _NARRATIVE = Form("[@", "]", "; @"), Form("@", "", " and @")


def read_markdown(path: Path, text: str, marks: re.Pattern[str] = MARKS) -> Draft:
    """The draft in a Markdown file."""
    writer, source, front = Writer(marks), Source(path, text), _FRONT.match(text)
    if front:
        _front(writer, front["fields"], path)

    def take(token: re.Match[str]) -> bool:
        if token["hidden"] is None:
            _citation(writer, source, token)
        return token["hidden"] is None

    read_tokens(writer, source, _TOKEN, take, front.end() if front else 0)
    return writer.draft(_BRACKETS, _NARRATIVE)


def read_document(path: Path, text: str, marks: re.Pattern[str] = MARKS) -> Draft:
    """The draft in a Word or OpenDocument text: its citations are those of Markdown, all else is running text."""
    writer, source = Writer(marks), Source(path, text)

    def take(token: re.Match[str]) -> bool:
        if token["title"] is None:
            _citation(writer, source, token)
        else:
            writer.title = token["title"].strip() or None
        return True

    read_tokens(writer, source, _OF_DOCUMENT, take)
    return writer.draft(_BRACKETS, _NARRATIVE)


def _citation(writer: Writer, source: Source, token: re.Match[str]) -> None:
    keys = [token["bare"]] if token["bare"] is not None else _KEY.findall(token["group"])
    if cited_keys := [key for key in keys if not is_missing(key)]:
        shown = f"[{'; '.join(f'@{key}' for key in cited_keys)}]"
        writer.add(source.citation(cited_keys, *token.span(), shown))
    if len(cited_keys) == len(keys):
        return
    form = _NARRATIVE if source.is_spoken(token.start()) else _BRACKETS
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
