"""Markdown and Quarto drafts: places are `[@?]`, `@TODO` and `<REF>`."""

import re
from pathlib import Path

from citerec.drafts.base import Source, Writer, is_missing

# Every pattern is linear: what repeats is bounded by what cannot be inside of it.
_HIDDEN = (
    r"(?P<hidden>^(?P<fence>```+|~~~+)[^\n]*\n(?:(?!(?P=fence))[^\n]*\n)*(?:(?P=fence)[^\n]*)?"
    r"|<!--(?:[^-]|-(?!->))*-->|`[^`\n]+`|\$\$[^$]+\$\$|(?<!\\)\$[^$\n]+\$|^#{1,6} [^\n]*)"
)
_GROUP = r"\[(?P<group>[^\[\]\n]*@[^\[\]\n]*)\]"
_BARE = r"(?<![\w@])@(?P<bare>\?+|\w(?:[\w:.#$%&+?<>~/-]*\w)?)"
_TOKEN = re.compile(f"{_HIDDEN}|{_GROUP}|{_BARE}|(?P<blank>\\n[ \\t\\r]*\\n)", re.MULTILINE)
_KEY = re.compile(r"@([^\s,;\]]*)")
_FRONT = re.compile(r"\A---[ \t]*\r?\n(?P<fields>(?:(?!---|\.\.\.)[^\n]*\n)*)(?:---|\.\.\.)[^\n]*")
_TITLE = re.compile(r"""^title:\s*["']?(?P<title>[^\n]*?)["']?\s*$""", re.MULTILINE)


def read_markdown(path: Path, text: str) -> Writer:
    """The paragraphs of a Markdown file."""
    writer, source, at = Writer(), Source(path, text), 0
    if front := _FRONT.match(text):
        title = _TITLE.search(front["fields"])
        writer.title, at = title["title"] or None if title else None, front.end()
    for token in _TOKEN.finditer(text, at):
        writer.text(source, at, token.start())
        at = token.end()
        if token["hidden"] is not None:
            writer.add(" ")
        elif token["blank"] is not None:
            writer.end_paragraph()
        else:
            keys = [token["bare"]] if token["bare"] is not None else _KEY.findall(token["group"])
            known = [key for key in keys if not is_missing(key)]
            if known:
                writer.add(f"[{'; '.join(f'@{key}' for key in known)}]")
            if len(known) < len(keys):
                writer.add(source.place(token.start(), token.end()))
    writer.text(source, at, len(text))
    return writer
