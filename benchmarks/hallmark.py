"""How often `citerec check --online` tells invented references from real ones.

    python benchmarks/hallmark.py ENTRIES.jsonl DATABASE.jsonl [--json] [--without SHARE] [--down NAME]

ENTRIES has entries with a label (`valid` or `hallucinated`) and a kind, DATABASE records of real works, as HALLMARK
(github rpatrik96/hallmark) has them. The records are served on this computer, in the formats of Crossref and OpenAlex.
Every verdict but found, published since, retracted and not checked counts as flagged.

What the figures do not say: the database has every real work; the services of the world do not, and their records
differ more from entries than these do.
"""

import argparse
import json
import re
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from citerec.corpus.matching import plain_title
from citerec.drafts.bibliography import draft_of, read_entries
from citerec.drafts.check import Options, check_draft
from citerec.drafts.online import OnlineMatcher, OnlineSettings, verdict_of
from citerec.sources.look_up import LOOK_UPS

CLEAR = ("found", "published since", "retracted", "not checked")
_SERVICES = ("crossref", "openalex")
_LISTED = 5


class Services:
    """Crossref and OpenAlex on this computer, with some records; those in `down` answer 503."""

    def __init__(self, records: Sequence[Mapping[str, str]], down: Sequence[str] = ()) -> None:
        self.records, self.down = records, down
        self._with_word: dict[str, set[int]] = defaultdict(set)
        for number, record in enumerate(records):
            for word in plain_title(record["title"]).split():
                self._with_word[word].add(number)
        self._with_doi = {record["doi"].lower(): number for number, record in enumerate(records) if "doi" in record}
        self._venues = {record[name] for record in records for name in ("booktitle", "journal") if name in record}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, body = outer.answer(self.path)
                content = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def answer(self, address: str) -> tuple[int, dict[str, Any]]:
        """Status and body of the answer to an address."""
        parts = urlsplit(address)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        _, service, *path = unquote(parts.path).split("/", 3)
        if service in self.down:
            return 503, {}
        written = crossref_item if service == "crossref" else openalex_work
        if path[0] == "sources":
            wanted = set(asked["search"].split())
            near = [venue for venue in sorted(self._venues) if wanted & set(plain_title(venue).split())]
            return 200, {"results": [{"display_name": venue} for venue in near[:_LISTED]]}
        if len(path) > 1:
            number = self._with_doi.get(path[1].removeprefix("doi:").lower())
            found = None if number is None else written(number, self.records[number])
            return (404, {}) if found is None else (200, {"message": found} if service == "crossref" else found)
        words = plain_title(asked.get("query.bibliographic") or asked["search"].replace(" OR ", " ")).split()
        listed = [written(number, self.records[number]) for number in self._found(words)]
        return 200, {"message": {"items": listed}} if service == "crossref" else {"results": listed}

    def _found(self, words: Sequence[str]) -> list[int]:
        """The records whose titles share most words with a query, rare ones most of all."""
        scores = Counter[int]()
        for word in set(words):
            for number in self._with_word.get(word, ()):
                scores[number] += 1 / len(self._with_word[word])  # type: ignore[assignment]
        return [number for number, _ in scores.most_common(_LISTED)]

    def close(self) -> None:
        """Ends it."""
        self._server.shutdown()
        self._server.server_close()


def authors_of(record: Mapping[str, str]) -> list[str]:
    """The authors of a record, without the numbers by which DBLP tells them apart."""
    return [re.sub(r" \d{4}$", "", name) for name in record["author"].split(" and ")]


def crossref_item(number: int, record: Mapping[str, str]) -> dict[str, Any]:
    """A record as Crossref writes it; one without a DOI has a made-up one, as it has none there."""
    venue = record.get("booktitle") or record.get("journal")
    names = [name.rsplit(" ", 1) for name in authors_of(record)]
    return {
        "DOI": record.get("doi", ""),
        "id": f"r{number}",
        "type": "proceedings-article" if venue else "posted-content",
        "title": [record["title"]],
        "author": [{"given": one[0], "family": one[-1]} if len(one) > 1 else {"name": one[0]} for one in names],
        "issued": {"date-parts": [[int(record["year"])]]},
        "container-title": [venue] if venue else [],
        "URL": record.get("url", ""),
    }


def openalex_work(number: int, record: Mapping[str, str]) -> dict[str, Any]:
    """A record as OpenAlex writes it."""
    venue = record.get("booktitle") or record.get("journal") or "arXiv (Cornell University)"
    doi = record.get("doi")
    return {
        "id": f"https://openalex.org/W{number + 1}",
        "ids": {"doi": f"https://doi.org/{doi}"} if doi else {},
        "title": record["title"],
        "publication_year": int(record["year"]),
        "primary_location": {"source": {"display_name": venue}, "landing_page_url": record.get("url")},
        "authorships": [{"author": {"display_name": name}} for name in authors_of(record)],
        "type": "article",
    }


def verdicts_of(entries: Sequence[Mapping[str, Any]], records: Sequence[Mapping[str, str]], down: Sequence[str]) -> Any:
    """The verdict and the codes of each entry, by key; and what failed."""
    services = Services(records, down)
    settings = OnlineSettings.model_validate(
        {name: {"url": f"{services.url}/{name}", "pace": 0, "tries": 1} for name in _SERVICES} | {"keep_days": 0}
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "entries.bib"
        path.write_text("\n".join(map(entry_of, entries)), encoding="utf-8")
        bibliography = read_entries([path])
        matcher = OnlineMatcher([LOOK_UPS[name](settings.manners(name)) for name in _SERVICES])
        findings = check_draft(draft_of(bibliography), bibliography, None, Options(online=True), match=matcher)
    services.close()
    codes = defaultdict(set)
    for finding in findings:
        codes[finding.line].add(finding.code)
    read = {one.paper.paper_id: codes[one.line] for one in bibliography.entries}
    return {key: (verdict_of(matcher.matches[key], found), found) for key, found in read.items()}, matcher.failed


def entry_of(entry: Mapping[str, Any]) -> str:
    """The text of an entry; braces that are not closed are left out."""
    fields = {
        name: value if value.count("{") == value.count("}") else re.sub(r"[{}]", "", value)
        for name, value in entry["fields"].items()
    }
    return f"@{entry['type']}{{{entry['key']},\n" + ",\n".join(f"  {k} = {{{v}}}" for k, v in fields.items()) + "\n}"


def figures(entries: Sequence[Mapping[str, Any]], verdicts: Mapping[str, tuple[str, set[str]]]) -> dict[str, Any]:
    """Detection, false positives and F1; and the verdicts of each kind."""
    flagged = {key for key, (verdict, _) in verdicts.items() if verdict not in CLEAR}
    wrong = [one["key"] for one in entries if one["label"] == "hallucinated"]
    right = [one["key"] for one in entries if one["label"] != "hallucinated"]
    hits, alarms = sum(key in flagged for key in wrong), sum(key in flagged for key in right)
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    for one in entries:
        kinds[one["kind"] or one["label"]][verdicts[one["key"]][0] if one["key"] in verdicts else "unread"] += 1
    return {
        "detection": hits / max(1, len(wrong)),
        "false_positives": alarms / max(1, len(right)),
        "f1": 2 * hits / max(1, hits + alarms + len(wrong)),
        "kinds": {kind: dict(counts) for kind, counts in sorted(kinds.items())},
        "alarms": {key: sorted(verdicts[key][1]) for key in right if key in flagged},
        "missed": [key for key in wrong if key not in flagged],
    }


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("entries", type=Path)
    parser.add_argument("database", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--without", type=float, default=0.0, help="share of the real works that are left out")
    parser.add_argument("--down", action="append", default=[], choices=_SERVICES, help="a service that fails")
    options = parser.parse_args()
    entries, records = (
        [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
        for path in (options.entries, options.database)
    )
    step = round(1 / options.without) if options.without else 0
    lacking = {plain_title(one["title"]) for number, one in enumerate(records) if step and number % step == 0}
    kept = [one for one in records if plain_title(one["title"]) not in lacking]
    verdicts, failed = verdicts_of(entries, kept, options.down)
    found = figures(entries, verdicts)
    if lacking:
        without = [one["key"] for one in entries if plain_title(one["fields"]["title"]) in lacking]
        found["without"] = dict(Counter(verdicts[key][0] for key in without))
    found["failed"] = {title: error.message for title, error in failed.items()}
    if options.json:
        print(json.dumps(found))
        return
    print(*(f"{name} {found[name]:.3f}" for name in ("detection", "false_positives", "f1")), sep="   ")
    for kind, counts in found["kinds"].items():
        print(f"{kind:24}", ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    print("taken out:", found.get("without", "none"), "  failed:", found["failed"] or "none")
    print("false alarms:", found["alarms"], "\nmissed:", found["missed"])


if __name__ == "__main__":
    main()
