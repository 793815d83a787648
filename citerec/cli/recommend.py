"""`citerec recommend`: papers to cite for a sentence, a text, or a file of contexts."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from citerec.cli.commands import UsageError
from citerec.cli.console import json_bytes, note, print_entries, print_json, say, write
from citerec.cli.options import Exclude, Limits, Share, Sort, Switch, SystemOptions, refuse_without
from citerec.errors import InputError
from citerec.files.progress import progress_bar
from citerec.records import MARKER, Answer, Filters, Hit, Paper, to_json

if TYPE_CHECKING:
    from citerec.contexts.topic import Topic
    from citerec.drafts import Draft, Place
    from citerec.index.candidates import Candidates
    from citerec.recommend import Recommender
    from citerec.write.tldr import Tldr


_TAG = "citerec"
_ENTRIES = ("bibtex", "csl", "ris")
_CONTEXTS_SAY = dict.fromkeys(("title", "citing"), "which say citing_id or citing_title") | dict.fromkeys(
    ("cited", "cited_ids"), "which say cited_before"
)
"""Options whose place is taken by what contexts say."""


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Shape:
    """How answers are given.

    Attributes:
        as_json: Print JSON: a list of hits; with --contexts one for each context.
        as_bibtex: Print BibTeX entries.
        as_csl: Print CSL-JSON, which Zotero and pandoc read.
        as_ris: Print RIS, which reference managers read.
        trec: Write a TREC run to FILE.
        tag: Name of the run in the TREC file.  [default: citerec]
    """

    as_json: Annotated[bool, Parameter(name="--json")] = False
    as_bibtex: Annotated[bool, Parameter(name="--bibtex")] = False
    as_csl: Annotated[bool, Parameter(name="--csl")] = False
    as_ris: Annotated[bool, Parameter(name="--ris")] = False
    trec: Annotated[Path | None, Parameter(metavar="FILE")] = None
    tag: str | None = None

    @property
    def name(self) -> str:
        """`table`, `json`, `trec`, or a form of bibliography; a usage error if two are asked for."""
        wanted = [name for name in ("json", *_ENTRIES) if getattr(self, f"as_{name}")]
        wanted += ["trec"] if self.trec else []
        if len(wanted) > 1:
            raise UsageError("--json, --bibtex, --csl, --ris and --trec exclude each other")
        return wanted[0] if wanted else "table"


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked for, beside the text.

    Attributes:
        k: How many papers.  [default: 10]
        title: Title of the paper that you write: vectors search by it too.
        citing: The paper of the index that you write: it is never recommended.
        cited: What your draft cites already: a bibliography (.bib, .ris, or .json with CSL), or a file with one id a
            line.
        cited_ids: Papers of the index that your draft cites already.
        sort: Order of the papers that share a word with the sentence.  [default: relevance]
        fold: Show editions of one paper, such as preprint and published version, as one hit: the published one, with
            the others beside it (also: …). On by default; off with --trec, and in eval, where ids count. --no-fold
            shows each.
        explain: Show which words matched, and what raised the score of each paper.
        min_confidence: List nothing where the system is less sure than this, from 0 to 1, that one of its first ten is
            right. Needs citerec train confidence.
        tldr: Show a sentence on each paper: its own TLDR, else one from its abstract.
        as_of_year: With --contexts: nothing newer than the citing paper. On by default.
        neighbours: With --contexts: search the sentences before and after too. On by default.
    """

    k: Annotated[int | None, Parameter(name="-k")] = None
    title: Annotated[str | None, Parameter(metavar="TEXT")] = None
    citing: Annotated[str | None, Parameter(metavar="ID")] = None
    cited: Annotated[Path | None, Parameter(metavar="FILE")] = None
    cited_ids: Annotated[str | None, Parameter(metavar="ID,ID")] = None
    sort: Sort | None = None
    fold: Switch | None = None
    explain: bool = False
    min_confidence: Share | None = None
    tldr: bool = False
    as_of_year: Switch | None = None
    neighbours: Switch | None = None


def recommend(
    sentence: str | None = None,
    /,
    *,
    index: Annotated[
        Path | None, Parameter(help="The index to search.  [default: the only one below indexes/]")
    ] = None,
    file: Annotated[Path | None, Parameter(allow_leading_hyphen=True)] = None,
    encoding: Annotated[str | None, Parameter(metavar="NAME")] = None,
    contexts: Path | None = None,
    asked: Asked = Asked(),
    limits: Limits = Limits(),
    exclude: Exclude = (),
    shape: Shape = Shape(),
    chosen: SystemOptions = SystemOptions(),
) -> None:
    r"""Recommend papers to cite at <REF> in SENTENCE.

    A text may contain several <REF>: each is answered. Without one, the whole text is the query. The text
    comes from the argument, from --file, or from standard input. In a LaTeX or Markdown --file,
    \cite{?}, \cite{TODO}, \todo{cite …} and [@?] are places too; comments, formulas and figures are left out.

    Example: citerec recommend "Term weighting <REF> is a strong baseline" --index indexes/demo -k 5

    Without an index, from a web service: citerec recommend "Term weighting <REF>" --system s2-api

    Each preprint for itself: citerec recommend "Term weighting <REF>" --index indexes/demo --no-fold

    In a draft: citerec recommend --file draft.tex --cited refs.bib --index indexes/demo

    Args:
        sentence: The text, with <REF> where a citation is missing.
        file: Read the text from a file; - for standard input.
        encoding: Encoding of --file, if it is not UTF-8 and does not say so.
        contexts: Answer every context of a JSON Lines file.
    """
    form = shape.name
    if sum((sentence is not None, file is not None, contexts is not None)) > 1:
        raise UsageError("give one of SENTENCE, --file and --contexts")
    refuse_without("--contexts", contexts, as_of_year=asked.as_of_year, neighbours=asked.neighbours)
    refuse_without("--trec", shape.trec, tag=shape.tag)
    refuse_without("--file", file, encoding=encoding)
    for shown in ("explain", "tldr"):
        if getattr(asked, shown) and form not in ("table", "json"):
            raise UsageError(f"--{shown} goes with the table and with --json only")
    if shape.trec and asked.fold:
        raise UsageError("--fold does not go with --trec: a run ranks ids")
    for name, said in _CONTEXTS_SAY.items():
        if contexts and getattr(asked, name) is not None:
            raise UsageError(f"--{name.replace('_', '-')} does not go with --contexts, {said}")
    if asked.sort not in (None, "relevance"):
        if asked.min_confidence is not None:
            raise UsageError("--min-confidence does not go with --sort")
        if contexts:
            raise UsageError("--sort does not go with --contexts")
    draft = None if contexts else _draft(sentence, file, encoding)
    from citerec.recommend import Recommender
    from citerec.systems import choose

    place, name, recipe = choose(index, chosen.system, chosen.assignments)
    of_index = {name: getattr(asked, name) for name in ("citing", "cited", "cited_ids", "sort", "min_confidence")}
    refuse_without("--index", place, **of_index)
    asked = replace(asked, fold=not shape.trec if asked.fold is None else asked.fold)
    with Recommender.open(place, recipe) as recommender:
        if place and asked.min_confidence is not None and recommender.calibration is None:
            from citerec.confidence import not_calibrated

            raise not_calibrated(place, recommender.recipe, name)
        if draft is not None:
            _answer_draft(recommender, draft, limits.filters(exclude), asked, shape)
        else:
            assert contexts is not None
            _answer_contexts(recommender, contexts, limits.filters(exclude), asked, shape)
        for remark in recommender.remarks():
            note(remark)
    if chosen.system is None and form != "json":  # printed last, so that an error stays one line
        note(f"System: {name}, the best that {place} supports.")


def _draft(sentence: str | None, file: Path | None, encoding: str | None) -> "Draft":
    from citerec.drafts import Draft, Files, check_places, place_marker, read_draft

    if sentence is not None:
        return Draft(sentence)
    if file is not None and str(file) != "-":
        draft = read_draft(file, Files(encoding))
        if place_marker(file) != MARKER:  # plain text without a place is the query
            check_places(draft, file)
        return draft
    if file is None and sys.stdin.isatty():
        raise UsageError(f'give a SENTENCE, for example "… was shown by {MARKER} …"')
    try:
        return Draft(sys.stdin.buffer.read().decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(f"standard input is not UTF-8 (byte {error.start})", "Save it as UTF-8.") from error


def _is_file(text: str) -> bool:
    """Whether a text is the name of a file."""
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long, or with a zero byte
        return False


def _cited(recommender: "Recommender", asked: Asked) -> dict[str, str] | None:
    """Ids of the papers that the draft cites already, by citation key; None if neither option is given."""
    if asked.cited is None and asked.cited_ids is None:
        return None
    from citerec.drafts.bibliography import read_cited
    from citerec.index.titles import papers_of_index

    cited = read_cited(asked.cited) if asked.cited else {}
    ids = (paper_id.strip() for paper_id in (asked.cited_ids or "").split(","))
    cited |= {paper_id: Paper(paper_id) for paper_id in ids if paper_id}
    found = papers_of_index(cited, recommender.index)
    remedy = "" if found else " Add them: citerec index add, or give ids of the index."
    note(f"{recommender.path} has {len(found):,} of the {len(cited):,} papers that the draft cites.{remedy}")
    return found


def _tldrs(hits: Sequence[Hit]) -> "dict[str, Tldr]":
    """A TLDR of each hit, by paper id."""
    from citerec.write.tldr import tldrs
    from citerec.write.writers import default_writer, open_writer

    made = tldrs((hit.paper for hit in hits), open_writer(default_writer("tldr"), "tldr"))
    return {tldr.paper.paper_id: tldr for tldr in made}


def _hits_json(hits: Sequence[Hit], *, tldr: bool) -> list[dict[str, Any]]:
    listed = [to_json(hit) for hit in hits]
    for shown, made in zip(listed, _tldrs(hits).values() if tldr else (), strict=tldr):
        shown |= {"tldr": made.text, "tldr_origin": made.origin if made.text is not None else None}
    return listed


def _sure(answer: Answer, least: float | None) -> Answer:
    """The answer; without hits if the system is less sure of it than `--min-confidence`."""
    return answer if least is None else answer.if_sure(least)


def _answer_json(answer: Answer, *, tldr: bool) -> dict[str, Any]:
    stated = answer.to_json()
    return {**stated, "hits": _hits_json(answer.hits, tldr=True)} if tldr else stated


def _print_json(answers: list[Answer], places: "Sequence[Place]", *, tldr: bool, whole: bool) -> None:
    """Prints a list of hits or, with `whole` or for several answers, an object for each answer."""
    if len(answers) == 1 and not whole:
        print_json(_hits_json(answers[0].hits, tldr=tldr))
        return
    found = [{"text": answer.context.text, **_answer_json(answer, tldr=tldr)} for answer in answers]
    for stated, place in zip(found, places, strict=False):  # a sentence has no place in a file
        stated |= {"file": str(place.path), "line": place.line}
    print_json(found if len(found) > 1 else found[0])


def _write_trec(path: Path, answers: list[Answer], tag: str) -> None:
    from citerec.retrieve.run import write_run

    rows = (
        (str(number), [(hit.paper.paper_id, hit.score) for hit in answer.hits])
        for number, answer in enumerate(answers, 1)
    )
    _tell_run(path, *write_run(path, rows, tag))


def _tell_run(path: Path, contexts: int, empty: int) -> None:
    found_nothing = f"; {empty:,} of them found nothing" if empty else ""
    say(f"{path}: a run of {contexts:,} contexts{found_nothing}.")


def _answer_draft(recommender: "Recommender", draft: "Draft", filters: Filters, asked: Asked, shape: Shape) -> None:
    if (citing := asked.citing) and not recommender.store.papers([citing]):
        raise InputError(f"{recommender.path} has no paper {citing!r}", "Give its title instead: --title TEXT")
    if filters.exclude and recommender.recipe.needs_index:
        known = recommender.store.years(filters.exclude)
        for unknown in (paper_id for paper_id in filters.exclude if paper_id not in known):
            note(f"--exclude {unknown}: {recommender.path} has no such paper.")
    how: dict[str, Any] = {"sort": asked.sort or "relevance", "explain": asked.explain, "fold": bool(asked.fold)}
    cited = _cited(recommender, asked)
    contexts = draft.contexts(recommender.store, cited, citing_id=citing, citing_title=asked.title)
    answers = [recommender.search(context, asked.k, filters, **how) for context in contexts]
    if MARKER not in draft.text and shape.name != "json":
        note(f"There is no {MARKER} in it: the whole text is the query.")
        if _is_file(draft.text):
            note(f"There is a file of this name. To answer its places: --file {draft.text}")
    found, least = answers, asked.min_confidence
    answers = [_sure(answer, least) for answer in found]
    if not any(answer.hits for answer in found):
        if recommender.index.matches_nothing(filters):
            note("No paper of the index passes the filters: loosen one.")
        else:
            note("No paper shares a word with the sentence and passes the filters.")
    elif not any(answer.hits for answer in answers):
        note(f"Nothing here fits well enough: no answer is as sure as --min-confidence {least:g}.")
    if shape.trec:
        _write_trec(shape.trec, answers, shape.tag or _TAG)
    elif shape.as_json:
        _print_json(answers, draft.places, tldr=asked.tldr, whole=least is not None)
    elif shape.name in _ENTRIES:
        print_entries((hit.paper for answer in answers for hit in answer.hits), shape.name)
    else:
        for number, answer in enumerate(answers, 1):
            withheld = len(answer) < len(found[number - 1])
            name = str(draft.places[number - 1]) if draft.places else number if len(answers) > 1 else None
            _show(recommender, answer, name, tldr=asked.tldr, withheld=withheld)


def _answer_contexts(recommender: "Recommender", path: Path, filters: Filters, asked: Asked, shape: Shape) -> None:
    from citerec.contexts.leaks import LeakRules
    from citerec.contexts.read import read_contexts
    from citerec.retrieve.run import SearchOptions

    contexts = list(read_contexts(path))
    fold_to, depth = recommender.to_fold(asked.k) if asked.fold else (None, asked.k)
    found = recommender.candidates(
        recommender.topics(contexts, neighbours=asked.neighbours is not False),
        depth,
        filters,
        SearchOptions(LeakRules(as_of_year=asked.as_of_year is not False), explain=asked.explain),
    )
    if shape.trec:
        from citerec.retrieve.run import write_run

        with progress_bar() as on_progress:
            rows = _with_progress(found, len(contexts), asked.min_confidence, on_progress)
            counts = write_run(shape.trec, rows, shape.tag or _TAG)
        _tell_run(shape.trec, *counts)
        return
    cited: list[Paper] = []
    for topic, candidates in found:
        answer = recommender.answer(topic, candidates, explain=asked.explain, fold_to=fold_to)
        answer = _sure(answer, asked.min_confidence)
        if shape.name in _ENTRIES:
            cited += [hit.paper for hit in answer.hits]
        elif shape.as_json:
            shown = _answer_json(answer, tldr=asked.tldr)
            write(json_bytes({"context_id": answer.context.context_id, **shown}) + b"\n")
        else:
            withheld = len(answer) < len(candidates)
            _show(recommender, answer, answer.context.context_id, tldr=asked.tldr, withheld=withheld)
    if shape.name in _ENTRIES:
        print_entries(cited, shape.name)


def _with_progress(
    found: "Iterator[tuple[Topic, Candidates]]", whole: int, least: float | None, on_progress: Any
) -> "Iterator[tuple[str, list[tuple[str, float]]]]":
    for done, (topic, candidates) in enumerate(found, 1):
        on_progress("searching", done, whole)
        stated = candidates.confidence
        unsure = least is not None and stated is not None and stated.among_ten < least
        yield topic.context.context_id, [] if unsure else candidates.pairs()


def _show(recommender: "Recommender", answer: Answer, name: str | int | None, *, tldr: bool, withheld: bool) -> None:
    from citerec.cli.tables import show_answer

    tldrs = _tldrs(answer.hits) if tldr else None
    show_answer(answer, recommender.titles(answer.hits), name, tldrs, withheld=withheld)
