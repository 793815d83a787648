"""The texts of a synthetic release: layout, annotations, and which of their sentences are usable contexts."""

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

from release_papers import FIRST_YEAR, LAST_YEAR, Papers
from release_rates import KINDS, NULL_LAYERS, USABLE, Rates
from release_sentences import STYLES, Citing, Entry, Sentence, marked
from release_words import Words

_HEADERS = (
    "Introduction", "Background", "Related Work", "Methods", "Materials and Methods", "Experimental Setup", "Data",
    "Results", "Results and Discussion", "Discussion", "Limitations", "Conclusion", "Conclusions and Future Work",
)  # fmt: skip
_FEWEST_BY_STATUS = {"complete": 6, "incomplete": 1, "outside": 1, "unmatched": 3}
_STATUSES = {"complete": 0.6, "unmatched": 0.29, "incomplete": 0.07, "outside": 0.04}

Span = tuple[int, int, dict[str, Any]]


PLANTED = ("sentences", "styles", "places")


@dataclass(slots=True)
class Text:
    """A full text before it takes the shape of a version.

    Attributes:
        row: The citing paper.
        body: Title, abstract, headers and paragraphs, a line each.
        bibliography: The entries, a line each. In v1 it follows the body.
        layers: Spans by their v2 names; None where the layer is null. Those of the bibliography count from its
            beginning.
        entries: The entries.
        contexts: Lines of the truth, without ids and intents, each with the row of the cited paper.
        cited: For each matched paper of the bibliography, the sentences that cite it.
        flags: What was planted in the text as a whole.
        planted: How many sentences there are of each kind; the usable ones, also by style and by place.
    """

    row: int
    body: str = ""
    bibliography: str = ""
    layers: dict[str, list[Span] | None] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    contexts: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    cited: dict[int, list[str]] = field(default_factory=dict)
    flags: set[str] = field(default_factory=set)
    planted: dict[str, Counter[str]] = field(default_factory=lambda: {name: Counter() for name in PLANTED})


class Texts:
    """Composes the texts of a release one by one; the same number gives the same text."""

    def __init__(self, words: Words, papers: Papers, rates: Rates, seed: int) -> None:
        self._words, self._papers, self._rates, self._seed = words, papers, rates, seed
        self._thresholds: list[tuple[float, str]] = []
        total = 0.0
        for kind in KINDS:
            total += getattr(rates, kind)
            self._thresholds.append((total, kind))

    def compose(self, number: int) -> Text:
        """The text of that number."""
        return _Composer(self._words, self._papers, self._rates, Random(f"{self._seed}/text/{number}"),
                         int(self._papers.text_rows[number]), self._thresholds).text  # fmt: skip


class _Composer:
    """Composes one text."""

    def __init__(
        self, words: Words, papers: Papers, rates: Rates, random: Random, row: int, thresholds: list[tuple[float, str]]
    ) -> None:
        self._words, self._papers, self._rates, self._random, self._draw = words, papers, rates, random, random.random
        self._thresholds = thresholds
        self.text = Text(row)
        self._flag()
        style = random.choices(tuple(STYLES), tuple(STYLES.values()))[0]
        self.text.entries = self._entries()
        self._citing = Citing(words, rates, random, style, self.text.entries, papers.topic)
        self._parts: list[str] = []
        self._length = 0
        self._layers: dict[str, list[Span]] = {
            name: [] for name in ("title", "abstract", "section_header", "paragraph", "sentence", "bib_ref")
        }
        self._section: str | None = None
        self._strays: list[tuple[str, int, int, dict[str, Any]]] = []
        self._compose()
        self._finish()

    def _flag(self) -> None:
        """What is planted in the text as a whole."""
        flags = {
            name
            for name in ("text_ids_as_strings", "offsets_as_strings", "abstract_doubled", "paragraph_outside",
                         "paragraph_doubled", "sentence_layer", "entries_from_one", "headerless", "doubled_text")
            if self._draw() < getattr(self._rates, name)
        }  # fmt: skip
        chance = self._draw()
        for name in NULL_LAYERS:
            chance -= getattr(self._rates, name)
            if chance < 0:
                flags.add(name)
                break
        self.text.flags = flags

    def _entries(self) -> list[Entry]:
        """The bibliography: a few of each status at least, so that every kind of sentence can be written."""
        random = self._random
        statuses = [status for status, fewest in _FEWEST_BY_STATUS.items() for _ in range(fewest)]
        statuses += random.choices(tuple(_STATUSES), tuple(_STATUSES.values()), k=random.randint(4, 30))
        random.shuffle(statuses)
        ampersand = " & " if self._draw() < 0.4 else " and "
        first = int("entries_from_one" in self.text.flags)
        rows: dict[int, str] = {}
        for status in statuses:
            rows[self._row(status, rows)] = status
        labels = [(*self._label(row, ampersand), row, status) for row, status in rows.items()]
        twins = Counter((names, year) for names, year, _, _ in labels)
        entries = []
        letters: Counter[tuple[str, str]] = Counter()
        for at, (names, year, row, status) in enumerate(labels):
            # Two of the same names and year are told apart by letters; a letter without need occurs as well.
            if twins[names, year] > 1 or self._draw() < 0.1:
                letter = "abcdefgh"[letters[names, year] % 8]
                letters[names, year] += 1
            else:
                letter = ""
            entries.append(Entry(row, at + 1, f"b{at + first}", status, names, year + letter))
        return entries

    def _row(self, status: str, taken: dict[int, str]) -> int:
        papers, draw = self._papers, self._draw
        if status == "complete":
            rows = papers.complete
        elif status == "incomplete" and len(papers.incomplete) > 1:
            rows = papers.incomplete
        else:
            rows = papers.cited_outside
        newest = int(papers.year[self.text.row]) or LAST_YEAR
        tries = 0
        while True:
            row = int(rows[int(draw() * len(rows))])
            tries += 1
            # Nothing newer is cited, unless it cannot be helped: some dates in the wild are wrong, too.
            if row not in taken and row != self.text.row and (tries > 4 or papers.year[row] <= newest):
                return row

    def _label(self, row: int, ampersand: str) -> tuple[str, str]:
        names = self._papers.surnames(row)
        year = int(self._papers.year[row]) or self._random.randint(FIRST_YEAR, LAST_YEAR)
        if len(names) > 2:
            return f"{names[0]} et al.", str(year)
        return ampersand.join(names), str(year)

    def _add(self, piece: str) -> tuple[int, int]:
        start = self._length
        self._parts.append(piece)
        self._length += len(piece)
        return start, self._length

    def _line(self, piece: str, layer: str, attributes: dict[str, Any] | None = None) -> None:
        start, end = self._add(piece)
        self._add("\n")
        self._layers[layer].append((start, end, {} if attributes is None else {"attributes": attributes}))

    def _compose(self) -> None:
        random = self._random
        self._line(self._papers.title(self.text.row), "title")
        start = self._length
        self._paragraph([Sentence(text) for text in self._papers.abstract(self.text.row)])
        self._layers["abstract"].append((start, self._length - 1, {}))
        if "headerless" in self.text.flags:
            self._paragraph(self._sentences())
        upper = self._draw() < 0.2
        numbered = self._draw() < 0.7
        sections = random.randint(3, 8)
        for number, title in enumerate(sorted(random.sample(_HEADERS, sections), key=_HEADERS.index), 1):
            self._header(title.upper() if upper else title, str(number) if numbered else None)
            # A header right below a header: the nearer one is the section.
            for sub in range(1, random.choice((1, 1, 1, 1, 2))):
                self._header(f"The {self._words.nouns[int(self._draw() * 4000)]}", f"{number}.{sub}")
            for _ in range(random.randint(2, 6)):
                self._paragraph(self._sentences())

    def _header(self, title: str, number: str | None) -> None:
        self._line(title, "section_header", {} if number is None else {"n": number})
        if "section_header_null" not in self.text.flags:
            self._section = title

    def _sentences(self) -> list[Sentence]:
        sentences = []
        for _ in range(self._random.randint(3, 8)):
            chance = self._draw()
            kind = next((kind for threshold, kind in self._thresholds if chance < threshold), "none")
            sentences.append(self._sentence(kind))
        if self._draw() < self._rates.no_stop:
            sentences[-1] = self._citing.sentence("no_stop")
        for sentence in sentences:
            self._count(sentence)
        return sentences

    def _sentence(self, kind: str) -> Sentence:
        # Without paragraphs nothing is usable. Who takes lines for paragraphs shall find nothing either.
        if kind == "none" or (kind in USABLE and "paragraph_null" in self.text.flags):
            return Sentence(self._words.sentence(self._draw))
        return self._citing.sentence(kind)

    def _count(self, sentence: Sentence) -> None:
        for row in sentence.cited:
            self.text.cited.setdefault(row, []).append(sentence.text)
        kind = sentence.kind
        if sentence.usable:
            if self.text.flags & {"bib_ref_null", "bib_entry_null"}:
                kind, sentence.usable = "sound_without_layer", None
            else:
                self.text.planted["styles"][sentence.usable[1]] += 1
                self.text.planted["places"][sentence.usable[4]] += 1
        self.text.planted["sentences"][kind] += 1

    def _paragraph(self, sentences: list[Sentence]) -> None:
        begin = self._length
        for at, sentence in enumerate(sentences):
            if at:
                self._add(" ")
            start, end = self._add(sentence.text)
            self._layers["sentence"].append((start, end, {}))
            self._layers["bib_ref"] += [(start + one, start + other, span) for one, other, span in sentence.spans]
            self._strays += [(way, start + one, start + other, span) for way, one, other, span in sentence.strays]
            if sentence.usable:
                before = sentences[at - 1].text if at else ""
                after = sentences[at + 1].text if at + 1 < len(sentences) else ""
                self._context(sentence, start, before, after)
        self._layers["paragraph"].append((begin, self._length, {}))
        self._add("\n")

    def _context(self, sentence: Sentence, offset: int, before: str, after: str) -> None:
        assert sentence.usable
        entry, style, start, end, _ = sentence.usable
        line = {
            "text": marked(sentence.text, start, end, style), "before": before, "after": after,
            "section": self._section, "marker": sentence.text[start:end], "style": style,
            "start": offset + start, "end": offset + end,
        }  # fmt: skip
        self.text.contexts.append((entry.row, line))

    def _finish(self) -> None:
        """The bibliography, and the traps that need to know where the text ends."""
        text = self.text
        text.body = "".join(self._parts)
        spans, lines, position = [], [], 0
        for entry in text.entries:
            authors = ", ".join(f"{name} {name[0]}" for name in self._papers.surnames(entry.row))
            line = f"{authors}. {self._papers.title(entry.row)}. {self._papers.venue(entry.row)}, {entry.year}."
            spans.append((position, position + len(line), self._matched(entry)))
            lines.append(f"{line}\n")
            position += len(line) + 1
        text.bibliography = "".join(lines)
        # Outside of both versions: the text of v1 holds the bibliography as well.
        length = len(text.body) + len(text.bibliography)
        refs = self._layers["bib_ref"]
        for way, start, end, span in self._strays:
            places = {"outside": (length + 13, length + 17), "negative": (-9, -5), "reversed": (end, start)}
            refs.insert(self._random.randint(0, len(refs)), (*places[way], span))
        paragraphs = self._layers["paragraph"]
        if "paragraph_doubled" in text.flags:
            # The abstract is the first paragraph; one with citations is doubled.
            again = self._random.choice(paragraphs[1:])
            paragraphs.insert(self._random.choice((paragraphs.index(again), len(paragraphs))), again)
        if "paragraph_outside" in text.flags:
            places = {"outside": (length + 40, length + 400), "negative": (-400, -40), "reversed": (90, 20)}
            paragraphs.append((*self._random.choice(tuple(places.values())), {}))
        if "abstract_doubled" in text.flags:
            self._layers["abstract"] *= 2
        text.layers = {**self._layers, "bib_entry": spans}
        for name in NULL_LAYERS:
            if name in text.flags:
                text.layers[name.removesuffix("_null")] = None
        if "sentence_layer" not in text.flags:
            text.layers["sentence"] = None

    def _matched(self, entry: Entry) -> dict[str, Any]:
        """What the annotation of an entry has beside its offsets."""
        attributes: dict[str, Any] = {"id": entry.ref_id}
        if entry.status != "unmatched":
            number = int(self._papers.ids[entry.row])
            attributes["matched_paper_id"] = str(number) if self._draw() < self._rates.matched_as_string else number
        elif self._draw() < 0.2:
            attributes["matched_paper_id"] = None
        if self._draw() < self._rates.doi:
            attributes["doi"] = self._papers.doi(entry.row)
        return {"attributes": attributes}
