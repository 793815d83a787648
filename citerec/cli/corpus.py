"""Fetch corpora of papers, cut to size, and bring them up to date.

Example: citerec corpus get acl-anthology --out corpora/acl --build indexes/acl
"""

import math
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from citerec.cli import index as indexes
from citerec.cli.console import confirm, note, output, say, size_in_words
from citerec.cli.main import UsageError
from citerec.cli.options import Count, File, Limits, MaxBad, Out, Workers, named_pairs, option_group
from citerec.corpus.merging import merge_corpora
from citerec.errors import InputError
from citerec.evaluation.rendering import Table, left, right
from citerec.evaluation.rendering import show as show_table
from citerec.files.progress import progress_bar
from citerec.files.text import one_line
from citerec.index.build import may_hold_index
from citerec.models.find import DEFAULT_ENCODER
from citerec.sources import fetch
from citerec.sources.base import CORPORA
from citerec.sources.cut import Cut
from citerec.sources.estimate import Estimate, estimate
from citerec.sources.part import Manner, Place

_SHOWN_RELEASES = 5
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


@option_group
class Kept(Limits):
    """What is kept of a release.

    Attributes:
        languages: Only this language, such as "en"; may be repeated.
        ids: Only papers of this file. It has one id a line: of the source, DOI:…, ARXIV:… or ACL:…
        cited_by: Only the papers of this bibliography, those that they cite, and those that cite them.
        hops: How many citations away from --cited-by.
    """

    languages: Annotated[tuple[str, ...], Parameter(name="--language")] = ()
    ids: File = None
    cited_by: File = None
    hops: Count = 1


def show(what: Annotated[str | None, Parameter(name="SOURCE|FOLDER")] = None, /, *, url: str | None = None) -> None:
    """Show the releases, sizes and terms of a SOURCE, or what a fetched FOLDER holds; without it, all sources.

    Example: citerec corpus show s2ag

    Args:
        what: The source or the folder.
        url: Another address of the source's interface, such as that of a mirror.
    """
    if what is None:
        for name, part in CORPORA.items():
            state = "is set" if part.key and os.environ.get(part.key) else "is not set"
            say(f"{name}: {part.title}\n  {part.about}\n  Licence: {part.licence}")
            say(f"  Key: {f'{part.key}, which {state}' if part.key else 'none needed'}. More: {part.home}")
        return
    if fetch.KIND.is_at(Path(what)) or Path(what).is_dir():  # a folder that is no corpus: the error says what it is
        _show_folder(fetch.FetchedCorpus.read(Path(what)))
        return
    source = Place(what, url).open()
    releases, release = source.releases(), source.release()
    say(f"{source.name}: {source.title}. {source.about}")
    say(f"Releases: {len(releases):,}. The newest: {', '.join(reversed(releases[-_SHOWN_RELEASES:]))}")
    rows = [
        [one.name, one.bytes and size_in_words(one.bytes), "yes" if one.is_default else "if named", one.about]
        for one in release.datasets
    ]
    show_table(output(), Table([*left("dataset"), *right("about"), *left("fetched", "holds")], rows))
    _show_terms(release.terms)


def get(
    source: str,
    /,
    *,
    out: Out,
    release: str | None = None,
    datasets: Annotated[tuple[str, ...], Parameter(name="--dataset")] = (),
    kept: Kept = Kept(),
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
        built: Build an index of it too, with vectors.
        only_estimate: Tell how much it is and how long it takes, and stop.
        yes: Begin without a question.
    """
    cut = Cut(kept.filters, kept.languages, kept.ids, kept.cited_by, kept.hops)
    if built and not may_hold_index(built):  # now, and not after hours
        raise InputError(f"{built} exists and is not an index", "Give another --build, or remove it first.")
    if made := fetch.fetched_already(out, source, release, cut):
        say(f"{out} holds this already: {made.papers:,} papers. Bring it up to date: citerec corpus update {out}")
    else:
        plan = fetch.make_plan(Place(source, server.url), out, release, datasets, cut)
        if fetch.unfinished(out) and not only_estimate:
            note(f"Going on with release {plan.release.name}, which was begun before.")
        else:
            _agree(plan, server.workers, index=built is not None, ask=not (only_estimate or yes))
            if only_estimate:
                return
        made = server.fetch(lambda manner: fetch.get_corpus(plan, manner))
        _tell(made)
    if built and not only_estimate:
        indexes.build((made.folder,), out=built, vectors=indexes.VectorOptions(DEFAULT_ENCODER))


def update(
    folder: Path,
    /,
    *,
    index_path: Annotated[Path | None, Parameter(name="--index")] = None,
    server: Server = Server(),
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
    made = server.fetch(lambda manner: fetch.update_corpus(folder, manner, server.url))
    if updates := made.steps[len(before.steps) :]:
        say(f"{folder} is at release {made.release} now: {made.papers:,} papers, {before.papers:,} before.")
        if without := sum(step.without_text for step in updates):
            note(
                f"Papers that are new here, and whose abstract is not in the updates: {without:,}. "
                "Fetch the corpus again to have them, if there are any."
            )
    else:
        say(f"{folder} is at the newest release, {made.release}: {made.papers:,} papers.")
    if index_path:
        indexes.add(index_path, (folder,))


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
    named = {name: Path(path) for name, path in named_pairs(sources, "NAME=PATH, such as mine=my.bib,").items()}
    if wrong := [name for name in named if not re.fullmatch(r"[\w-]+", name)]:
        raise UsageError(f"{wrong[0]!r} is no name of a source: it has letters, digits and - only")
    with progress_bar() as on_progress:
        counts = merge_corpora(named, out, on_progress, workers=workers, max_bad=max_bad)
    say(f"{out}: {counts.records:,} records are {counts.works:,} papers; {counts.shared:,} are of several sources.")
    say(f"Build an index of it: citerec index build {out} --out indexes/{out.name}")


def _agree(plan: fetch.Plan, workers: int | None, *, index: bool, ask: bool) -> None:
    """Shows terms, sizes and time; stops if the disk is too small or the user does not agree."""
    found = estimate(plan, workers)
    say(f"{plan.place.corpus}, release {plan.release.name}, to {plan.out}")
    _show_terms(plan.release.terms)
    _show_estimate(plan, found, index=index)
    needed = found.room(index=index)
    standing = next(folder for folder in (plan.out.resolve(), *plan.out.resolve().parents) if folder.exists())
    free = shutil.disk_usage(standing).free
    if needed > free:  # never if it is not known
        raise InputError(
            f"{plan.out} needs about {size_in_words(needed)}, and {size_in_words(free)} are free",
            "Make room, cut it smaller, or give another --out.",
        )
    if ask and sys.stdin.isatty() and sys.stderr.isatty() and not confirm("Fetch it?", default=True):
        raise KeyboardInterrupt


def _show_estimate(plan: fetch.Plan, found: Estimate, *, index: bool) -> None:
    def size(number: float) -> str | None:
        return None if math.isnan(number) else size_in_words(number)

    rows = [
        [one.dataset, one.files, size(one.bytes), one.passes, _rounded(one.records), size(one.kept), _time(one.seconds)]
        for one in found.datasets
    ]
    rows.append(["in all", None, size(found.bytes), None, None, size(found.kept), _time(found.seconds)])
    columns = [*left("dataset"), *right("files", "to read", "times", "records kept", "on disk", "time")]
    show_table(output(), Table(columns, rows))
    if plan.cut.cited_by:
        say("How many papers are near to the bibliography is known only when the citations have been read.")
    elif found.papers == 0:
        note("No paper of the first megabytes is of this cut: are fields and venues spelled as the source does?")
    if index and not math.isnan(found.papers):
        room = found.room(index=True) - found.room(index=False)
        say(f"The index takes up to {size_in_words(room)} while it is built, and about {_time(found.index_seconds())}.")
    say("These are estimates from the first megabytes of each dataset.")


def _rounded(number: float) -> str | None:
    """A number to two digits."""
    if math.isnan(number):
        return None
    whole = round(number)
    return f"{round(whole, 2 - len(str(whole))):,}"


def _time(seconds: float) -> str | None:
    if math.isnan(seconds):
        return None
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def _show_terms(terms: str) -> None:
    text = one_line(terms)
    say(f"Terms of use: {text[:_LONGEST_TERMS]}{' …' * (len(text) > _LONGEST_TERMS)}")


def _tell(made: fetch.FetchedCorpus) -> None:
    counts = {name: sum(part.kept for part in made.parts if part.dataset == name) for name in made.datasets}
    others = [f"{count:,} of {name}" for name, count in list(counts.items())[1:]]
    beside = f" With them: {', '.join(others)}." if others else ""
    say(f"{made.folder}: {made.papers:,} papers of {made.source} {made.release}, {size_in_words(made.bytes)}.{beside}")
    if bad := sum(part.bad for part in made.parts):
        note(f"Records that could not be read: {bad:,}. See {made.folder / 'quarantine.jsonl'}")


def _show_folder(made: fetch.FetchedCorpus) -> None:
    def stated(value: Any) -> str:
        """A part of a cut: a file by its name, several values with commas between them."""
        if isinstance(value, dict):
            return str(value["name"])
        return ", ".join(map(str, value)) if isinstance(value, list) else str(value)

    say(f"{made.folder}: {made.papers:,} papers of {made.source}, release {made.release}, {size_in_words(made.bytes)}")
    say(f"Cut: {', '.join(f'{name} {stated(value)}' for name, value in made.cut.items()) or 'none, all papers'}")
    columns = [*left("release"), *right("papers", "removed", "read", "kept", "bad", format=",")]
    rows = [
        [step.release, step.papers, step.left]
        + [sum(getattr(part, name) for part in step.parts) for name in ("read", "kept", "bad")]
        for step in made.steps
    ]
    show_table(output(), Table(columns, rows))
    _show_terms(made.terms)
