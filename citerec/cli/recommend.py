"""`citerec recommend`: papers to cite for a sentence, a text, or a file of contexts."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from citerec.cli.console import json_bytes, note, print_entries, print_json, say
from citerec.cli.options import (
    Share,
    filter_options,
    filters_of,
    index_option,
    one_of,
    path_option,
    refuse_without,
    settings_options,
    with_options,
)
from citerec.errors import InputError
from citerec.files.progress import progress_bar
from citerec.records import MARKER, Answer, Filters, Hit, Paper, to_json

if TYPE_CHECKING:
    from citerec.contexts.topic import Topic
    from citerec.drafts import Draft, Place
    from citerec.index.candidates import Candidates
    from citerec.recommend import Recommender
    from citerec.write.tldr import Tldr


@click.command(
    epilog='Example: citerec recommend "Term weighting <REF> is a strong baseline" --index indexes/demo -k 5\n\n'
    'Without an index, from a web service: citerec recommend "Term weighting <REF>" --system s2-api\n\n'
    'Each preprint for itself: citerec recommend "Term weighting <REF>" --index indexes/demo --no-fold\n\n'
    "In a draft: citerec recommend --file draft.tex --cited refs.bib --index indexes/demo"
)
@click.argument("sentence", required=False)
@index_option("The index to search", needed=False)
@click.option("-k", type=int, help="How many papers.  [default: 10]")
@path_option("--file", help="Read the text from a file; - for standard input.")
@click.option("--encoding", metavar="NAME", help="Encoding of --file, if it is not UTF-8 and does not say so.")
@path_option("--contexts", help="Answer every context of a JSON Lines file.")
@click.option("--title", metavar="TEXT", help="Title of the paper that you write: vectors search by it too.")
@click.option("--citing", metavar="ID", help="The paper of the index that you write: it is never recommended.")
@path_option(
    "--cited",
    metavar="FILE",
    help="What your draft cites already: a bibliography (.bib, .ris, or .json with CSL), or a file with one id a line.",
)
@click.option("--cited-ids", metavar="ID,ID", help="Papers of the index that your draft cites already.")
@with_options(filter_options)
@one_of(
    "--sort",
    ["relevance", "newest", "oldest", "most-cited", "venue", "field"],
    "Order of the papers that share a word with the sentence.",
)
@click.option(
    "--fold/--no-fold",
    default=None,
    help="Show editions of one paper, such as preprint and published version, as one hit: the published one, with the "
    "others beside it (also: …). On by default; off with --trec, and in eval, where ids count. --no-fold shows each.",
)
@click.option("--explain", is_flag=True, help="Show which words matched, and what raised the score of each paper.")
@click.option(
    "--min-confidence",
    type=Share(),
    metavar="P",
    help="List nothing where the system is less sure than this, from 0 to 1, that one of its first ten is right. "
    "Needs citerec train confidence.",
)
@click.option("--tldr", is_flag=True, help="Show a sentence on each paper: its own TLDR, else one from its abstract.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON: a list of hits; with --contexts one for each context."
)
@click.option("--bibtex", "as_bibtex", is_flag=True, help="Print BibTeX entries.")
@click.option("--csl", "as_csl", is_flag=True, help="Print CSL-JSON, which Zotero and pandoc read.")
@click.option("--ris", "as_ris", is_flag=True, help="Print RIS, which reference managers read.")
@path_option("--trec", metavar="FILE", help="Write a TREC run to FILE.")
@click.option("--tag", default="citerec", help="Name of the run in the TREC file.")
@click.option(
    "--as-of-year/--no-as-of-year", default=True, help="With --contexts: nothing newer than the citing paper."
)
@click.option(
    "--neighbours/--no-neighbours", default=True, help="With --contexts: search the sentences before and after too."
)
@with_options(settings_options)
def recommend(
    sentence: str | None,
    index: Path | None,
    file: Path | None,
    contexts: Path | None,
    system: str | None,
    assignments: tuple[str, ...],
    **options: Any,
) -> None:
    r"""Recommend papers to cite at <REF> in SENTENCE.

    A text may contain several <REF>: each is answered. Without one, the whole text is the query. The text
    comes from the argument, from --file, or from standard input. In a LaTeX or Markdown --file,
    \cite{?}, \cite{TODO}, \todo{cite …} and [@?] are places too; comments, formulas and figures are left out.
    """
    shape, trec = _shape(options), options["trec"]
    if sum((sentence is not None, file is not None, contexts is not None)) > 1:
        raise click.UsageError("give one of SENTENCE, --file and --contexts")
    refuse_without("--contexts", contexts, "as_of_year", "neighbours")
    refuse_without("--trec", trec, "tag")
    refuse_without("--file", file, "encoding")
    for shown in ("explain", "tldr"):
        if options[shown] and shape not in ("table", "json"):
            raise click.UsageError(f"--{shown} goes with the table and with --json only")
    if trec and options["fold"]:
        raise click.UsageError("--fold does not go with --trec: a run ranks ids")
    options["fold"] = not trec if options["fold"] is None else options["fold"]
    _refuse_with_contexts(contexts, "title", "citing", "cited", "cited_ids")
    if options["min_confidence"] is not None and options["sort"] != "relevance":
        raise click.UsageError("--min-confidence does not go with --sort")
    draft = None if contexts else _draft(sentence, file, options["encoding"])
    from citerec.recommend import Recommender
    from citerec.systems import choose

    index, name, recipe = choose(index, system, assignments)
    refuse_without("--index", index, *_OF_AN_INDEX)
    recommender = click.get_current_context().with_resource(Recommender.open(index, recipe))
    if index and options["min_confidence"] is not None and recommender.calibration is None:
        from citerec.confidence import not_calibrated

        raise not_calibrated(index, recommender.recipe, name)
    if draft is not None:
        _answer_draft(recommender, draft, filters_of(options), shape, options)
    else:
        assert contexts is not None
        if options["sort"] != "relevance":
            raise click.UsageError("--sort does not go with --contexts")
        _answer_contexts(recommender, contexts, filters_of(options), shape, options)
    for remark in recommender.remarks():
        note(remark)
    if system is None and shape != "json":  # printed last, so that an error stays one line
        note(f"System: {name}, the best that {index} supports.")


def _shape(options: dict[str, Any]) -> str:
    """How answers are given: `table`, `json`, `trec`, or a form of bibliography."""
    wanted = [name for name in ("json", *_ENTRIES) if options[f"as_{name}"]] + (["trec"] if options["trec"] else [])
    if len(wanted) > 1:
        raise click.UsageError("--json, --bibtex, --csl, --ris and --trec exclude each other")
    return wanted[0] if wanted else "table"


_ENTRIES = ("bibtex", "csl", "ris")
_OF_AN_INDEX = ("citing", "cited", "cited_ids", "sort", "min_confidence")
_CONTEXTS_SAY = dict.fromkeys(("title", "citing"), "which say citing_id or citing_title") | dict.fromkeys(
    ("cited", "cited_ids"), "which say cited_before"
)


def _refuse_with_contexts(contexts: Path | None, *names: str) -> None:
    for name in names:
        if contexts and click.get_current_context().params[name] is not None:
            raise click.UsageError(f"--{name.replace('_', '-')} does not go with --contexts, {_CONTEXTS_SAY[name]}")


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
        raise click.UsageError(f'give a SENTENCE, for example "… was shown by {MARKER} …"')
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


def _cited(recommender: "Recommender", options: dict[str, Any]) -> dict[str, str] | None:
    """Ids of the papers that the draft cites already, by citation key; None if neither option is given."""
    if options["cited"] is None and options["cited_ids"] is None:
        return None
    from citerec.drafts.bibliography import read_cited
    from citerec.index.titles import papers_of_index

    cited = read_cited(options["cited"]) if options["cited"] else {}
    ids = (paper_id.strip() for paper_id in (options["cited_ids"] or "").split(","))
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


def _answer_draft(
    recommender: "Recommender", draft: "Draft", filters: Filters, shape: str, options: dict[str, Any]
) -> None:
    if (citing := options["citing"]) and not recommender.store.papers([citing]):
        raise InputError(f"{recommender.path} has no paper {citing!r}", "Give its title instead: --title TEXT")
    if filters.exclude and recommender.recipe.needs_index:
        known = recommender.store.years(filters.exclude)
        for unknown in (paper_id for paper_id in filters.exclude if paper_id not in known):
            note(f"--exclude {unknown}: {recommender.path} has no such paper.")
    given = {name: options[name] for name in ("sort", "explain", "fold")}
    cited = _cited(recommender, options)
    contexts = draft.contexts(recommender.store, cited, citing_id=citing, citing_title=options["title"])
    answers = [recommender.search(context, options["k"], filters, **given) for context in contexts]
    if MARKER not in draft.text and shape != "json":
        note(f"There is no {MARKER} in it: the whole text is the query.")
        if _is_file(draft.text):
            note(f"There is a file of this name. To answer its places: --file {draft.text}")
    found, least = answers, options["min_confidence"]
    answers = [_sure(answer, least) for answer in found]
    if not any(answer.hits for answer in found):
        if recommender.index.matches_nothing(filters):
            note("No paper of the index passes the filters: loosen one.")
        else:
            note("No paper shares a word with the sentence and passes the filters.")
    elif not any(answer.hits for answer in answers):
        note(f"Nothing here fits well enough: no answer is as sure as --min-confidence {least:g}.")
    if shape == "trec":
        _write_trec(options["trec"], answers, options["tag"])
    elif shape == "json":
        _print_json(answers, draft.places, tldr=options["tldr"], whole=least is not None)
    elif shape in _ENTRIES:
        print_entries((hit.paper for answer in answers for hit in answer.hits), shape)
    else:
        for number, answer in enumerate(answers, 1):
            withheld = len(answer) < len(found[number - 1])
            name = str(draft.places[number - 1]) if draft.places else number if len(answers) > 1 else None
            _show(recommender, answer, name, tldr=options["tldr"], withheld=withheld)


def _answer_contexts(
    recommender: "Recommender", path: Path, filters: Filters, shape: str, options: dict[str, Any]
) -> None:
    from citerec.contexts.leaks import LeakRules
    from citerec.contexts.read import read_contexts
    from citerec.retrieve.run import SearchOptions

    contexts = list(read_contexts(path))
    fold_to, depth = recommender.to_fold(options["k"]) if options["fold"] else (None, options["k"])
    found = recommender.candidates(
        recommender.topics(contexts, neighbours=options["neighbours"]),
        depth,
        filters,
        SearchOptions(LeakRules(as_of_year=options["as_of_year"]), explain=options["explain"]),
    )
    if shape == "trec":
        from citerec.retrieve.run import write_run

        with progress_bar() as on_progress:
            rows = _with_progress(found, len(contexts), options["min_confidence"], on_progress)
            counts = write_run(options["trec"], rows, options["tag"])
        _tell_run(options["trec"], *counts)
        return
    cited: list[Paper] = []
    for topic, candidates in found:
        answer = recommender.answer(topic, candidates, explain=options["explain"], fold_to=fold_to)
        answer = _sure(answer, options["min_confidence"])
        if shape in _ENTRIES:
            cited += [hit.paper for hit in answer.hits]
        elif shape == "json":
            shown = _answer_json(answer, tldr=options["tldr"])
            click.echo(json_bytes({"context_id": answer.context.context_id, **shown}))
        else:
            withheld = len(answer) < len(candidates)
            _show(recommender, answer, answer.context.context_id, tldr=options["tldr"], withheld=withheld)
    if shape in _ENTRIES:
        print_entries(cited, shape)


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
