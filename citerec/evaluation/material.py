"""Where the contexts come from: a diagnostic set, a file to be labelled, a list, or qrels."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from citerec.contexts.read import as_record, checked_contexts, parse_context, read_contexts
from citerec.corpus.json_lines import tried
from citerec.corpus.store import PaperStore
from citerec.diagnostics.families import DEFAULT_MODEL, FAMILIES, HOW_TO_GET, families_named, is_installed, title_of
from citerec.diagnostics.label import label_contexts
from citerec.diagnostics.sets import DEFAULT_SET, DiagnosticSet, find_set, parse_id, read_set
from citerec.errors import InputError
from citerec.evaluation.record import FamilyInfo
from citerec.files.progress import Progress, no_progress
from citerec.records import MARKER, Context


@dataclass(frozen=True, slots=True)
class Source:
    """Contexts to be labelled, or a set, whose contexts are labelled already; with their name and path.

    `families` are the names of the requested families; empty for all.
    """

    name: str
    place: str
    families: tuple[str, ...]
    contexts: tuple[Context, ...]
    labelled: DiagnosticSet | None


@dataclass(frozen=True, slots=True)
class Material:
    """Labelled contexts, with their families by name, facts about the set for results, and its corpus."""

    contexts: tuple[Context, ...]
    families: Mapping[str, FamilyInfo]
    facts: Mapping[str, Any]
    notes: tuple[str, ...]
    corpus_fingerprint: str | None = None


def read_source(what: str | Path | DiagnosticSet | Sequence[Context], families: Sequence[str] = ()) -> Source:
    """Reads the contexts that `evaluate` is given; `families` are added to the one that an id names.

    Raises:
        InputError: There is no such set, file or family, or a line is no context.
    """
    asked = list(families)
    place = ""
    if isinstance(what, str) and not Path(what).is_file():
        name, family = parse_id(what)
        asked += [family] if family else []
        place = name or DEFAULT_SET
        what = read_set(find_set(place))
    elif isinstance(what, Path) and what.is_dir():
        place = str(what)
        what = read_set(what)
    if isinstance(what, DiagnosticSet):
        # A set may have families that this citerec does not have; their labels are in the set.
        families_named([name for name in asked if name not in what.manifest.families])
        return Source(what.manifest.name, place or what.manifest.name, tuple(asked), what.contexts, what)
    names = tuple(family.name for family in families_named(asked)) if asked else ()
    if isinstance(what, str | Path):
        contexts = tuple(read_contexts(Path(what), cited=True))
        path = Path(what).resolve()
        return Source(f"{path.parent.name}/{path.stem.partition('.')[0]}", str(what), names, contexts, None)
    as_strings = (replace(one, cited_ids=tuple(map(str, one.cited_ids))) for one in what)
    made = (
        (f"context {number}", tried(partial(parse_context, as_record(one), f"context-{number}"), ""))
        for number, one in enumerate(as_strings, 1)
    )
    return Source("contexts", "contexts", names, tuple(checked_contexts(made, cited=True)), None)


def contexts_of_qrels(value: Any) -> list[Context] | None:
    """Turns qrels of any kind into contexts without text, for runs; None for anything else.

    Args:
        value: `ranx.Qrels`, a DataFrame with the columns `context_id` and `paper_id` (and `relevance`, if some rows
            hold 0), or {context id: {paper id: relevance}}.

    Raises:
        InputError: A column is missing, or a context has no relevant paper.
    """
    if isinstance(value, pd.DataFrame):
        for column in ("context_id", "paper_id"):
            if column not in value.columns:
                raise InputError(f"the frame has no column {column!r}", "Qrels have the columns context_id, paper_id.")
        graded = value if "relevance" in value.columns else value.assign(relevance=1)
        groups = graded.groupby("context_id", sort=False)
        value = {name: dict(zip(rows["paper_id"], rows["relevance"], strict=True)) for name, rows in groups}
    elif not isinstance(value, Mapping) and hasattr(value, "to_dict"):  # those of ranx
        value = value.to_dict()
    if not isinstance(value, Mapping):
        return None
    contexts = []
    for context_id, grades in value.items():
        cited = tuple(str(paper_id) for paper_id, grade in grades.items() if grade > 0)
        if not cited:
            raise InputError(f"the context {context_id!r} has no relevant paper", "Leave it out of the qrels.")
        contexts.append(Context(text=MARKER, context_id=str(context_id), cited_ids=cited))
    return contexts


def load_material(
    source: Source,
    store: PaperStore,
    *,
    model: str | None = None,
    conditions: bool = True,
    on_progress: Progress = no_progress,
) -> Material:
    """Labels the contexts; of a set, which is labelled already, by the families that it does not keep.

    Raises:
        InputError: The given spaCy model is not installed, or no context is in one of the requested families.
    """
    notes: list[str] = []
    of_set, contexts = source.labelled.manifest if source.labelled else None, source.contexts
    kept = of_set.families if of_set else {}
    wanted = source.families or (*kept, *FAMILIES)
    infos = {
        name: FamilyInfo(title=title_of(name), conditions=family.conditions, classes=tuple(family.classes))
        for name, family in kept.items()
        if any(family.classes.values()) and name in wanted
    }
    families = [one for one in families_named() if one.name in wanted and (one.on_the_spot or not of_set)]
    if any(family.needs_tagger for family in families) and model is None:
        if source.families or is_installed(DEFAULT_MODEL):
            model = DEFAULT_MODEL
        else:
            missing = f"there is no spaCy model {DEFAULT_MODEL}. Get it with {HOW_TO_GET}"
            notes.append(f"Parts of speech are not labelled: {missing}")
    bounds, tagged_by = (of_set.bounds, of_set.spacy_model) if of_set else (None, None)
    if families:
        labelled = label_contexts(
            contexts,
            store,
            families,
            model=model,
            conditions=conditions,
            on_progress=lambda done: on_progress("labelling", done, len(contexts)),
        )
        infos |= {
            name: FamilyInfo(title=title_of(name), conditions=labelled.conditions[name], classes=tuple(counts))
            for name, counts in labelled.counts().items()
            if any(counts.values())
        }
        old = [context.labels if of_set else {} for context in contexts]
        pairs = zip(old, labelled.contexts, strict=True)
        contexts = tuple(replace(new, labels={**before, **new.labels}) for before, new in pairs)
        bounds, tagged_by = (bounds or labelled.bounds), (tagged_by or labelled.model)
    if empty := [name for name in source.families if name not in infos]:
        raise InputError(
            f"no context of {source.name} has a class of {empty[0]}",
            f"Choose another family: {', '.join(infos) or 'there is none'}.",
        )
    facts = {
        "name": source.name,
        "source": source.place,
        "fingerprint": of_set.fingerprint if of_set else _digest(source.contexts),
        "spacy_model": tagged_by,
        "bounds": bounds and bounds.model_dump(mode="json"),
    }
    return Material(contexts, infos, facts, tuple(notes), of_set.corpus_fingerprint if of_set else None)


def _digest(contexts: Sequence[Context]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for context in contexts:
        digest.update(json.dumps(as_record(replace(context, labels={}))).encode() + b"\n")
    return digest.hexdigest()
