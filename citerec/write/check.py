"""Checks of texts that a model wrote: the citations and attributions of each sentence.

They prove nothing, but find obvious errors: citations of no source, and sentences that share hardly a word with the
sources that they cite.
"""

from collections.abc import Iterator, Sequence, Set

from citerec.files.text import printable, replaced
from citerec.write.anchors import as_unknown, mentions
from citerec.write.sentences import content_terms, said_by, sentences_of
from citerec.write.tasks import Prediction, Sentence, Source, TextTask

SUPPORTED = 0.2
"""Share of a sentence's content words that must be in a source that it cites."""
DRAWN = 0.5
"""Least share of these words that a source must have to be an attribution of a sentence without citations."""


def traced(task: TextTask, text: str, writer: str) -> Prediction:
    """The text of a model as a prediction, with the attributions of each sentence.

    The attributions of a sentence with citations are the sources that it cites; `unsupported` are those that have less
    than `SUPPORTED` of its content words. Without citations, they are the sources that have most of these words, if at
    least `DRAWN`.
    """
    text = printable(text)  # a server may send anything
    terms = [set(content_terms(said_by(source))) for source in task.sources]
    sentences = tuple(_traced(sentence, task.sources, terms) for sentence in sentences_of(text))
    return Prediction(task, text, writer, sentences)


def _traced(sentence: str, sources: Sequence[Source], terms: Sequence[Set[str]]) -> Sentence:
    """A sentence of a text, from the sources and the content words of each."""
    cites = mentions(sentence, sources)
    own = set(content_terms(replaced(sentence, ((mention.start, mention.end, " ") for mention in cites))))
    shares = [len(own & of_source) / len(own) if own else 0.0 for of_source in terms]
    if cites:
        attributions = tuple(sorted({number for mention in cites for number in mention.sources}))
        unknown = tuple(dict.fromkeys(name for mention in cites for name in mention.unknown))
        unsupported = tuple(number for number in attributions if shares[number] < SUPPORTED)
        return Sentence(sentence, attributions, unknown, unsupported)
    most = max(shares, default=0.0)
    return Sentence(sentence, tuple(number for number, share in enumerate(shares) if share == most >= DRAWN))


def placed(prediction: Prediction) -> Iterator[tuple[str, Sentence | None]]:
    """The sentences of a text, each after the text between it and the one before; then the rest, with None."""
    done = 0
    for sentence in prediction.sentences:
        start = prediction.text.find(sentence.text, done)
        if start >= 0:
            yield prediction.text[done:start], sentence
            done = start + len(sentence.text)
    yield prediction.text[done:], None


def marked(prediction: Prediction) -> str:
    """A text for display: citations of no source are marked, as in `[0, ?7]`."""
    sources = prediction.task.sources
    return "".join(
        gap + (marked_sentence(sentence, sources) if sentence else "") for gap, sentence in placed(prediction)
    )


def marked_sentence(sentence: Sentence, sources: Sequence[Source]) -> str:
    """A sentence for display."""
    spans = []
    for mention in mentions(sentence.text, sources):
        printed = sentence.text[mention.start : mention.end]
        # A citation copied by an extractive writer may have the number of a source without meaning it.
        spans.append(
            (mention.start, mention.end, as_unknown(printed) if printed in sentence.unknown else mention.shown)
        )
    return replaced(sentence.text, spans)
