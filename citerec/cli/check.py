"""`citerec check`: what should be mended in a draft and its bibliography."""

import contextlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from rich.text import Text

from citerec.cli import options
from citerec.cli.console import confirm, give, note, note_missing, say
from citerec.drafts import Files, read_draft
from citerec.drafts.bibliography import Entries, Entry, Mending, draft_of, mend_entries, mended, read_entries
from citerec.drafts.check import Finding, Material, Options, findings_by_entry, findings_of, sarif, selected
from citerec.drafts.online import OnlineMatcher, OnlineSettings, verdicts_json
from citerec.drafts.project import project_of
from citerec.drafts.support import SUPPORTS, Judgement
from citerec.errors import UsageError
from citerec.files.progress import progress_bar
from citerec.files.text import counted, names_in
from citerec.files.writing import apart
from citerec.retrieve.base import OpenIndex

_Codes = Annotated[tuple[str, ...], Parameter(metavar="CODE")]
_STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}


@options.option_group
class OnlineOptions(options.Tuning):
    """What web services are asked.

    Attributes:
        assignments: Change one setting of --online; may be repeated. --print-config shows which there are.
        config: A TOML file of such settings; -c wins over it.
        online: Ask Crossref, OpenAlex, Semantic Scholar, DBLP and arXiv whether the entries exist, and what differs.
            Only ids, title, first author and venue are sent.
        retractions: A Retraction Watch table (retraction_watch.csv, as Crossref publishes it), for retractions without
            --online.
    """

    online: bool = False
    retractions: options.File = None

    @contextlib.contextmanager
    def matcher(self, index: OpenIndex | None) -> Iterator[OnlineMatcher | None]:
        """What asks the services; None where nothing is to be asked."""
        settings = self.settings(OnlineSettings).of(OnlineSettings)
        opened = settings.opened() if self.online else contextlib.nullcontext([])
        with opened as services, progress_bar() as on_progress:
            asks = self.online or self.retractions
            yield OnlineMatcher(services, index, self.retractions, on_progress) if asks else None


def check(
    file: Path,
    /,
    *,
    bibs: Annotated[tuple[Path, ...], Parameter(name="--bib")] = (),
    index_path: Annotated[Path | None, Parameter(name="--index")] = None,
    online: OnlineOptions = OnlineOptions(),
    support: bool = False,
    fix: Annotated[Literal["ask", "all"] | None, Parameter(metavar="[all]", show_choices=False)] = None,
    select: _Codes = (),
    ignore: _Codes = (),
    year: Annotated[int | None, Parameter(metavar="YEAR")] = None,
    strict: bool = False,
    encoding: options.Encoding = None,
    form: Annotated[Literal["table", "json", "sarif"], Parameter(name="--format")] = "table",
    out: options.OutFile = None,
) -> int:
    r"""Check the citations of a draft, or the entries of a .bib file.

    Finds keys without an entry, entries that cannot be read or are there twice, entries with the DOI of
    another work, HTML, or no names for authors, entries from the future, places that still want a citation
    (\cite{?}, [@?]), and sentences that look like they need one. With --online or --index also entries that
    nobody knows or that differ from their paper, preprints that were published since, and retracted papers.
    Exit code: 0 if there is no error and no warning, 1 if there is, 2 for bad input.

    Example: citerec check paper.tex --online

    A bibliography alone, mended where the right value is known: citerec check refs.bib --online --fix

    Only what is wrong with keys: citerec check paper.tex --select key-unknown,key-duplicate

    Args:
        file: The draft; or a .bib file, all of whose entries are checked.
        bibs: A .bib file; may be repeated.  [default: those that FILE names]
        index_path: Compare the cited entries with the papers of an index.  [default: that of citerec.toml, if it names
            one]
        support: Compare each citing sentence with its paper: which sentence of the abstract says it, and whether the
            paper may not fit. Abstracts are those of the bibliography, and of the index.
        fix: Show for each finding with a known right value what would change, and ask whether to change it; with
            --fix=all change all of it. Nothing else of the files changes.
        select: Only these checks; may be repeated, or several with commas: key-unknown, place-open and others
            (docs/checking.md).  [default: all but entry-uncited]
        ignore: None of these checks; as --select.
        year: Year of the draft.  [default: this year]
        strict: Exit code 1 for notes too.
        form: How the findings are given; sarif is SARIF 2.1.0.
    """
    if fix == "ask" and form != "table":
        raise UsageError("--fix asks; with --format give --fix=all")
    of_year = {} if year is None else {"year": year}
    chosen = Options(_codes(select) or None, _codes(ignore), online=online.online, support=support, **of_year)
    files = Files(encoding)
    draft = None if file.suffix.lower() == ".bib" else read_draft(file, files)
    named = bibs or (draft.bibliographies if draft else (file,))
    if out:
        apart(out, file, *named)
    bibliography = read_entries(named, files) if named else Entries()
    draft = draft or draft_of(bibliography)
    index_path = index_path or project_of(file).index_path
    opened = contextlib.closing(OpenIndex.open(index_path)) if index_path else contextlib.nullcontext()
    with opened as index, online.matcher(index) as matcher:
        material = Material(draft, bibliography, index, chosen, files, matcher)
        findings = findings_of(material)
        judged = material.judgements if support else []
    matches = matcher.matches if matcher and online.online else {}
    verdicts = verdicts_json(material.cited_entries, findings, matches) if matches else []
    value = {"findings": [finding.to_json() for finding in findings], "entries": verdicts}
    value["citations"] = [one._asdict() | {"place": str(one.place)} for one in judged]
    as_json = sarif(findings) if form == "sarif" else value
    give("json" if form == "sarif" else form, out, as_json, _parts(file, findings, verdicts, judged))
    for title, error in (matcher.failed if matcher else {}).items():
        note(f"{title} failed for some entries: {error.message}.", style="yellow")
    if matches and not any(match.was_asked for match in matches.values()):
        note("No service answered for any entry. Is there a network?", style="yellow")
    note_missing(draft)
    if not named and draft.cited:
        note(f"{file} names no bibliography: its keys and entries were not checked. Give one: --bib FILE")
    if matcher is None and index_path is None and any(one.needs == "records" for one in selected(chosen)):
        note("Entries were not compared with records of their papers: give --online, or --index INDEX.")
    if fix:
        _fix(files, findings_by_entry(bibliography.entries, findings), ask=fix == "ask")
    return int(any(strict or finding.severity != "note" for finding in findings))


def _codes(values: tuple[str, ...]) -> frozenset[str]:
    return frozenset(names_in(",".join(values)))


def _parts(
    file: Path, findings: Sequence[Finding], verdicts: Sequence[dict[str, Any]], judged: Sequence[Judgement]
) -> Iterator[Any]:
    """What is said of the citations, the findings, how many there are, and what was said of the entries."""
    for one in judged:
        if one.verdict == SUPPORTS:
            yield Text(f"{one.place}: ").append("supports ", style="green").append(f"{one.key}: “{one.says}”")
    said = set[str]()
    for finding in findings:
        line = Text(f"{finding.path}:{finding.line}:{finding.column}: ")
        line.append(f"{finding.code} ", style=_STYLES[finding.severity]).append(finding.message)
        # The same remedy is said once.
        yield line if finding.remedy in said else line.append(f"\n    {finding.remedy}", style="dim")
        said.add(finding.remedy)
    counts = Counter(finding.severity.value for finding in findings)
    yield f"{file}: {', '.join(counted(counts[one], one) for one in _STYLES if counts[one]) or 'nothing to mend'}."
    if judged:
        listed = _by_verdict(one.verdict or "not compared" for one in judged)
        yield f"{counted(len(judged), 'citation')} compared: {listed}."
    if verdicts:
        listed = _by_verdict(one["verdict"] for one in verdicts)
        yield f"{len(verdicts)} {'entry' if len(verdicts) == 1 else 'entries'} asked for: {listed}."


def _by_verdict(verdicts: Iterable[str]) -> str:
    """How often each verdict was given, the most frequent first."""
    return ", ".join(f"{number} {verdict}" for verdict, number in Counter(verdicts).most_common())


def _fix(files: Files, by_entry: dict[Entry, list[Finding]], *, ask: bool) -> None:
    """Mends what has a known right value, after a question for each, and says how many entries changed."""
    chosen: dict[Entry, list[Mending]] = defaultdict(list)
    with contextlib.suppress(EOFError, KeyboardInterrupt):
        for entry, findings in by_entry.items():
            for finding in findings:
                if finding.mending is None or not _shown(entry, finding.mending, quiet=not ask):
                    continue
                if not ask or confirm(f"Change {finding.mending.field} of {entry.paper.paper_id}?", default=False):
                    chosen[entry].append(finding.mending)
    changed = mend_entries(files, chosen)
    files.write()
    note(f"{changed} {'entry' if changed == 1 else 'entries'} changed.")


def _shown(entry: Entry, mending: Mending, *, quiet: bool) -> bool:
    """Whether an entry would change; unless `quiet`, the lines that would are printed."""
    old = entry.paper.bibtex or ""
    new = mended(old, [mending])
    if new != old and not quiet:
        before, after = old.splitlines(), new.splitlines()
        removed = [Text(f"-{one}", "red") for one in before if one not in after]
        added = [Text(f"+{one}", "green") for one in after if one not in before]
        say(f"{entry.path}:{entry.line}", *removed, *added)
    return new != old
