"""Where the contexts come from: a diagnostic set, a file that is labelled on the spot, or a list."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from citerec.contexts.read import read_contexts
from citerec.corpus.store import PaperStore
from citerec.diagnostics.families import FAMILIES, families_named
from citerec.diagnostics.label import Labelled, label_contexts
from citerec.diagnostics.sentences import DEFAULT_MODEL, is_installed
from citerec.diagnostics.sets import DEFAULT_SET, DiagnosticSet, find_set, parse_id, read_set
from citerec.errors import InputError
from citerec.evaluation.results import FamilyInfo
from citerec.records import Context


@dataclass(frozen=True, slots=True)
class Source:
    """Contexts before they are labelled, or a set that is.

    Attributes:
        name: What to call them.
        place: The file or folder.
        families: Names of the families asked for; empty for all.
        contexts: The contexts.
        labelled: The set, where they are one.
    """

    name: str
    place: str
    families: tuple[str, ...]
    contexts: tuple[Context, ...]
    labelled: DiagnosticSet | None


@dataclass(frozen=True, slots=True)
class Material:
    """Labelled contexts.

    Attributes:
        contexts: The contexts.
        families: The families that have a context, by name.
        facts: What results say of the set.
        notes: What a reader should know.
        corpus_fingerprint: Which corpus a set was made for.
    """

    contexts: tuple[Context, ...]
    families: Mapping[str, FamilyInfo]
    facts: Mapping[str, Any]
    notes: tuple[str, ...]
    corpus_fingerprint: str | None = None


def read_source(what: str | Path | DiagnosticSet | Sequence[Context], families: Sequence[str] = ()) -> Source:
    """Reads contexts.

    Args:
        what: The id of a set ("demo"), of a family of it ("demo/location"), a family of the default set ("location"), a
            file of contexts, a set, or contexts.
        families: Families by name, besides the one that an id names.

    Raises:
        InputError: There is no such set, file or family, or a line is no context.
    """
    asked = list(families)
    if isinstance(what, str) and not Path(what).is_file():
        name, family = parse_id(what)
        asked += [family] if family else []
        what = read_set(find_set(name or DEFAULT_SET))
    names = tuple(family.name for family in families_named(asked)) if asked else ()
    if isinstance(what, DiagnosticSet):
        lacking = [name for name in names if name not in what.manifest.families]
        if lacking:
            raise InputError(
                f"the set {what.manifest.name} has no family {lacking[0]!r}",
                f"It has: {', '.join(what.manifest.families)}.",
            )
        return Source(what.manifest.name, str(what.path), names, what.contexts, what)
    if isinstance(what, str | Path):
        contexts = tuple(read_contexts(Path(what), cited=True))
        path = Path(what).resolve()
        return Source(f"{path.parent.name}/{path.stem.partition('.')[0]}", str(what), names, contexts, None)
    return Source("contexts", "contexts", names, tuple(what), None)


def load_material(
    source: Source,
    store: PaperStore,
    *,
    model: str | None = None,
    conditions: bool = True,
    told: Callable[[int], None] = lambda _: None,
) -> Material:
    """Labels the contexts, unless they are a set, which is labelled already.

    Raises:
        InputError: A spaCy model is asked for that is not there.
    """
    if source.labelled is not None:
        return _of_set(source.labelled, source)
    notes = []
    families = families_named(source.families)
    if any(family.needs_tagger for family in families) and model is None:
        if source.families or is_installed(DEFAULT_MODEL):
            model = DEFAULT_MODEL
        else:
            notes.append(
                f"Parts of speech are not told: there is no spaCy model {DEFAULT_MODEL}. "
                f"Get it with `python -m spacy download {DEFAULT_MODEL}`, or name one: --spacy-model NAME|FOLDER"
            )
    labelled = label_contexts(source.contexts, store, families, model=model, conditions=conditions, told=told)
    counts = labelled.counts()
    known = {name: classes for name, classes in labelled.families.items() if any(counts[name].values())}
    if empty := [name for name in labelled.families if name not in known]:
        notes.append(f"These data say nothing of: {', '.join(empty)}.")
    return Material(
        contexts=labelled.contexts,
        families={
            name: FamilyInfo(FAMILIES[name].title, labelled.conditions[name], classes)
            for name, classes in known.items()
        },
        facts=_facts(source, _digest(source.contexts), labelled),
        notes=tuple(notes),
    )


def _of_set(diagnostic_set: DiagnosticSet, source: Source) -> Material:
    manifest = diagnostic_set.manifest
    return Material(
        contexts=diagnostic_set.contexts,
        families={
            name: FamilyInfo(FAMILIES[name].title, family.conditions, tuple(family.classes))
            for name, family in manifest.families.items()
            if any(family.classes.values()) and (not source.families or name in source.families)
        },
        facts=_facts(source, manifest.fingerprint, manifest),
        notes=(),
        corpus_fingerprint=manifest.corpus_fingerprint,
    )


def _facts(source: Source, fingerprint: str, labelled: Any) -> dict[str, Any]:
    model = labelled.model if isinstance(labelled, Labelled) else labelled.spacy_model
    return {
        "name": source.name,
        "source": source.place,
        "fingerprint": fingerprint,
        "spacy_model": model,
        "bounds": labelled.bounds.model_dump(mode="json"),
    }


def _digest(contexts: Sequence[Context]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for context in contexts:
        digest.update(repr((context.context_id, context.text, context.cited_ids)).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
