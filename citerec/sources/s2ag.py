"""Semantic Scholar's Academic Graph: releases, and the diffs between them, by the Datasets API."""

import functools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

import orjson

from citerec.corpus.reading import BadRecord, optional_id, parsed, read_id
from citerec.corpus.s2ag import parse_deletion, parse_paper
from citerec.errors import InputError
from citerec.files.http import WebError
from citerec.records import Citation
from citerec.sources.base import Corpus, Dataset, RawRecord, Release, RemoteFile, Update, json_records

_GIGABYTE = 10**9
# The sizes of a recent release: the interface does not say any.
_DATASETS = (
    Dataset("papers", "titles, authors, venues, years, fields of study, counts of citations", 49 * _GIGABYTE),
    Dataset("abstracts", "abstracts", 26 * _GIGABYTE),
    Dataset("tldrs", "summaries in a sentence", 6 * _GIGABYTE),
    Dataset("citations", "who cites whom, with the sentences and intents", 359 * _GIGABYTE),
    Dataset("embeddings-specter_v2", "vectors made by SPECTER2, 768 numbers each", is_default=False),
)
_ASK = "Ask for one at https://www.semanticscholar.org/product/api and set S2_API_KEY to it."

Value = TypeVar("Value")


class SemanticScholar(Corpus):
    """Semantic Scholar's Academic Graph."""

    name = "s2ag"
    title = "Semantic Scholar Academic Graph"
    home = "https://api.semanticscholar.org/api-docs/datasets"
    licence = "ODC-BY 1.0; the README of each dataset has its own terms"
    about = "Over 200 million papers of all fields, with citing sentences. A new release about every week."
    key = "S2_API_KEY"
    url = "https://api.semanticscholar.org/datasets/v1"
    pause = 1.0
    joins = frozenset(dataset.name for dataset in _DATASETS) - {"papers"}
    citations = "citations"

    def releases(self) -> list[str]:
        """The names of its releases, oldest first: dates."""
        return self._answer("release/", lambda names: sorted(map(str, names)))

    def release(self, name: str | None = None) -> Release:
        """A release; the newest one by default."""
        self.check_release(name, self.releases() if name else [])
        return self._answer(f"release/{name or 'latest'}", self._release)

    def files(self, release: str, dataset: str) -> list[RemoteFile]:
        """The files of a dataset, with links that hold for some hours."""
        path = f"release/{release}/dataset/{dataset}"
        return self._answer(path, lambda answer: _files(dataset, "", answer["files"]), needs_key=True)

    def updates(self, since: str, datasets: Sequence[str]) -> list[Update]:
        """The diffs after a release, joined over the datasets."""
        newest = self._answer("release/latest", lambda answer: str(answer["release_id"]))
        if newest == since:
            return []
        path = f"diffs/{since}/to/{newest}"
        diffs = [self._answer(f"{path}/{name}", functools.partial(_diffs, name), needs_key=True) for name in datasets]
        steps = list(diffs[0])
        ends = [since, *(end for _, end in steps)]
        if any(list(diff) != steps for diff in diffs) or [begin for begin, _ in steps] != ends[:-1]:
            raise WebError(f"{self.name} did not answer diffs that follow each other", "Try again later.")
        updates = []
        for step in steps:
            upserts, deletions = (tuple(file for diff in diffs for file in diff[step][at]) for at in (0, 1))
            updates.append(Update(*step, upserts, deletions))
        return updates

    def records(self, file: RemoteFile, lines: Iterable[bytes]) -> Iterator[RawRecord]:
        """The records of a file. Of texts and citations only the ids are read here, for the sake of speed."""
        if file.format.endswith("-deletes"):
            return json_records(lines, functools.partial(parse_deletion, file.dataset))
        if file.dataset == "papers":
            return json_records(lines, parse_paper)
        return _joined(lines, _citation if file.dataset == "citations" else _text)

    def _release(self, answer: Any) -> Release:
        listed = {entry["name"] for entry in answer["datasets"]}
        datasets = tuple(dataset for dataset in _DATASETS if dataset.name in listed)
        return Release(str(answer["release_id"]), datasets, str(answer.get("README") or self.licence))

    def _answer(self, path: str, read: Callable[[Any], Value], *, needs_key: bool = False) -> Value:
        """What a function reads in an answer of the interface."""
        key = os.environ.get(self.key, "").strip()
        if needs_key and not key:
            raise InputError(f"{self.name} needs a key", _ASK)
        try:
            return read(self.web.json(f"{self.url_used}/{path}", headers={"x-api-key": key} if key else {}))
        except WebError as error:
            if error.status in (401, 403):
                raise InputError(f"{self.name} refused the key in {self.key} ({error.status})", _ASK) from None
            raise
        except (LookupError, TypeError, AttributeError, ValueError):
            fault = f"{self.name} answered {path} in another form than it documents"
            raise WebError(fault, "Try again later.") from None


def _files(dataset: str, kind: str, links: Sequence[str]) -> list[RemoteFile]:
    """The files of some links; a ValueError if two have one name."""
    form = f"{dataset}-{kind}" if kind == "deletes" or (kind and dataset == "citations") else dataset
    files = [RemoteFile(dataset, f"{kind}-{_name(link)}".strip("-"), f"s2ag-{form}", link) for link in links]
    if len({file.name for file in files}) < len(files):
        raise ValueError
    return sorted(files, key=lambda file: file.name)


def _diffs(dataset: str, answer: Any) -> dict[tuple[str, str], tuple[list[RemoteFile], list[RemoteFile]]]:
    """Upserts and deletions of a dataset, by the releases between which they lie."""
    diffs = {}
    for diff in answer["diffs"]:
        files = _files(dataset, "upserts", diff["update_files"]), _files(dataset, "deletes", diff["delete_files"])
        diffs[str(diff["from_release"]), str(diff["to_release"])] = files
    return diffs


def _name(link: str) -> str:
    """The name of a file here: that of its link, without what other systems cannot write."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", urlsplit(link).path.rpartition("/")[2]).strip(".")
    return f"{name.removesuffix('.gz').removesuffix('.jsonl') or 'file'}.jsonl.gz"


Ids = tuple[tuple[Citation, ...], str | None, str | None]  # records, paper_id, key of a RawRecord


def _joined(lines: Iterable[bytes], ids: Callable[[dict[str, Any]], Ids]) -> Iterator[RawRecord]:
    for number, raw in enumerate(lines, 1):
        try:
            records, paper_id, key = ids(orjson.loads(raw))
        except (ValueError, TypeError, AttributeError):
            bad = parsed(raw, ids)  # once more, for the reason
            if isinstance(bad, BadRecord) and not raw.isspace():
                yield RawRecord(number, raw, bad=bad)
            continue
        yield RawRecord(number, raw, records, paper_id=paper_id, key=key)


def _text(value: dict[str, Any]) -> Ids:
    return (), _id(value, "corpusid") or read_id(value, "corpusid"), None


def _citation(value: dict[str, Any]) -> Ids:
    citing = _id(value, "citingcorpusid") or read_id(value, "citingcorpusid")
    cited = _id(value, "citedcorpusid")
    # The paper store keeps no citation without a sentence.
    return (Citation(citing, cited),), cited if value.get("contexts") else None, _id(value, "citationid")


def _id(value: dict[str, Any], key: str) -> str | None:
    """An id, which nearly always is a number."""
    number = value.get(key)
    return str(number) if type(number) is int else optional_id(value, key)
