"""Papers as an editor shows them: in a line, and in Markdown."""

import functools
import re
from collections.abc import Mapping, Sequence

from citerec.drafts.filling import support
from citerec.files.text import one_line
from citerec.records import Answer, Hit, Paper
from citerec.serve.lsp_drafts import Offer
from citerec.serve.untrusted import shown
from citerec.write.tldr import tldrs
from citerec.write.writers.base import Writer, default_writer, open_writer

_AUTHORS = 3
_START = 300  # characters of an abstract
_QUOTED = 240
_TITLE = 80  # characters of a title in a line
_REASONS = 3
_COUNTS = 0.1  # of a score: smaller reasons are not shown
_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|])")


def warm_up() -> None:
    """Loads what the first text needs, before someone waits for it."""
    _told(Paper("", abstract="One sentence. Another sentence."))


def in_line(paper: Paper) -> str:
    """Authors, year and venue of a paper."""
    names = ", ".join(paper.authors[:_AUTHORS]) + (" et al." if len(paper.authors) > _AUTHORS else "")
    return one_line(" · ".join(filter(None, (names, str(paper.year or ""), paper.venue))))


def action_title(offer: Offer) -> str:
    """What a code action that cites a paper is called."""
    return f"Cite {offer.key}: {shown(offer.paper.title or '(untitled)', _TITLE)}"


def documentation(offer: Offer, hit: Hit | None, known: Paper | None, titles: Mapping[str, str]) -> str:
    """A paper in Markdown: title, TLDR, the start of its abstract, why it is offered, and a sentence that supports it.

    Args:
        offer: The offer.
        hit: What the search said of it.
        known: The record of the index, if it has the paper.
        titles: Titles of papers that cite it, by id.
    """
    paper = known or offer.paper
    parts = [*_heading(paper), *_told(paper)]
    if hit and (reasons := [one.name for one in hit.reasons if one.score >= _COUNTS][:_REASONS]):
        parts.append(f"**Why:** {_plain(', '.join(reasons))}")
    elif hit and hit.matches:
        parts.append(f"**Why:** shares {_plain(', '.join(match.word for match in hit.matches[:5]))}")
    if hit and hit.citance:
        by = titles.get(hit.citance.citing_id) or hit.citance.citing_id
        parts.append(f"**Cited so:** “{_plain(shown(hit.citance.text, _QUOTED))}” ({_plain(by)})")
    elif hit and offer.context and (sentence := support(hit, offer.context)):
        parts.append(f"**It says:** “{_plain(shown(sentence, _QUOTED))}”")
    if offer.is_new:
        parts.append("*Not in your bibliography: its entry is added.*")
    return "\n\n".join(parts)


def about_key(offer: Offer, known: Paper | None, *, is_open: bool) -> str:
    """What is known of a key, in Markdown; `is_open` says whether there is an index to look in."""
    paper = known or offer.paper
    where = f"In the index: {known.paper_id}" if known else "Not in the index." if is_open else ""
    if known and known.citation_count is not None:
        where += f", {known.citation_count:,} citations"
    return "\n\n".join(filter(None, [*_heading(paper), *_told(paper), _plain(where)]))


def about_place(offers: Sequence[Offer], answer: Answer | None) -> str:
    """The best papers for a place, in Markdown, and how sure the system is."""
    lines = [
        f"{number}. **{_plain(offer.paper.title or '(untitled)')}** {_plain(in_line(offer.paper))} (`{offer.key}`"
        f"{'' if offer.is_new else ', in your bibliography'})"
        for number, offer in enumerate(offers, 1)
    ]
    if not lines:
        return "No paper found for this place."
    sure = answer.confidence if answer else None
    stated = "How sure the system is, is not known for this index: run `citerec train confidence`."
    if sure:
        best = next(offer for offer in offers if offer.hit and offer.hit.rank == 1)
        named = "The first paper" if best is offers[0] else f"`{best.key}`, which the system ranks first,"
        stated = f"{named} is right with {sure.first:.0%}, one of the first ten with {sure.among_ten:.0%}."
    return "\n".join([*lines, "", stated])


def _heading(paper: Paper) -> list[str]:
    return [f"**{_plain(paper.title or '(untitled)')}**", *filter(None, [_plain(in_line(paper))])]


def _told(paper: Paper) -> list[str]:
    """The TLDR, of the corpus or taken from the abstract, and the start of the abstract."""
    parts = []
    (made,) = tldrs([paper], _writer())
    if made.text:
        parts.append(f"**TLDR:** {_plain(made.text)}")
    if paper.abstract:
        parts.append(_plain(shown(paper.abstract, _START)))
    return parts


@functools.cache
def _writer() -> Writer:
    return open_writer(default_writer("tldr"), "tldr")


def _plain(text: str) -> str:
    """A text in which nothing is Markdown."""
    return _MARKUP.sub(r"\\\1", one_line(text))
