"""Semantic Scholar's Academic Graph: releases, and the diffs between them, by the Datasets API."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import orjson

from citerec.corpus.json_lines import BadRecord, parsed
from citerec.corpus.s2ag import parse_paper
from citerec.corpus.values import optional_id, read_id
from citerec.errors import InputError
from citerec.files.http import WebError
from citerec.records import Citation, Deletion
from citerec.sources.base import Corpus, Dataset, RawRecord, Release, RemoteFile, Update, json_records

_GIGABYTE = 10**9
# The sizes of a recent release: the interface does not say any.
_DATASETS = {
    "papers": Dataset("papers", "titles, authors, venues, years, fields of study, counts of citations", 49 * _GIGABYTE),
    "abstracts": Dataset("abstracts", "abstracts", 26 * _GIGABYTE),
    "tldrs": Dataset("tldrs", "summaries in a sentence", 6 * _GIGABYTE),
    "citations": Dataset("citations", "who cites whom, with the sentences and intents", 359 * _GIGABYTE),
    "embeddings-specter_v2": Dataset(
        "embeddings-specter_v2", "vectors made by SPECTER2, 768 numbers each", is_default=False
    ),
}
_KEYS = {"citations": "citationid"}


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
    joins = frozenset(_DATASETS) - {"papers"}
    citations = "citations"

    def releases(self) -> list[str]:
        """The names of its releases, oldest first: dates."""
        found = self.web.json(f"{self.url_used}/release/", headers=self._key())
        if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
            raise self._odd("a list of releases")
        return sorted(found)

    def release(self, name: str | None = None) -> Release:
        """A release; the newest one by default."""
        try:
            found = self._object(f"release/{name or 'latest'}")
        except WebError as error:
            if error.status != 404:
                raise
            raise InputError(
                f"there is no release {name} of {self.name}", f"List them: citerec corpus show {self.name}"
            ) from None
        listed = [entry.get("name") for entry in _objects(found.get("datasets"))]
        return Release(
            str(found.get("release_id") or name),
            tuple(dataset for dataset in _DATASETS.values() if dataset.name in listed),
            str(found.get("README") or self.licence),
        )

    def files(self, release: str, dataset: str) -> list[RemoteFile]:
        """The files of a dataset, with links that hold for some hours."""
        found = self._object(f"release/{release}/dataset/{dataset}", needs_key=True)
        return self._files(found.get("files"), dataset, "")

    def updates(self, since: str, datasets: Sequence[str]) -> list[Update]:
        """The diffs after a release, joined over the datasets."""
        newest = str(self._object("release/latest").get("release_id"))
        if newest == since:
            return []
        steps: dict[tuple[str, str], tuple[list[RemoteFile], list[RemoteFile]]] = {}
        chains = []
        for dataset in datasets:
            found = self._object(f"diffs/{since}/to/{newest}/{dataset}", needs_key=True)
            diffs = _objects(found.get("diffs"))
            chains.append([(str(diff.get("from_release")), str(diff.get("to_release"))) for diff in diffs])
            for step, diff in zip(chains[-1], diffs, strict=True):
                upserts, deletions = steps.setdefault(step, ([], []))
                upserts += self._files(diff.get("update_files"), dataset, "upserts")
                deletions += self._files(diff.get("delete_files"), dataset, "deletes")
        chain = max(chains, key=len, default=[])
        if any(other != chain for other in chains) or [begin for begin, _ in chain] != [
            since,
            *[end for _, end in chain][:-1],
        ]:
            raise self._odd("diffs that follow each other")
        return [Update(*step, tuple(steps[step][0]), tuple(steps[step][1])) for step in chain]

    def records(self, file: RemoteFile, lines: Iterable[bytes]) -> Iterator[RawRecord]:
        """The records of a file. Of texts and citations only the ids are read here, for the sake of speed."""
        if file.format.endswith("-deletes"):
            key = _KEYS.get(file.dataset, "corpusid")
            return json_records(lines, lambda value: Deletion(file.dataset, read_id(value, key)))
        if file.dataset == "papers":
            return json_records(lines, parse_paper)
        return _joined(lines, _citation if file.dataset == "citations" else _text)

    def _files(self, links: Any, dataset: str, kind: str) -> list[RemoteFile]:
        if not isinstance(links, list) or not all(isinstance(link, str) for link in links):
            raise self._odd(f"links to the files of {dataset}")
        form = f"{dataset}-{kind}" if kind == "deletes" or (kind and dataset == "citations") else dataset
        files = {
            name: RemoteFile(dataset, f"{kind}-{name}" if kind else name, f"s2ag-{form}", link)
            for name, link in ((_name(link), link) for link in links)
        }
        if len(files) < len(links):
            raise self._odd(f"files of {dataset} of different names")
        return [files[name] for name in sorted(files)]

    def _object(self, path: str, *, needs_key: bool = False) -> dict[str, Any]:
        headers = self._key()
        if needs_key and not headers:
            raise _key_missing(f"{self.name} needs a key")
        try:
            found = self.web.json(f"{self.url_used}/{path}", headers=headers)
        except WebError as error:
            if error.status in (401, 403):
                raise _key_missing(f"{self.name} refused the key in {self.key} ({error.status})") from None
            raise
        if not isinstance(found, dict):
            raise self._odd("a JSON object")
        return found

    def _key(self) -> Mapping[str, str]:
        key = os.environ.get(self.key, "").strip()
        return {"x-api-key": key} if key else {}

    def _odd(self, wanted: str) -> WebError:
        return WebError(f"{self.name} did not answer {wanted}", "Try again later.")


def _key_missing(what: str) -> InputError:
    return InputError(what, "Ask for one at https://www.semanticscholar.org/product/api and set S2_API_KEY to it.")


def _objects(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


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
            if raw.isspace():
                continue
            made = parsed(raw, ids)  # once more, for the reason
            if isinstance(made, BadRecord):
                yield RawRecord(number, raw, bad=made)
                continue
            records, paper_id, key = made
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
    found = value.get(key)
    return str(found) if type(found) is int else optional_id(value, key)
