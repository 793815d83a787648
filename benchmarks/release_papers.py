"""The papers of a synthetic release: columns of small numbers, from which records are made one by one."""

from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray
from release_rates import INCOMPLETE, Rates
from release_words import Words

LARGE = {
    "Medicine": 0.17, "Computer Science": 0.16, "Biology": 0.13, "Physics": 0.09, "Chemistry": 0.09,
    "Materials Science": 0.07, "Mathematics": 0.06,
}  # fmt: skip
LOW_RESOURCE = {
    "Psychology": 0.022, "Engineering": 0.022, "Environmental Science": 0.02, "Business": 0.018, "Geography": 0.014,
    "Political Science": 0.014, "Sociology": 0.014, "Geology": 0.01, "History": 0.01, "Art": 0.008,
    "Philosophy": 0.008,
}  # fmt: skip
_AGRICULTURE = {"Agricultural And Food Sciences": 0.01, "Agricultural and Food Sciences": 0.01}
_SHARES = LARGE | LOW_RESOURCE | _AGRICULTURE
_FIELDS = tuple(_SHARES)
FIRST_YEAR, LAST_YEAR = 1990, 2023
FEWEST = 200
"""With fewer papers than this not every field and every lack would occur."""
_MOST_AUTHORS = 6


class Papers:
    """Columns of all papers; a paper is a row. Rows from `listed` on are known, but not in `papers`.

    Attributes:
        listed: How many papers the dataset `papers` holds.
        ids: Corpus ids, rising, with gaps.
        year: Years; 0 stands for null.
        complete: Rows of papers with authors, title and venue.
        incomplete: Rows of papers without one of these.
        text_rows: For each text, the row of the citing paper.
        cited_outside: Rows that are not in `papers` and have no text.
    """

    def __init__(self, words: Words, rates: Rates, *, papers: int, texts: int, seed: int) -> None:
        if papers < FEWEST:
            raise ValueError(f"a release needs {FEWEST} papers or more, not {papers}")
        if not 0 <= texts <= papers:
            raise ValueError(f"{texts} texts for {papers} papers: each paper has one text at most")
        self._words, self._rates, self._seed, self.listed = words, rates, seed, papers
        random = np.random.default_rng([seed, 1])
        texts_outside = round(texts * rates.not_in_papers)
        rows = papers + texts_outside + max(100, papers // 20)
        self.ids = 10_000_000 + 7 * np.arange(rows, dtype=np.int64) + random.integers(0, 7, rows)
        self.year = _years(random, rows, rates.null_year)
        self._count = np.minimum(random.lognormal(1.8, 1.6, rows), 90_000).astype(np.int32)
        self._count[random.random(rows) < rates.null_count] = -1
        self._field = _quotas(random, papers, tuple(_SHARES.values()))
        self._lack = _quotas(random, papers, tuple(getattr(rates, name) for name in INCOMPLETE))
        self._authors = np.minimum(random.geometric(0.35, rows), _MOST_AUTHORS).astype(np.uint8)
        self._names = random.integers(0, len(words.surnames), (rows, _MOST_AUTHORS), dtype=np.uint16)
        # A few words stand in many titles, as they do in real ones.
        self._title = (random.random((rows, 5)) ** 1.5 * len(words.nouns)).astype(np.uint16)
        self._pattern = random.integers(0, 6, rows, dtype=np.uint8)
        lacking = (self._lack >= 0) & (self._lack != INCOMPLETE.index("journal_only"))
        self.complete: NDArray[np.int64] = np.flatnonzero(~lacking)
        self.incomplete: NDArray[np.int64] = np.flatnonzero(lacking)
        outside = np.arange(papers, rows)
        self.text_rows = self._citing(random, texts - texts_outside, outside[:texts_outside])
        self.cited_outside: NDArray[np.int64] = outside[texts_outside:]

    def _citing(self, random: np.random.Generator, listed: int, outside: NDArray[np.int64]) -> NDArray[np.int64]:
        """The citing rows: newer papers first, because they find more that is older than themselves."""
        order = random.permutation(self.listed)
        order = order[np.argsort(self.year[order] < 2005, kind="stable")]
        return random.permutation(np.concatenate([order[:listed], outside]))

    def counts(self) -> dict[str, int]:
        """How many papers of `papers` lack what."""
        names = dict(zip(INCOMPLETE, (int((self._lack == at).sum()) for at in range(len(INCOMPLETE))), strict=True))
        return names | {"null_year": int((self.year[: self.listed] == 0).sum()),
                        "null_count": int((self._count[: self.listed] < 0).sum()),
                        "null_field": int((self._field < 0).sum())}  # fmt: skip

    def surnames(self, row: int) -> list[str]:
        """Surnames of the authors, also where `papers` does not give them: a bibliography may."""
        return [self._words.surnames[name] for name in self._names[row, : self._authors[row]].tolist()]

    def title(self, row: int) -> str:
        """The title, also where `papers` does not give it."""
        return self._words.title(self._title[row].tolist(), int(self._pattern[row]))

    def topic(self, row: int) -> str:
        """Two words of the title."""
        one, two = self._title[row, :2].tolist()
        return f"{self._words.nouns[one]} {self._words.nouns[two]}"

    def venue(self, row: int) -> str:
        """The venue, also where `papers` does not give it."""
        return self._words.venues[int(self._title[row, 4]) % len(self._words.venues)]

    def doi(self, row: int) -> str:
        """A DOI that a paper may have, and no other."""
        return f"10.5555/{int(self.ids[row])}"

    def abstract(self, row: int) -> list[str]:
        """Sentences of the abstract; they hold no citation."""
        draw = Random(f"{self._seed}/abstract/{row}").random
        topic = self.topic(row)
        first = f"In this paper, we {self._words.verbs[int(draw() * 500)]}e the {topic} of {self._words.body(draw)}."
        return [first, *(self._words.sentence(draw) for _ in range(2 + int(draw() * 6)))]

    def record(self, row: int) -> tuple[dict[str, Any], bool]:
        """The record of `papers`, and whether its id is a string."""
        random = Random(f"{self._seed}/paper/{row}")
        draw, number, year, count = random.random, int(self.ids[row]), int(self.year[row]), int(self._count[row])
        lack = INCOMPLETE[self._lack[row]] if self._lack[row] >= 0 else ""
        as_string = draw() < self._rates.ids_as_strings
        venue: str | None = self.venue(row)
        journal: dict[str, Any] | None = {"name": venue, "pages": None, "volume": "7"} if draw() < 0.4 else None
        if lack == "no_venue":
            journal = random.choice((None, {"name": None, "pages": "1-9", "volume": None}, {"name": "", "pages": None}))
        elif lack == "journal_only":
            journal = {"name": venue, "pages": "3-14", "volume": "12"}
        if lack in ("no_venue", "journal_only"):
            venue = random.choice(("", None))
        authors: list[dict[str, Any]] | None = [
            {"authorId": str(2_000_000 + row * 7 + at), "name": f"{random.choice(self._words.first_names)} {name}"}
            for at, name in enumerate(self.surnames(row))
        ]
        if lack == "no_authors":
            authors = random.choice(([], None, [{"authorId": None, "name": ""}], [{"authorId": None, "name": None}]))
        record = {
            "corpusid": str(number) if as_string else number,
            "externalids": self._external_ids(random, row),
            "url": f"https://www.semanticscholar.org/paper/{number:040x}",
            "title": random.choice(("", None, " ")) if lack == "no_title" else self.title(row),
            "authors": authors,
            "venue": venue,
            "publicationvenueid": None,
            "year": year or None,
            "referencecount": int(draw() * 60),
            "citationcount": count if count >= 0 else None,
            "influentialcitationcount": max(count, 0) // 12,
            "isopenaccess": draw() < 0.4,
            "s2fieldsofstudy": self._fields_of_study(draw, row),
            "publicationtypes": random.choice((None, ["JournalArticle"], ["Conference"])),
            "publicationdate": f"{year}-0{1 + int(draw() * 9)}-15" if year and draw() < 0.6 else None,
            "journal": journal,
        }
        return record, as_string

    def _external_ids(self, random: Random, row: int) -> dict[str, str | None] | None:
        if random.random() < 0.02:
            return None
        number = str(self.ids[row])
        return {
            "ACL": None,
            "DBLP": f"journals/x/{row}" if random.random() < 0.3 else None,
            "ArXiv": f"{1000 + row % 9000}.{row % 99999:05d}" if random.random() < 0.2 else None,
            "MAG": str(2_000_000_000 + row) if random.random() < 0.7 else None,
            "CorpusId": number,
            "PubMed": str(30_000_000 + row) if random.random() < 0.3 else None,
            "DOI": self.doi(row) if random.random() < 0.7 else None,
            "PubMedCentral": None,
        }

    def _fields_of_study(self, draw: Any, row: int) -> list[dict[str, str]] | None:
        if self._field[row] < 0:
            return None if draw() < 0.5 else []
        field = _FIELDS[self._field[row]]
        fields = [{"category": field, "source": "external"}]
        if draw() < 0.4:
            fields.append({"category": field, "source": "s2-fos-model"})
        if draw() < 0.15:
            # Only large fields come second, so that no low-resource field grows to 3 %, however one counts.
            fields.append({"category": tuple(LARGE)[int(draw() * len(LARGE))], "source": "s2-fos-model"})
        return fields


def _quotas(random: np.random.Generator, rows: int, shares: tuple[float, ...]) -> NDArray[np.int8]:
    """For each row the number of its share, or -1: exact shares whatever the number of rows, in random order."""
    values = np.full(rows, -1, np.int8)
    ends = np.round(np.cumsum(shares) * rows).astype(int)
    for number, (start, end) in enumerate(zip((0, *ends[:-1]), ends, strict=True)):
        values[start:end] = number
    return random.permutation(values)


def _years(random: np.random.Generator, rows: int, null: float) -> NDArray[np.int16]:
    weights = np.arange(10, 10 + LAST_YEAR - FIRST_YEAR + 1, dtype=float)
    years = random.choice(np.arange(FIRST_YEAR, LAST_YEAR + 1), rows, p=weights / weights.sum()).astype(np.int16)
    years[random.random(rows) < null] = 0
    return years
