"""The citing sentences of an index as contexts to learn from."""

import contextlib
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
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


@contextlib.contextmanager
def own_contexts(index: Path, limit: int | None, seed: int) -> Iterator[Path]:
    """A file of the citing sentences of an index as contexts, JSON Lines; there only inside the `with`.

    A sentence that cites several papers is one context. Of many, those of a sample of citing papers are written. Lines
    are in order of citing paper.

    Raises:
        InputError: There are too few.
    """
    with tempfile.TemporaryDirectory(prefix="citerec-") as folder, contextlib.closing(open_store(index)) as store:
        path = Path(folder) / "contexts.jsonl"
        contexts = _contexts_of(store, limit, seed)
        path.write_bytes(b"".join(orjson.dumps(as_record(context)) + b"\n" for context in contexts))
        yield path


def _contexts_of(store: PaperStore, limit: int | None, seed: int) -> list[Context]:
    sentences = store.counts().citances
    share = 1.0 if limit is None else min(1.0, _SPARE * limit / max(sentences, 1))
    contexts: dict[tuple[str, str], Context] = {}
    for one in store.searchable_citances() if sentences >= LEAST else ():
        if hash_sample(seed, "own", one.citing_id) >= share * 2**64 or one.cited.paper_id == one.citing_id:
            continue
        text = marked(one.text, one.cited.year)
        if text is None:
            continue
        key = one.citing_id, digest("text", folded(text))
        cited = contexts[key].cited_ids if key in contexts else ()
        contexts[key] = Context(
            text=text,
            context_id=f"{one.citing_id}-{key[1]}",
            citing_id=one.citing_id,
            citing_year=one.citing_year,
            cited_ids=tuple(dict.fromkeys((*cited, one.cited.paper_id))),
        )
    if len(contexts) < min(LEAST, share * LEAST):
        unclear = "" if sentences < LEAST else ", but most do not show which of their citations is meant"
        raise InputError(
            f"the index has {sentences:,} citing sentences{unclear}; fewer than {LEAST} are too few to learn from",
            "Add some with `citerec index add INDEX --citances FILE`, or give contexts: --contexts FILE. The default "
            "system needs neither.",
        )
    return [contexts[key] for key in sorted(contexts)]


def marked(text: str, year: int | None) -> str | None:
    """A citing sentence with `<REF>` in place of its citation of a paper: the sentences of S2AG have none.

    It is the only citation of the sentence, or the only one with the year of the paper; None if neither can be told.
    """
    if MARKER in text:
        return text if text.count(MARKER) == 1 else None
    citations = find_callouts(text)
    if len(citations) > 1:
        citations = [one for one in citations if str(year) in text[one.start : one.end]]
    return f"{text[: citations[0].start]}{MARKER}{text[citations[0].end :]}" if len(citations) == 1 else None


def drafted(contexts: Sequence[Context], seed: int) -> Iterator[Context | None]:
    """Each context as if it stood in a draft that cites some of what its paper cites elsewhere; None if nothing.

    Contexts that say what the same text cited before stay as they are. For the others some of the other contexts of
    their citing paper are drawn, in an order that depends on the seed only.
    """
    of_paper = defaultdict(list)
    for context in contexts:
        of_paper[citing_paper(context)].append(context)
    for context in contexts:
        if context.cited_before is not None:
            yield context
            continue
        others = [one for one in of_paper[citing_paper(context)] if one.context_id != context.context_id]
        others.sort(key=lambda one: hash_sample(seed, context.context_id, one.context_id))
        some = others[: hash_sample(seed, "draft", context.context_id) % (len(others) + 1)]
        before = tuple(paper_id for one in some for paper_id in one.cited_ids)
        yield replace(context, cited_before=before) if before else None
