"""Splitting a text into sentences: by rule (pysbd), or by spaCy. What cites does not end a sentence."""

import functools
import importlib.metadata
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson

from citerec.contexts.callouts import Callout, Style
from citerec.contexts.learnt import folded
from citerec.contexts.read import read_contexts
from citerec.corpus.json_lines import raw_lines
from citerec.errors import InputError
from citerec.files.hashing import hash_sample
from citerec.files.text import replaced
from citerec.files.writing import Kind
from citerec.records import MARKER, Context, citing_name
from citerec.version import __version__

ENDS = (".", "?", "!")
"""The ends of usable sentences."""

PYSBD, SPACY = "pysbd", "spacy"

Span = tuple[int, int]
Splitter = Callable[[str], list[Span]]
"""Returns start and end of each sentence of a text, in order, without white space around them."""

# pysbd takes quadratic time or worse: it gets pieces, cut where a sentence certainly ends.
_PIECE, _LONGEST = 2000, 8000
SIGN = "\ue000"
"""A private-use character for a `<REF>`, which pysbd would separate from its sentence."""
_SURE_END = re.compile(rf"(?:[^\W\d_]{{4}}|{SIGN})[.?!]\s(?=[A-Z])")

# A made-up word replaces a citation while sentences are split: "et al." inside one must not end a sentence.
_WORD, _LETTER = "X", "x"
_GLUED_BEFORE = re.compile(r"[\w)\]}”’\"'.,;:!?]$")
_GLUED_AFTER = re.compile(r"[^\W_]")
_ABBREVIATED = re.compile(r"\b(?:et\s+)?al\.(?=\s)|\b(?:cf|cp|resp|approx|viz|vs|e\.g|i\.e)\.(?=\s)")
_QUOTES = str.maketrans(dict.fromkeys('"“”‘', " "))


@functools.cache
def splitter(name: str = PYSBD) -> Splitter:
    """A splitter by name: `pysbd`; `spacy` for spaCy's rule-based sentencizer; or the name or folder of a spaCy model.

    Raises:
        InputError: There is no such model, or it does not split.
    """
    return _by_rule if name == PYSBD else functools.partial(_by_spacy, _pipeline(name))


def splitter_identity(name: str) -> list[str]:
    """Name and version of a splitter, which decide its sentences."""
    if name in (PYSBD, SPACY):
        return [name, importlib.metadata.version(name)]
    return pipeline_identity(_pipeline(name))


def pipeline_identity(pipeline: Any) -> list[str]:
    """Language, name and version of a spaCy pipeline."""
    return [str(pipeline.meta.get(key)) for key in ("lang", "name", "version")]


def _by_rule(text: str) -> list[Span]:
    """Start and end of each sentence of a text by pysbd."""
    spans: list[Span] = []
    for start, end in _pieces(text):
        done = start
        # Not `segment`: to find the sentences in the text, it compiles an expression for each of them.
        for sentence in _segmenter().processor(text[start:end]).process():
            # pysbd may change a sentence: only sentences found in the text count.
            stripped = sentence.strip()
            first = text.find(stripped, done, end) if stripped else -1
            if first >= 0:
                done = first + len(stripped)
                spans.append((first, done))
    return spans


def _pieces(text: str) -> Iterator[Span]:
    """A text in pieces that are short enough to split in reasonable time."""
    start = 0
    while len(text) - start > _PIECE:
        ends = [match.end() for match in _SURE_END.finditer(text, start, start + _LONGEST)]
        if not ends and len(text) - start <= _LONGEST:
            break
        first = ends[0] if ends else start + _LONGEST
        cut = max((end for end in ends if end <= start + _PIECE), default=first)
        yield start, cut
        start = cut
    yield start, len(text)


@functools.cache
def _segmenter() -> Any:
    """The splitter of pysbd for English.

    pysbd makes some 700 expressions of its abbreviations anew for each text. `re` keeps 512, and would compile most of
    them again and again; here each is compiled once.
    """
    from pysbd import Segmenter, abbreviation_replacer

    compiled = functools.lru_cache(4096)(re.compile)  # a text decides with which letters an abbreviation is written
    expressions = {
        "sub": lambda pattern, new, text, flags=0: compiled(pattern, flags).sub(new, text),
        "findall": lambda pattern, text, flags=0: compiled(pattern, flags).findall(text),
    }
    abbreviation_replacer.re = SimpleNamespace(**{**vars(re), **expressions})
    return Segmenter(language="en", clean=False)


def _by_spacy(pipeline: Any, text: str) -> list[Span]:
    spans = [trimmed(text, sentence.start_char, sentence.end_char) for sentence in pipeline(text).sents]
    return [(start, end) for start, end in spans if start < end]


def trimmed(text: str, start: int, end: int) -> Span:
    """A span without the white space at its ends, as far as it is in the text."""
    start = max(start, 0)
    part = text[start:end]
    start += len(part) - len(part.lstrip())
    return start, start + len(part.strip())


@functools.cache
def _pipeline(name: str) -> Any:
    import spacy

    if name == SPACY:
        pipeline = spacy.blank("en")
        pipeline.add_pipe("sentencizer")
        return pipeline
    others = f"Name another, or {PYSBD}, or {SPACY}."
    pipeline = spacy_model(name, others, "ner", "lemmatizer", "attribute_ruler", "tagger")
    if "parser" not in pipeline.pipe_names:
        if "senter" not in [*pipeline.disabled, *pipeline.pipe_names]:
            raise InputError(f"the spaCy model {name} does not split sentences", others)
        pipeline.enable_pipe("senter")
    return pipeline


def spacy_model(name: str, remedy: str, *excluded: str) -> Any:
    """A spaCy model by name or folder, without some of its parts.

    Raises:
        InputError: There is no such model, or it cannot be loaded.
    """
    import spacy

    try:
        return spacy.load(name, exclude=excluded)
    except (OSError, ValueError, ImportError) as error:
        reason = re.sub(r"^\[E\d+\] ", "", str(error)).partition(". ")[0].partition("\n")[0]
        raise InputError(f"the spaCy model {name} cannot be loaded ({reason})", remedy) from error


# Sentences that cite


def sentences_of(whole: str, callouts: Sequence[Callout], split: Splitter) -> list[Span]:
    """The sentences of a paragraph by a splitter; its citations, given in order, are masked for it."""
    masks = []
    for callout in callouts:
        width = callout.end - callout.start
        word = " " * width if _is_raised(whole, callout) else _WORD + _LETTER * (width - 1)
        masks.append((callout.start, callout.end, word))
    blotted = _ABBREVIATED.sub(lambda match: match.group()[:-1] + _LETTER, replaced(whole, masks))
    # A splitter does not split between quotation marks, which PDF extraction makes of apostrophes.
    return with_trailing(whole, split(blotted.translate(_QUOTES)), callouts)


def with_trailing(whole: str, spans: Sequence[Span], callouts: Sequence[Callout]) -> list[Span]:
    """Sentences with the raised citations at their end: `… was shown.12 Next …`."""
    trailing = {callout.start: callout.end for callout in callouts if _is_raised(whole, callout)}
    sentences: list[Span] = []
    for start, end in spans:
        done = sentences[-1][1] if sentences else 0
        start, end = trimmed(whole, max(start, done), trailing.get(end, end))
        if start < end:
            sentences.append((start, end))
    return sentences


def _is_raised(whole: str, callout: Callout) -> bool:
    return callout.style is Style.SUPERSCRIPT or follows_stop(whole, callout)


def follows_stop(whole: str, callout: Callout) -> bool:
    """Whether a citation is right after a full stop, as superscripts may be, and belongs to the sentence before it."""
    return callout.start > 0 and whole[callout.start - 1] in ENDS


def with_marker(whole: str, sentence: Span, callout: Callout) -> str:
    """The sentence with `<REF>` for a citation, with spaces between it and words, and before the full stop."""
    before, after = whole[sentence[0] : callout.start], whole[callout.end : sentence[1]]
    if not after and before.endswith(ENDS):
        before, after = before[:-1], before[-1]
    before += " " if _GLUED_BEFORE.search(before) else ""
    after = " " + after if _GLUED_AFTER.match(after) else after
    return " ".join(f"{before}{MARKER}{after}".split())


def on_one_line(whole: str, span: Span) -> str:
    """A sentence on one line; empty if it holds no letter."""
    text = " ".join(whole[slice(*span)].split())
    return text if any(map(str.isalpha, text)) else ""


PARTS = ("train", "dev", "test")
SPLIT = Kind(
    name="split of contexts",
    kind="citerec-split",
    manifest="manifest.json",
    names=frozenset({"manifest.json", *(f"{part}.jsonl" for part in PARTS)}),
)
_PAPER = "paper"


@dataclass(frozen=True, slots=True)
class PartCounts:
    """The numbers of contexts, of known citing papers, and of contexts without a known citing paper in a part."""

    contexts: int
    citing_papers: int
    without_citing_paper: int


def split_contexts(
    path: Path, out: Path, *, dev: float = 0.1, test: float = 0.1, seed: int = 0
) -> dict[str, PartCounts]:
    """Writes `train.jsonl`, `dev.jsonl` and `test.jsonl` to a folder, and replaces a split that is already there.

    Digests of the citing papers' names and of the seed decide which papers go where; for a context without a
    citing paper, its sentence decides. Lines are copied as they are, in their order.

    Args:
        path: A file of contexts.
        out: The folder.
        dev: A share of the citing papers, below 1; or a number of contexts, from 1. Papers are not divided, so a part
            may get a few contexts more.
        test: The same for the test part.
        seed: Seed of the split.

    Returns:
        The counts of each part.

    Raises:
        SourceError: The file cannot be read.
        InputError: A size is neither a share nor a number, a line is not a context, a part that was asked for would be
            empty, or something else is at `out`.
        BuildError: The disk is full, or may not be written to.
    """
    for part, size in (("dev", dev), ("test", test)):
        if not (0 <= size < 1 or (size >= 1 and float(size).is_integer())):
            message = f"--{part} {size:g} is neither a share such as 0.1 nor a number of contexts such as 500"
            raise InputError(message, "Give one of them.")
    if dev < 1 and test < 1 and dev + test >= 1:
        raise InputError(
            f"--dev {dev:g} and --test {test:g} leave nothing for train", "Give shares whose sum is less than 1."
        )
    SPLIT.check_place(out)
    of_lines = [_paper(context) for context in read_contexts(path)]
    papers = Counter(of_lines)
    places = _places(papers, {"test": test, "dev": dev}, seed)
    counts = {part: _counts([paper for paper, place in places.items() if place == part], papers) for part in PARTS}
    for part, wanted in (("train", 1.0), ("dev", dev), ("test", test)):
        if wanted and not counts[part].contexts:
            raise InputError(
                f"{path} has too few citing papers for --dev {dev:g} and --test {test:g}: {part} would be empty",
                "Give other shares, another --seed, or more contexts.",
            )
    with SPLIT.writing(out) as folder:
        with ExitStack() as files:
            names = {part: folder / f"{part}.jsonl" for part in PARTS if counts[part].contexts}
            opened = {part: files.enter_context(name.open("wb")) for part, name in names.items()}
            for paper, (_, line, _) in zip(of_lines, raw_lines(path), strict=True):
                opened[places[paper]].write(line.rstrip(b"\r\n") + b"\n")
        manifest = {
            "kind": SPLIT.kind,
            "version": 1,
            "citerec": __version__,
            "file": path.name,
            "dev": dev,
            "test": test,
            "seed": seed,
            "parts": {part: asdict(found) for part, found in counts.items()},
        }
        options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
        (folder / SPLIT.manifest).write_bytes(orjson.dumps(manifest, option=options))
    return counts


def _counts(papers: Sequence[tuple[str, str]], contexts: Mapping[tuple[str, str], int]) -> PartCounts:
    known = [paper for paper in papers if paper[0] == _PAPER]
    whole = sum(contexts[paper] for paper in papers)
    return PartCounts(whole, len(known), whole - sum(contexts[paper] for paper in known))


def _paper(context: Context) -> tuple[str, str]:
    """The key of a context's citing paper; without one, the key is its sentence."""
    name = citing_name(context.citing_id, context.citing_key)
    return (_PAPER, name) if name else ("text", folded(context.text))


def _places(papers: Counter[tuple[str, str]], wanted: dict[str, float], seed: int) -> dict[tuple[str, str], str]:
    """The part of each citing paper: in the order of their digests, each part takes as many as it needs of the rest."""
    left = iter(sorted(papers, key=lambda paper: (hash_sample(seed, *paper), paper)))
    places = {}
    for part, size in wanted.items():
        whole = size if size >= 1 else round(size * len(papers))
        taken = 0
        while taken < whole and (paper := next(left, None)):
            places[paper] = part
            taken += papers[paper] if size >= 1 else 1
    return places | dict.fromkeys(left, "train")
