"""What the world knows of the papers of an index: asked of web services, kept paper by paper, then built into it.

Answers are kept in `enriched/answers.sqlite` of the index, so nothing is asked twice: a run that was stopped goes on,
and a later one asks for what is new.
"""

import contextlib
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from citerec.contexts.markers import marked
from citerec.corpus.matching import alike, look_up_names
from citerec.corpus.store import PaperStore
from citerec.files.parallel import in_parts
from citerec.files.progress import Progress
from citerec.index.build import BuildOptions, add_to_index, changeable
from citerec.index.manifest import open_store
from citerec.records import MARKER, Paper
from citerec.settings import PartSettings
from citerec.sources.look_up import Asking, LookUp, Manners, SemanticScholar

_PART = 100  # papers of one request: what is lost if it fails
_CITATIONS = "citations"
_FILLED = ("abstract", "tldr", "year", "venue", "authors", "fields_of_study", "citation_count")


class EnrichSettings(PartSettings):
    """How the services are asked."""

    s2: Asking = Asking()
    openalex: Asking = Asking()

    def manners(self, service: str) -> Manners:
        """Those of one service, which is patient, and keeps answers itself."""
        otherwise = "and run the same command again: it goes on where it stopped"
        manners = dict(getattr(self, service))
        return Manners(section=service, keep_days=0, hurries=False, otherwise=otherwise, **manners)


class Enriched(NamedTuple):
    """What came of it.

    Attributes:
        papers: Papers of the index.
        found: How many of them each service knows; one is asked only for what those before it lack.
        filled: How many papers got each field.
        cited: How many papers got citing sentences.
        sentences: How many sentences.
    """

    papers: int
    found: dict[str, int]
    filled: dict[str, int]
    cited: int
    sentences: int


class Answers:
    """The answers for the papers of an index, kept in a file; each is on disk before the next is asked for."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._rows = sqlite3.connect(folder / "answers.sqlite", isolation_level=None)
        self._rows.execute("PRAGMA journal_mode = WAL")
        self._rows.execute(
            "CREATE TABLE IF NOT EXISTS answers (paper TEXT, service TEXT, answer TEXT, PRIMARY KEY (paper, service))"
        )

    def close(self) -> None:
        """Closes the file."""
        self._rows.close()

    def forget(self) -> None:
        """Forgets all of them."""
        self._rows.execute("DELETE FROM answers")

    def put(self, service: str, answers: Mapping[str, Any]) -> None:
        """Keeps the answers of a service, by the ids of the papers."""
        rows = [(paper_id, service, orjson.dumps(answer).decode()) for paper_id, answer in answers.items()]
        self._rows.execute("BEGIN")
        self._rows.executemany("INSERT OR REPLACE INTO answers (paper, service, answer) VALUES (?, ?, ?)", rows)
        self._rows.execute("COMMIT")

    def get(self, paper_id: str) -> dict[str, Any]:
        """The answers for a paper, by service."""
        rows = self._rows.execute("SELECT service, answer FROM answers WHERE paper = ?", (paper_id,))
        return {service: orjson.loads(answer) for service, answer in rows}

    def count(self, service: str) -> int:
        """How many papers a service knows."""
        query = "SELECT COUNT(*) FROM answers WHERE service = ? AND answer != 'null'"
        return int(self._rows.execute(query, (service,)).fetchone()[0])


def enrich_index(
    index: Path, services: Sequence[LookUp], sentences: int, on_progress: Progress, *, again: bool
) -> Enriched:
    """Asks services for the papers of an index, and builds what they say into it.

    What the index has of a paper stays; only what it lacks is filled in. `origins` says from where. Citing sentences
    have the year of their paper, and its id in the index if it is there, so that the leak rules hold for them.

    Args:
        index: The index.
        services: Asked in this order, each for what those before it lack. Semantic Scholar gives citing sentences.
        sentences: How many citing sentences of a paper are enough; 0 for none.
        on_progress: Called as the work goes on.
        again: Whether papers are asked for that were asked for before.

    Raises:
        ServiceError: A service cannot be reached, or refuses. What it answered before is kept.
        BuildError, InputError: As for `add_to_index`.
    """
    changeable(index)  # or it would be said after an hour of asking
    folder = index / "enriched"
    with contextlib.closing(open_store(index)) as store, contextlib.closing(Answers(folder)) as answers:
        if again:
            answers.forget()
        whole = store.counts().papers
        for number, papers in enumerate(in_parts(store.all_papers(), _PART)):
            _ask(papers, services, answers)
            for done, paper in enumerate(papers, number * _PART):
                on_progress("asking", done, whole)
                _ask_citing(paper, services, answers, sentences)
        number = 1 + max((int(one.name) for one in folder.iterdir() if one.name.isdecimal()), default=0)
        files = folder / str(number) / "papers.jsonl", folder / str(number) / "sentences.jsonl"
        files[0].parent.mkdir()
        filled, cited = _write(store, answers, *files)
        found = {service.name: answers.count(service.name) for service in services}
        has_papers, has_sentences = (file.stat().st_size > 0 for file in files)
        if has_papers or has_sentences:
            options = BuildOptions(citances=files[1:] if has_sentences else ())
            add_to_index(files[:1] if has_papers else (), index, options, on_progress)
        else:
            shutil.rmtree(files[0].parent)
    return Enriched(whole, found, dict(filled), len(cited), sum(cited.values()))


def _ask(papers: Sequence[Paper], services: Sequence[LookUp], answers: Answers) -> None:
    """Asks each service for those of some papers that it was not asked for, and that lack an abstract still."""
    for service in services:
        known = [(paper, answers.get(paper.paper_id)) for paper in papers]
        lacking = [paper for paper, by in known if service.name not in by and not _is_complete(paper, by)]
        if lacking:
            found = zip(lacking, service.find(lacking), strict=True)
            answers.put(service.name, {paper.paper_id: one and asdict(one) for paper, one in found})


def _is_complete(paper: Paper, known: Mapping[str, Any]) -> bool:
    """Whether a service knows a paper, and its abstract is at hand."""
    found = [one for service, one in known.items() if one and service != _CITATIONS]
    return bool(found) and (paper.abstract is not None or any(one["abstract"] for one in found))


def _ask_citing(paper: Paper, services: Sequence[LookUp], answers: Answers, sentences: int) -> None:
    """Asks for the sentences that cite a paper, once."""
    known = answers.get(paper.paper_id)
    for service in services:
        one = known.get(service.name)
        if one and isinstance(service, SemanticScholar) and sentences and _CITATIONS not in known:
            said = service.citing(Paper(one["paper_id"]), sentences)
            citing = [{"paper": asdict(citing.paper), "sentences": citing.sentences} for citing in said]
            answers.put(_CITATIONS, {paper.paper_id: citing})


def _write(store: PaperStore, answers: Answers, papers: Path, sentences: Path) -> tuple[Counter[str], dict[str, int]]:
    """Writes what the index lacks: papers with what they lacked, and citing sentences; and counts both."""
    filled, cited = Counter[str](), dict[str, int]()
    with papers.open("wb") as of_papers, sentences.open("wb") as of_sentences:
        for paper in store.all_papers():
            new = answers.get(paper.paper_id)
            citing = new.pop(_CITATIONS, None) or []
            whole = paper
            for service, one in new.items():
                whole = _filled(whole, _paper(one), service) if one else whole
            if whole != paper:
                of_papers.write(orjson.dumps(whole, option=orjson.OPT_APPEND_NEWLINE))
                names = (*_FILLED, "external_ids")
                filled.update(name for name in names if getattr(whole, name) != getattr(paper, name))
            for record in _sentences(paper, citing, store):
                of_sentences.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))
                cited[paper.paper_id] = cited.get(paper.paper_id, 0) + 1
    return filled, cited


def _paper(record: Mapping[str, Any]) -> Paper:
    """A paper that was kept as JSON."""
    values: dict[str, Any] = {name: tuple(one) if isinstance(one, list) else one for name, one in record.items()}
    return Paper(**values)


def _filled(paper: Paper, found: Paper, service: str) -> Paper:
    """A paper with what it lacked and a service knows."""
    lacking = [name for name in _FILLED if getattr(paper, name) in (None, ())]
    new: dict[str, Any] = {name: value for name in lacking if (value := getattr(found, name)) not in (None, ())}
    ids = {scheme: value for scheme, value in found.external_ids.items() if scheme not in paper.external_ids}
    if ids:
        new["external_ids"] = {**paper.external_ids, **ids}
    return replace(paper, **new, origins={**paper.origins, **dict.fromkeys(new, service)}) if new else paper


def _sentences(paper: Paper, citing: Sequence[Mapping[str, Any]], store: PaperStore) -> Iterator[dict[str, Any]]:
    """The sentences of other papers that cite a paper, as contexts, unless the index has some of the same paper."""
    others = [_paper(one["paper"]) for one in citing]
    names = {name for one in others for name in look_up_names(one.title, one.external_ids)}
    named = store.named(names) if names else {}
    for one, other in zip(citing, others, strict=True):
        known = (same for name in look_up_names(other.title, other.external_ids) for same in named.get(name, ()))
        citing_id = next((same.paper_id for same in known if alike(other, same)), other.paper_id)
        is_new = citing_id != paper.paper_id and not store.citances(paper.paper_id, citing_id)
        for text in one["sentences"] if is_new else ():
            yield {
                "text": marked(text, paper.year) or f"{text.replace(MARKER, ' ')} {MARKER}",
                "citing_id": citing_id,
                "citing_year": other.year,
                "cited_ids": [paper.paper_id],
            }
