"""The records of a synthetic release: s2orc, s2orc_v2, abstracts and citations, in the shapes of S2AG."""

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import orjson
from release_papers import Papers
from release_rates import Rates
from release_text import Span, Text
from release_words import Words

_V1_NULL = (
    "author", "authoraffiliation", "authorfirstname", "authorlastname", "bibauthor", "bibauthorfirstname",
    "bibauthorlastname", "bibtitle", "bibvenue", "figure", "figurecaption", "figureref", "formula", "publisher",
    "table", "tableref", "venue",
)  # fmt: skip
_BODY_LAYERS = ("title", "abstract", "section_header", "paragraph", "bib_ref", "sentence")
_CLASS_OF = {"methodology": "method"}
_INTENTS = {"background": 0.55, "methodology": 0.2, "method": 0.08, "result": 0.17}


def spans(layer: list[Span], *, shift: int = 0, as_strings: bool = False) -> list[dict[str, Any]]:
    """A layer as objects with start, end and whatever else a span has."""
    if as_strings:
        return [{"start": str(start + shift), "end": str(end + shift), **more} for start, end, more in layer]
    return [{"start": start + shift, "end": end + shift, **more} for start, end, more in layer]


class Shapes:
    """Records of texts in both versions."""

    def __init__(self, papers: Papers, rates: Rates, seed: int) -> None:
        self._papers, self._rates, self._seed = papers, rates, seed

    def version_1(self, text: Text) -> dict[str, Any]:
        """The record of `s2orc`: one text, layers as JSON strings, no layer of sentences."""
        strings = "offsets_as_strings" in text.flags
        annotations: dict[str, str | None] = dict.fromkeys(_V1_NULL)
        for name, layer in text.layers.items():
            if name == "sentence":
                continue
            shift = len(text.body) if name == "bib_entry" else 0
            written = None if layer is None else _json(spans(layer, shift=shift, as_strings=strings))
            annotations[name.replace("_", "")] = written
        doi = self._papers.doi(text.row)
        return {
            "corpusid": self._id(text),
            "externalids": {"arxiv": None, "mag": None, "acl": None, "pubmed": None, "pubmedcentral": None,
                            "dblp": None, "doi": doi},
            "content": {
                "source": {"pdfurls": [f"https://example.org/{doi}.pdf"], "pdfsha": f"{text.row:040x}", "oainfo": None},
                "text": text.body + text.bibliography,
                "annotations": dict(sorted(annotations.items())),
            },
            "updated": None,
        }  # fmt: skip

    def version_2(self, text: Text) -> dict[str, Any]:
        """The record of `s2orc_v2`: body and bibliography apart, layers as JSON strings, lists or null."""
        random = Random(f"{self._seed}/v2/{text.row}")
        strings = "offsets_as_strings" in text.flags

        def group(name: str) -> Any:
            layer = text.layers[name]
            if layer is None:
                return None
            listed = spans(layer, as_strings=strings)
            return listed if random.random() < self._rates.list_layers else _json(listed)

        body = {name: group(name) for name in _BODY_LAYERS}
        if body["sentence"] is None and random.random() < 0.5:
            del body["sentence"]
        return {
            "corpusid": self._id(text),
            "title": self._papers.title(text.row),
            "authors": [{"name": name} for name in self._papers.surnames(text.row)],
            "openaccessinfo": None,
            "body": {"text": text.body, "annotations": {**body, "figure": None, "formula": None}},
            "bibliography": {"text": text.bibliography, "annotations": {"bib_entry": group("bib_entry")}},
        }

    def _id(self, text: Text) -> int | str:
        number = int(self._papers.ids[text.row])
        return str(number) if "text_ids_as_strings" in text.flags else number


class Rows:
    """Records of `citations`, with running ids."""

    def __init__(self, words: Words, papers: Papers, rates: Rates, seed: int) -> None:
        self._words, self._papers, self._rates, self._seed = words, papers, rates, seed
        self._written = 0
        self.planted: Counter[str] = Counter()

    def of_text(self, text: Text) -> tuple[list[dict[str, Any]], dict[int, str | None]]:
        """The rows of a text's matched entries, and for each cited row the true intent of its contexts."""
        random = Random(f"{self._seed}/citations/{text.row}")
        records: list[dict[str, Any]] = []
        intents: dict[int, str | None] = {}
        for entry in text.entries:
            if entry.status == "unmatched" or random.random() < self._rates.row_missing:
                continue
            contexts = text.cited.get(entry.row)
            told = contexts if contexts and random.random() < self._rates.with_contexts else None
            wanted = self._intents(random, len(told)) if told else None
            intents[entry.row] = true_intent(wanted)
            records += self._rows(random, text.row, entry.row, told, wanted)
        return records, intents

    def of_paper(self, row: int) -> Iterator[dict[str, Any]]:
        """Rows of a paper without a text, nearly all without contexts."""
        random = Random(f"{self._seed}/citations/{row}")
        rows = len(self._papers.complete)
        cited = {int(self._papers.complete[random.randrange(rows)]) for _ in range(random.randint(0, 5))}
        for other in sorted(cited - {row}):
            told = wanted = None
            if random.random() < 0.05:
                sentence = self._words.sentence(random.random)
                told = [f"{sentence[:-1]} for the {self._papers.topic(other)} [{random.randint(1, 40)}]."]
                wanted = self._intents(random, 1)
            yield from self._rows(random, row, other, told, wanted)

    def _rows(
        self, random: Random, citing: int, cited: int, contexts: list[str] | None, intents: list[Any] | None
    ) -> Iterator[dict[str, Any]]:
        yield self._record(random, citing, cited, contexts, intents)
        # So many rows more lack the cited paper that they are that share of all.
        if random.random() < self._rates.cited_null / (1 - min(self._rates.cited_null, 0.5)):
            yield self._record(random, citing, None, None, None)

    def _record(
        self, random: Random, citing: int, cited: int | None, contexts: list[str] | None, intents: list[Any] | None
    ) -> dict[str, Any]:
        self._written += 1
        ids = [int(self._papers.ids[citing]), None if cited is None else int(self._papers.ids[cited])]
        if random.random() < self._rates.ids_as_strings:
            ids = [None if one is None else str(one) for one in ids]  # type: ignore[misc]
            self.planted["ids_as_strings"] += 1
        self.planted["rows"] += 1
        self.planted["cited_null"] += cited is None
        self.planted["with_contexts"] += contexts is not None
        if contexts is not None:
            nested = intents and any(not isinstance(one, str) for one in intents)
            self.planted["intents_null" if intents is None else "intents_nested" if nested else "intents_flat"] += 1
        return {
            "citationid": 500_000_000 + self._written,
            "citingcorpusid": ids[0],
            "citedcorpusid": ids[1],
            "isinfluential": random.random() < 0.05,
            "contexts": contexts,
            "intents": intents,
        }

    def _intents(self, random: Random, contexts: int) -> list[Any] | None:
        """Intents of a pair: nested, one list (or null) a context; flat, for them all; or null."""
        form = random.random()
        if form < 0.15:
            return None
        main = _draw_intent(random)
        if form < 0.4:
            return [] if random.random() < 0.05 else self._list(random, main)
        return [None if random.random() < 0.2 else self._list(random, main) for _ in range(contexts)]

    def _list(self, random: Random, main: str) -> list[str]:
        # The same class under its other name, another class, or a second class, now and then.
        chance = random.random()
        if main in ("method", "methodology") and chance < 0.5:
            return ["method" if main == "methodology" else "methodology"]
        if chance > 0.94:
            return list(dict.fromkeys((main, _draw_intent(random))))
        return [_draw_intent(random) if chance > 0.88 else main]


def true_intent(intents: list[Any] | None) -> str | None:
    """The intent that the contexts of a pair are agreed on, or None.

    The rule: all classes that any context of the pair is given are put together, `methodology` taken for `method`; if
    that is exactly one class, it is the intent of every context of the pair, also of those whose own list is null,
    which says nothing. A flat list counts for all contexts. No class, or more than one: None.
    """
    lists = [[one] if isinstance(one, str) else one or [] for one in intents or []]
    classes = {_CLASS_OF.get(value, value) for values in lists for value in values}
    return classes.pop() if len(classes) == 1 else None


def abstract_record(papers: Papers, row: int) -> dict[str, Any]:
    """The record of `abstracts`."""
    return {
        "corpusid": int(papers.ids[row]),
        "openaccessinfo": {"externalids": {"DOI": papers.doi(row)}, "license": None, "url": None, "status": None},
        "abstract": " ".join(papers.abstract(row)),
    }


def _draw_intent(random: Random) -> str:
    return random.choices(tuple(_INTENTS), tuple(_INTENTS.values()))[0]


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
