"""What stands behind a text that a model wrote: sentence by sentence, what it cites and what it was drawn from.

It is no proof. It finds what is surely wrong: citations that stand for no source, and sentences of which hardly a word
stands in what they cite.
"""

from collections.abc import Callable, Sequence

from citerec.texts.anchors import Anchor, anchors_of, cited_in, without_anchors
from citerec.texts.sentences import content_terms, sentences_of
from citerec.texts.tasks import Sentence, Source, TextTask, Written

SUPPORTED = 0.2
"""Share of a sentence's content words that must stand in a source that it cites."""
DRAWN = 0.5
"""Share of them from which on a source counts as drawn from where the sentence cites none."""


def traced(task: TextTask, text: str, writer: str) -> Written:
    """What a model wrote, with the sources of each of its sentences.

    A sentence that cites was drawn from what it cites, if that is among the sources; `unsupported` are those of them in
    which less than `SUPPORTED` of its content words stand. One that cites nothing was drawn from the sources in which
    at least `DRAWN` of them stand: of all such, those with the most.

    Args:
        task: What it was written for.
        text: What the model wrote.
        writer: Who it is.
    """
    share_in = _shares(task.sources)
    return Written(
        task, text, writer, tuple(_traced(sentence, task.sources, share_in) for sentence in sentences_of(text))
    )


def _traced(sentence: str, sources: Sequence[Source], share_in: Callable[[str], list[float]]) -> Sentence:
    cited = cited_in(sentence, sources)
    shares = share_in(without_anchors(sentence))
    if cited.sources or cited.outside:
        drawn_from = tuple(sorted(cited.sources))
        unsupported = tuple(number for number in drawn_from if shares[number] < SUPPORTED)
        return Sentence(sentence, drawn_from, tuple(sorted(cited.outside)), unsupported)
    most = max(shares, default=0.0)
    return Sentence(sentence, tuple(number for number, share in enumerate(shares) if share == most >= DRAWN))


def _shares(sources: Sequence[Source]) -> Callable[[str], list[float]]:
    """How much of a sentence's content words stands in each source; all of it where it has none."""
    known = [set(content_terms(f"{source.title} {' '.join(source.authors)} {source.text}")) for source in sources]

    def share_in(sentence: str) -> list[float]:
        terms = set(content_terms(sentence))
        return [len(terms & of_source) / len(terms) if terms else 1.0 for of_source in known]

    return share_in


def marked(text: str, sources: Sequence[Source]) -> str:
    """A text as it may be shown: what cites something that was not given is marked, as `[0, ?7]`."""
    parts, done = [], 0
    for anchor in anchors_of(text):
        parts.append(text[done : anchor.start])
        parts.append(_marked(text[anchor.start : anchor.end], anchor, sources))
        done = anchor.end
    return "".join([*parts, text[done:]])


def _marked(printed: str, anchor: Anchor, sources: Sequence[Source]) -> str:
    if anchor.numbers:
        if max(anchor.numbers) < len(sources):
            return printed
        return f"[{', '.join(str(number) if number < len(sources) else f'?{number}' for number in anchor.numbers)}]"
    return f"[?{anchor.paper_id or anchor.title}]" if cited_in(printed, sources).outside else printed
