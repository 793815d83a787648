"""The ACL Anthology: one BibTeX file of all its papers, made anew each day."""

from collections.abc import Iterable, Iterator, Sequence

from citerec.corpus.bibtex import anthology_entries, parse_entry
from citerec.corpus.reading import BadRecord
from citerec.files.http import size_of
from citerec.sources.base import Corpus, Dataset, RawRecord, Release, RemoteFile, Update, day_of

_FILE = "anthology+abstracts.bib.gz"


class Anthology(Corpus):
    """The papers of the ACL Anthology, with abstracts where it has them."""

    name = "acl-anthology"
    title = "ACL Anthology"
    home = "https://aclanthology.org"
    licence = "CC BY 4.0 (papers before 2016: CC BY-NC-SA 3.0)"
    about = (
        "Computational linguistics, complete, many with abstracts: some 120,000 papers, tens of MB compressed. The "
        "file is made anew each day; an update fetches it again, and compares."
    )
    url = "https://aclanthology.org"
    workers = 1

    def release(self, name: str | None = None) -> Release:
        """The one release that is there, the day on which the file was made; InputError if another is named."""
        newest, size = self._newest(name)
        papers = Dataset("papers", "BibTeX entries, with abstracts; volumes are left out", size)
        terms = "CC BY 4.0 for papers since 2016; CC BY-NC-SA 3.0 for earlier ones. Other publishers keep their rights."
        return Release(newest, (papers,), terms)

    def files(self, release: str, dataset: str) -> list[RemoteFile]:
        """The one file."""
        _, size = self._newest(release)
        return [RemoteFile(dataset, _FILE, self.name, f"{self.url_used}/{_FILE}", size)]

    def updates(self, since: str, _datasets: Sequence[str]) -> list[Update]:
        """The whole file again, if it is newer: it does not say what has changed."""
        newest, _ = self._newest()
        return [Update(since, newest, tuple(self.files(newest, "papers")), (), is_whole=True)] if newest > since else []

    def records(self, _file: RemoteFile, lines: Iterable[bytes]) -> Iterator[RawRecord]:
        """The entries; volumes have no records."""
        for number, raw, _ in anthology_entries((number, raw, 0) for number, raw in enumerate(lines, 1)):
            records = parse_entry(raw)
            bad = next((record for record in records if isinstance(record, BadRecord)), None)
            good = tuple(record for record in records if not isinstance(record, BadRecord))
            yield RawRecord(number, raw, good, bad)

    def _newest(self, release: str | None = None) -> tuple[str, int | None]:
        headers = self.web.headers(f"{self.url_used}/{_FILE}")
        newest = day_of(headers)
        self.check_release(release, [newest])
        return newest, size_of(headers)
