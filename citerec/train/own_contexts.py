"""The citing sentences of an index as contexts to learn from."""

import contextlib
import functools
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import orjson

from citerec.contexts.callouts import find_callouts
from citerec.contexts.learnt import digest, folded
from citerec.contexts.write import as_record
from citerec.corpus.store import PaperStore
from citerec.errors import InputError
from citerec.files.hashing import hash_sample
from citerec.index.manifest import open_store
from citerec.records import MARKER, Context
from citerec.train.groups import citing_paper

OWN = "the citing sentences of the index"
"""What a manifest calls them."""

LEAST = 500
"""Citing sentences under which a ranker is not learnt from an index: docs/train.md has the figures."""

_SPARE = 4  # sentences read for each that is asked for: some have no cited paper among the candidates


def write_own_contexts(store: PaperStore, path: Path, limit: int | None, seed: int) -> int:
    """Writes citing sentences of a store as contexts, JSON Lines; a sentence that cites several papers is one context.

    Of many, those of a sample of citing papers are written. Lines are in order of citing paper.

    Returns:
        How many contexts were written.

    Raises:
        InputError: There are too few.
    """
    known = store.counts().citances
    share = 1.0 if limit is None else min(1.0, _SPARE * limit / max(known, 1))
    found: dict[tuple[str, str], Context] = {}
    for one in store.searchable_citances() if known >= LEAST else ():
        if hash_sample(seed, "own", one.citing_id) >= share * 2**64 or one.cited.paper_id == one.citing_id:
            continue
        text = marked(one.text, one.cited.year)
        if text is None:
            continue
        key = one.citing_id, digest("text", folded(text))
        cited = found[key].cited_ids if key in found else ()
        found[key] = Context(
            text=text,
            context_id=f"{one.citing_id}-{key[1]}",
            citing_id=one.citing_id,
            citing_year=one.citing_year,
            cited_ids=tuple(dict.fromkeys((*cited, one.cited.paper_id))),
        )
    if len(found) < min(LEAST, share * LEAST):
        unclear = "" if known < LEAST else ", but most do not show which of their citations is meant"
        raise InputError(
            f"the index has {known:,} citing sentences{unclear}; fewer than {LEAST} are too few to learn from",
            "Add some with `citerec index add INDEX --citances FILE`, or give contexts: --contexts FILE. The default "
            "system needs neither.",
        )
    path.write_bytes(b"".join(orjson.dumps(as_record(found[key])) + b"\n" for key in sorted(found)))
    return len(found)


def marked(text: str, year: int | None) -> str | None:
    """A citing sentence with `<REF>` in place of its citation of a paper: the sentences of S2AG have none.

    It is the only citation of the sentence, or the only one with the year of the paper; None if neither can be told.
    """
    if MARKER in text:
        return text if text.count(MARKER) == 1 else None
    found = find_callouts(text)
    dated = [one for one in found if str(year) in text[one.start : one.end]]
    chosen = found if len(found) == 1 else dated
    return f"{text[: chosen[0].start]}{MARKER}{text[chosen[0].end :]}" if len(chosen) == 1 else None


@contextlib.contextmanager
def own_contexts(index: Path, limit: int | None, seed: int) -> Iterator[Path]:
    """A file of the contexts of an index, there only inside the `with`; errors as for `write_own_contexts`."""
    with tempfile.TemporaryDirectory(prefix="citerec-") as folder, contextlib.closing(open_store(index)) as store:
        path = Path(folder) / "contexts.jsonl"
        write_own_contexts(store, path, limit, seed)
        yield path


def drafted(contexts: Iterable[Context], seed: int) -> Iterator[Context | None]:
    """Each context as if it stood in a draft that cites some of what its paper cites elsewhere; None if nothing.

    Contexts that say what the same text cited before stay as they are. For the others some of the other contexts of
    their citing paper are drawn, in an order that depends on the seed only.
    """
    listed = list(contexts)
    of_paper: dict[tuple[str, str], list[Context]] = {}
    for context in listed:
        of_paper.setdefault(citing_paper(context), []).append(context)
    for context in listed:
        if context.cited_before is not None:
            yield context
            continue
        others = [one for one in of_paper[citing_paper(context)] if one.context_id != context.context_id]
        others.sort(key=functools.partial(_place, seed, context.context_id))
        some = others[: hash_sample(seed, "draft", context.context_id) % (len(others) + 1)]
        before = tuple(paper_id for one in some for paper_id in one.cited_ids)
        yield replace(context, cited_before=before) if before else None


def _place(seed: int, name: str, one: Context) -> int:
    return hash_sample(seed, name, one.context_id)
