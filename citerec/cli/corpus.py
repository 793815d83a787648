"""Fetch corpora of papers, cut to size, and bring them up to date.

Example: citerec corpus get acl-anthology --out corpora/acl --build indexes/acl
"""

import math
import os
import re
import shutil
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from citerec.cli import index as indexes
from citerec.cli.console import confirm, end_of_check, note, say, size_in_words
from citerec.cli.options import Count, File, Limits, MaxBad, Out, Workers, named_paths, option_group
from citerec.corpus.ingest import merge_corpora
from citerec.errors import InputError, UsageError
from citerec.evaluation.tables import Table, left, right, said
from citerec.files.progress import progress_bar
from citerec.files.text import one_line
from citerec.index.manifest import may_hold_index
from citerec.sources import fetch
from citerec.sources.base import CORPORA
from citerec.sources.fetch import Cut, Manner, Place, estimate

_LONGEST_TERMS = 1000


@option_group
class Server:
    """How files are fetched, and from where.

    Attributes:
        workers: Files that are fetched at once.  [default: as many as the source allows]
        url: Another address of the source's interface, such as that of a mirror.
    """

    workers: Count | None = None
    max_bad: MaxBad = 0.05
    url: str | None = None

    def fetch(self, work: Callable[[Manner], fetch.FetchedCorpus]) -> fetch.FetchedCorpus:
        """Fetches with a bar of the progress."""
        with progress_bar() as on_progress:
            return work(Manner(self.workers, self.max_bad, on_progress, note))


def show(what: Annotated[str | None, Parameter(name="SOURCE|FOLDER")] = None, /, *, url: str | None = None) -> None:
    """Show the releases, sizes and terms of a SOURCE, or what a fetched FOLDER holds; without it, all sources.

    Example: citerec corpus show s2ag

    Args:
        what: The source or the folder.
        url: Another address of the source's interface, such as that of a mirror.
    """
    if what is None:
        for name, part in CORPORA.items():
            key = f"{part.key}, which is {'' if os.environ.get(part.key) else 'not '}set" if part.key else "none needed"
            say(f"{name}: {part.title}\n  {part.about}\n  Licence: {part.licence}\n  Key: {key}. More: {part.home}")
        return
    if fetch.KIND.is_at(Path(what)) or Path(what).is_dir():  # a folder that is no corpus: the error says what it is
        _show_folder(fetch.FetchedCorpus.read(Path(what)))
        return
    source = Place(what, url).open()
    releases, release = source.releases(), source.release()
    table = Table([*left("dataset"), *right("about"), *left("fetched", "holds")])
    for one in release.datasets:
        fetched = "yes" if one.is_default else "if named"
        table.rows.append([one.name, one.bytes and size_in_words(one.bytes), fetched, one.about])
    newest = f"Releases: {len(releases):,}. The newest: {release.name}"
    say(f"{source.name}: {source.title}. {source.about}", newest, table, _terms(release.terms))


def get(
    source: str,
    /,
    *,
    out: Out,
    release: str | None = None,
    datasets: Annotated[tuple[str, ...], Parameter(name="--dataset")] = (),
    limits: Limits = Limits(),
    languages: Annotated[tuple[str, ...], Parameter(name="--language")] = (),
    ids: File = None,
    cited_by: File = None,
    hops: Count = 1,
    built: Annotated[Path | None, Parameter(name="--build", metavar="INDEX")] = None,
    only_estimate: Annotated[bool, Parameter(name="--estimate")] = False,
    yes: bool = False,
    server: Server = Server(),
) -> None:
    """Fetch a release of SOURCE, cut to size while it streams.

    Only what is kept is written. Abstracts, summaries, citations and vectors are kept for papers that
    are kept. Repeat the command to go on after an interruption.

    Example: citerec corpus get s2ag --field "Computer Science" --year-from 2010 --out cs --build indexes/cs

    Args:
        source: The source.
        out: The folder to make.
        release: The release.  [default: the newest]
        datasets: Only this dataset, with the papers; may be repeated.
        languages: Only this language, such as "en"; may be repeated.
        ids: Only papers of this file. It has one id a line: of the source, DOI:…, ARXIV:… or ACL:…
        cited_by: Only the papers of this bibliography, those that they cite, and those that cite them.
        hops: How many citations away from --cited-by.
        built: Build an index of it too, with vectors.
        only_estimate: Tell how much it is and how long it takes, and stop.
        yes: Begin without a question.
    """
    cut = Cut(limits.filters, languages, ids, cited_by, hops)
    if built and not may_hold_index(built):  # now, and not after hours
        raise InputError(f"{built} exists and is not an index", "Give another --build, or remove it first.")
    if data := fetch.fetched_already(out, source, release, cut):
        say(f"{out} holds this already: {data.papers:,} papers. Bring it up to date: citerec corpus update {out}")
    else:
        plan = fetch.make_plan(Place(source, server.url), out, release, datasets, cut)
        if fetch.unfinished(out) and not only_estimate:
            note(f"Going on with release {plan.release.name}, which was begun before.")
        else:
            _agree(plan, server.workers, index=built is not None, ask=not (only_estimate or yes))
            if only_estimate:
                return
        data = server.fetch(lambda manner: fetch.get_corpus(plan, manner))
        say(f"{data.folder}: {data.papers:,} papers of {data.source} {data.release}, {size_in_words(data.bytes)}.")
        if bad := sum(part.bad for part in data.parts):
            note(f"Records that could not be read: {bad:,}. See {data.folder / 'quarantine.jsonl'}")
    if built and not only_estimate:
        indexes.build((data.folder,), out=built)


def update(
    folder: Path, /, *, index_path: Annotated[Path | None, Parameter(name="--index")] = None, server: Server = Server()
) -> None:
    """Bring a fetched corpus up to date with the newest release of its source.

    What changed is cut to size as the corpus was. A paper that is not of the cut any more is deleted.
    Repeat the command to go on after an interruption.

    Example: citerec corpus update cs --index indexes/cs

    Args:
        folder: The corpus.
        index_path: Bring this index of it up to date too.
    """
    before = fetch.FetchedCorpus.read(folder)
    after = server.fetch(lambda manner: fetch.update_corpus(folder, manner, server.url))
    state = f"is at release {after.release} now" if len(after.steps) > len(before.steps) else "is at the newest release"
    say(f"{folder} {state}: {after.papers:,} papers, {before.papers:,} before.")
    if index_path:
        indexes.add(index_path, (folder,))


def verify(folder: Path, /) -> None:
    """Check that no file of a fetched FOLDER is missing or damaged.

    Example: citerec corpus verify corpora/s2ag

    Args:
        folder: The folder.
    """
    again = f"Remove it, and fetch it again: citerec corpus get … --out {folder}"
    with progress_bar() as on_progress:
        end_of_check(folder, fetch.FetchedCorpus.read(folder).faults(on_progress), again)


def merge(
    sources: Annotated[tuple[str, ...], Parameter(name="NAME=PATH")],
    /,
    *,
    out: Out,
    workers: Workers = None,
    max_bad: MaxBad = 0.05,
) -> None:
    """Merge the papers of several SOURCES: one record for each work.

    A source is a fetched corpus, or a file or folder of papers, under a name. Records are of one work
    if they share a DOI, an arXiv id or an ACL id, else if title, year and an author agree. Of a field
    that several sources have, the value of the first counts; venue and year are those of the published
    version before those of a preprint. Each record says which source each field came from (origins).
    Build an index of it: citerec index build FOLDER.

    Example: citerec corpus merge s2ag=cs acl-anthology=corpora/acl mine=my.bib --out merged

    Args:
        sources: The sources, each under a name.
        out: The folder to make, or to replace.
    """
    named = named_paths(sources, "NAME=PATH, such as mine=my.bib,")
    if wrong := [name for name in named if not re.fullmatch(r"[\w-]+", name)]:
        raise UsageError(f"{wrong[0]!r} is no name of a source: it has letters, digits and - only")
    with progress_bar() as on_progress:
        counts = merge_corpora(named, out, on_progress, workers=workers, max_bad=max_bad)
    said = "{records:,} records are {works:,} papers; {shared:,} are of several sources.".format_map(counts)
    say(f"{out}: {said}\nBuild an index of it: citerec index build {out} --out indexes/{out.name}")


def _agree(plan: fetch.Plan, workers: int | None, *, index: bool, ask: bool) -> None:
    """Shows terms, sizes and time; stops if the disk is too small or the user does not agree."""
    estimates = estimate(plan, workers)
    rows = [[one.dataset, *map(_known, (one.bytes, one.kept)), _time(one.seconds)] for one in estimates]
    table = Table([*left("dataset"), *right("to read", "on disk", "time")], rows)
    what = f"{plan.place.corpus}, release {plan.release.name}, to {plan.out}"
    say(what, _terms(plan.release.terms), table)
    whole = estimates[-1]
    needed = whole.room(index=index)
    if index and not math.isnan(needed):
        room, time = size_in_words(needed - whole.room(index=False)), _time(whole.index_seconds())
        say(f"The index takes up to {room} while it is built, and about {time}.")
    say("These are estimates from the first megabytes of each dataset.")
    if whole.records == 0:
        note("No paper of the first megabytes is of this cut: are fields and venues spelled as the source does?")
    standing = next(folder for folder in (plan.out.resolve(), *plan.out.resolve().parents) if folder.exists())
    free = shutil.disk_usage(standing).free
    if needed > free:  # never if it is not known
        fault = f"{plan.out} needs about {size_in_words(needed)}, and {size_in_words(free)} are free"
        raise InputError(fault, "Make room, cut it smaller, or give another --out.")
    if ask and sys.stdin.isatty() and sys.stderr.isatty() and not confirm("Fetch it?", default=True):
        raise KeyboardInterrupt


def _known(size: float) -> str | None:
    return None if math.isnan(size) else size_in_words(size)


def _time(seconds: float) -> str | None:
    return None if math.isnan(seconds) else str(timedelta(seconds=math.ceil(seconds)))


def _terms(terms: str) -> str:
    text = one_line(terms)
    return f"Terms of use: {text[:_LONGEST_TERMS]}{' …' * (len(text) > _LONGEST_TERMS)}"


def _show_folder(corpus: fetch.FetchedCorpus) -> None:
    size = f"{corpus.papers:,} papers of {corpus.source}, release {corpus.release}, {size_in_words(corpus.bytes)}"
    values = {name: one["name"] if isinstance(one, dict) else said(one) for name, one in corpus.cut.items()}
    cut = ", ".join(f"{name} {value}" for name, value in values.items()) or "none, all papers"
    rows = [[step.release, step.papers, step.left] for step in corpus.steps]
    table = Table([*left("release"), *right("papers", "removed", format=",")], rows)
    say(f"{corpus.folder}: {size}", f"Cut: {cut}", table, _terms(corpus.terms))
