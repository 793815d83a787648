"""Drafts that are read between tokens: Markdown, Quarto, Word and OpenDocument texts, Org, Typst.

Besides the marks of all drafts, places are `[@?]` and `@TODO`; in Org `[cite:@?]`, in Typst `@?` and `#cite(<?>)`.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from citerec.drafts.base import Draft, Form, Source, Writer, is_missing

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

_OF_ORG = re.compile(
    r"(?P<hidden>^[ \t]*+\#\+begin_(?P<block>src|example|export|comment)\b(?:(?!\#\+end_(?P=block))[\s\S])*+"
    r"(?:\#\+end_(?P=block)|\Z)|^[ \t]*+\#(?!\+)[^\n]*+|~[^~\n]*+~|(?<![\w])=[^=\n]++=(?![\w])|\$[^$\n]++\$"
    r"|\\\[(?:(?!\\[\[\]])[\s\S])*+\\\]|\\\((?:(?!\\[()])[^\n])*+\\\))"
    r"|^[ \t]*+\#\+(?P<name>\w++):[ \t]*+(?P<value>[^\n]*+)"
    r"|^\*++[ \t]++(?P<heading>[^\n]*+)"
    r"|\[cite(?P<style>/[\w/-]*+)?:(?P<group>[^\[\]]*+)\]"
    r"|(?P<blank>\n[ \t\r]*\n)",
    re.MULTILINE | re.IGNORECASE,
)

_OF_TYPST = re.compile(
    r"(?P<hidden>(?P<fence>`{3,})(?:(?!(?P=fence))[\s\S])*+(?:(?P=fence)|\Z)|(?<!\\)`[^`\n]*+`|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)"
    r"|(?<![:\\])//[^\n]*+|(?<!\\)\$(?:[^$\\]|\\[\s\S])*+\$|<(?!REF>)[\w:.-]++>)"
    r"|^[ \t]*+=++[ \t]++(?P<heading>[^\n]*+)"
    r"|#bibliography\((?P<bibliography>[^()]*+(?:\([^()]*+\))?[^()]*+)\)"
    r"|#cite\(\s*+(?:<(?P<cite>[^<>\n]*+)>|label\(\"(?P<label>[^\"\n]*+)\"\))(?P<rest>[^()]*+)\)"
    r"|(?<![\w@\\])@(?P<key>\?++|\w(?:[\w:.-]*\w)?)(?:(?P<supplement>\[[^\[\]\n]*+\])|(?P<joined>(?=[:.-]*+\w)))?"
    r"|\#(?:set|show|import|let|include)\b[^\n]*+"
    r"|(?P<blank>\n[ \t\r]*\n)",
    re.MULTILINE,
)
_LABEL_NAME = re.compile(r"[\w-](?:[\w:.-]*[\w-])?")
_LABEL = re.compile(r"(?<!cite\()<([\w:.-]+)>")
_NAMED = re.compile(r"\"([^\"\n]+\.bib)\"")
_TITLE = re.compile(r"#set\s+document\([^()]*?title:\s*(?:\"([^\"\n]*)\"|\[([^\[\]\n]*)\])")


def read_markdown(path: Path, text: str, marks: re.Pattern[str]) -> Draft:
    """The draft in a Markdown file."""
    writer, front = Writer(marks), _FRONT.match(text)
    if front:
        _front(writer, front["fields"], path)
    return _read_pandoc(writer, Source(path, text), _TOKEN, front.end() if front else 0)


def read_document(path: Path, text: str, marks: re.Pattern[str]) -> Draft:
    """The draft in a Word or OpenDocument text: its citations are those of Markdown, all else is running text."""
    return _read_pandoc(Writer(marks), Source(path, text), _OF_DOCUMENT)


def _read_pandoc(writer: Writer, source: Source, tokens: re.Pattern[str], at: int = 0) -> Draft:
    """The draft in a text with the citations of pandoc."""

    def take(token: re.Match[str]) -> bool:
        named = token.groupdict()
        if named.get("hidden") is not None:
            return False
        if named.get("title") is not None:
            writer.title = token["title"].strip() or None
        else:
            _citation(writer, source, token)
        return True

    read_tokens(writer, source, tokens, take, at)
    return writer.draft(_BRACKETS, _NARRATIVE)


def read_org(path: Path, text: str, marks: re.Pattern[str]) -> Draft:
    """The draft in an Org file."""
    writer, source = Writer(marks), Source(path, text)

    def take(token: re.Match[str]) -> bool:
        if token["name"] is not None:
            writer.end_paragraph()
            name, value = token["name"].lower(), token["value"].strip()
            if name == "title":
                writer.title = value or None
            elif name == "bibliography" and value:
                writer.bibliographies.append(path.parent / value.strip('"'))
        elif token["group"] is not None:
            if _lacks(writer, source, token, _KEY.findall(token["group"])):
                before, after = _around(token["group"])  # of several missing keys the first is the place
                form = Form(f"[cite{token['style'] or ''}:{before}", f"{after}]", ";", "@")
                writer.add(source.place(*token.span(), form))
        else:
            return False
        return True

    read_tokens(writer, source, _OF_ORG, take)
    return writer.draft(Form("[cite:@", "]", ";@"), Form("[cite/t:@", "]", ";@"))


def read_typst(path: Path, text: str, marks: re.Pattern[str]) -> Draft:
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
        elif _lacks(writer, source, token, [key]):
            writer.add(source.place(*token.span(), _typst_form(token)))
        return True

    read_tokens(writer, source, _OF_TYPST, take)
    form = Form("#cite(", ")", ") #cite(", written=_typst_label)  # also right within a word
    spoken = Form("#cite(", ', form: "prose")', ', form: "prose") #cite(', written=_typst_label)
    return writer.draft(form, spoken)


def read_tokens(
    writer: Writer, source: Source, tokens: re.Pattern[str], take: Callable[[re.Match[str]], bool], at: int = 0
) -> None:
    """Reads a text between tokens; of these a `heading` begins a section, and a `blank` line a paragraph.

    Args:
        writer: Collects what is read.
        source: The file.
        tokens: What is not running text, with groups of these names.
        take: Adds what any other token says; False if it says nothing.
        at: Where it begins.
    """
    for token in tokens.finditer(source.text, at):
        writer.text(source, at, token.start())
        at = token.end()
        if token["heading"] is not None:
            writer.end_paragraph()
            writer.section = token["heading"].strip("# \t\r") or None
        elif token["blank"] is not None:
            writer.end_paragraph()
        elif not take(token):
            writer.add(" ")
    writer.text(source, at, len(source.text))


def _lacks(writer: Writer, source: Source, token: re.Match[str], keys: Sequence[str]) -> bool:
    """Adds those keys of a citation that are not missing; whether one is."""
    cited = [key for key in keys if not is_missing(key)]
    if cited:
        writer.add(source.citation(cited, *token.span(), _BRACKETS(cited)))
    return len(cited) < len(keys)


def _citation(writer: Writer, source: Source, token: re.Match[str]) -> None:
    keys = [token["bare"]] if token["bare"] is not None else _KEY.findall(token["group"])
    if _lacks(writer, source, token, keys):
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
    fields_read = ("title", "author", "bibliography")
    title, authors, named = (metadata.get(name) if isinstance(metadata, dict) else None for name in fields_read)
    writer.title = title if isinstance(title, str) else None
    names = (one.get("name") if isinstance(one, dict) else one for one in _listed(authors))
    writer.authors += [one for one in names if isinstance(one, str)]
    listed = _listed(named)
    writer.bibliographies += [
        path.parent / one for one in listed if isinstance(one, str) and one.strip() and "\0" not in one
    ]


def _listed(value: Any) -> list[Any]:
    """The values of a field that has one or a list of them."""
    return value if isinstance(value, list) else [value]


def _typst_form(token: re.Match[str]) -> Form | None:
    """What the citation that replaces a place of Typst looks like: that of the place.

    None, for that of the draft, where a word follows at once: its letters would be taken for a part of the key.
    """
    if token["key"] is None:
        return Form("#cite(", f"{token['rest']})", f"{token['rest']}) #cite(", written=_typst_label)
    written = partial(_typst_reference, supplement=token["supplement"] or "")
    return Form("", "", " ", written=written) if token["joined"] is None else None


def _typst_reference(key: str, supplement: str) -> str:
    if _LABEL_NAME.fullmatch(key):
        return f"@{key}{supplement}"
    return f"#cite({_typst_label(key)}{f', supplement: {supplement}' if supplement else ''})"


def _typst_label(key: str) -> str:
    """A key as a label: Typst has names of letters, digits and some signs; DOIs as keys have others."""
    return f"<{key}>" if _LABEL_NAME.fullmatch(key) else f'label("{key}")'
