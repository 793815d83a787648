"""What rankers learn from: contexts of the index itself if there are no others, each seen several times.

They are seen with and without what contexts and indexes may lack later: citing sentences, and a draft around them.
"""

import contextlib
import functools
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from citerec.contexts.callouts import find_callouts
from citerec.contexts.learnt import digest, folded
from citerec.contexts.read import as_record
from citerec.contexts.topic import Topic
from citerec.corpus.store import PaperStore
from citerec.errors import InputError
from citerec.files.hashing import hash_sample
from citerec.files.parallel import HERE, Parallelism, outcomes_of
from citerec.files.parts import in_parts
from citerec.files.progress import Progress, no_progress
from citerec.index.base import Words, WordSettings
from citerec.index.candidates import Candidates
from citerec.index.manifest import open_store
from citerec.recommend import Recommender
from citerec.records import MARKER, NO_FILTERS, Context, Filters
from citerec.rerank.features import Floats, features_of
from citerec.retrieve.base import Retriever
from citerec.retrieve.words import WordsRetriever
from citerec.train.groups import citing_paper

OWN = "the citing sentences of the index"
"""What a manifest calls them."""

LEAST = 500
"""Citing sentences under which a ranker is not learnt from an index: docs/train.md has the figures."""

_SPARE = 4  # sentences read for each that is asked for: some have no cited paper among the candidates

_TASK = 1000
"""Contexts of a task: as many as a system prepares at once, so that it makes the same batches everywhere."""
_MIX = 0x9E3779B97F4A7C15  # of splitmix64: rows that differ by one get unlike numbers


class View(NamedTuple):
    """A way to see contexts: whether their draft is known, and for which share of the papers citances are withheld."""

    in_draft: bool
    withheld: float


_BY_CITATIONS = ("draft_cocited", "draft_coupled")  # signals that an index without citing sentences lacks
_PLAIN, _HALF, _IN_DRAFT = View(False, 0.0), View(False, 0.5), View(True, 0.0)
_WITHOUT, _IN_DRAFT_WITHOUT = View(False, 1.0), View(True, 1.0)

# The views of the first context, of the second, and so on, in turns.
_OF_INDEX_WITHOUT_CITANCES = ((_PLAIN, _IN_DRAFT),)
_OF_INDEX = (_PLAIN, _HALF), (_PLAIN, _IN_DRAFT)
_PORTABLE = (_WITHOUT, _IN_DRAFT_WITHOUT, _PLAIN), (_WITHOUT, _IN_DRAFT_WITHOUT, _HALF)


class Example(NamedTuple):
    """A context in one view.

    Attributes:
        features: Of its candidates, (candidates, len(FEATURES)).
        cited: 1 for each cited one, (candidates,); one at least.
    """

    features: Floats
    cited: NDArray[np.int8]


def examples_of(
    recommender: Recommender,
    contexts: Sequence[Context],
    depth: int,
    seed: int,
    *,
    portable: bool,
    doing: str = "searching",
    on_progress: Progress = no_progress,
    parallelism: Parallelism = HERE,
) -> list[Example]:
    """The examples of some contexts; those whose cited papers are not among the candidates are left out.

    Args:
        recommender: Finds candidates, with the retriever `words`.
        contexts: Contexts with cited papers.
        depth: How many candidates each gets.
        seed: Seed of what is withheld, and of drafts.
        portable: Whether the ranker is for other indexes, which may have no citances at all.
        doing: What is being done, for `on_progress`.
        on_progress: Called as the work goes on.
        parallelism: Where they are searched for: each process opens the same system on an index at the same path.
    """
    turns: tuple[tuple[View, ...], ...] = _OF_INDEX_WITHOUT_CITANCES
    if recommender.manifest.counts.citances:
        turns = _PORTABLE if portable else _OF_INDEX
    in_drafts = list(drafted(contexts, seed))
    tasks: list[tuple[View, list[Context]]] = []
    for view in sorted({view for turn in turns for view in turn}):
        places = [place for place in range(len(contexts)) if view in turns[place % len(turns)]]
        seen = [in_drafts[at] if view.in_draft else replace(contexts[at], cited_before=None) for at in places]
        tasks += [(view, part) for part in in_parts((context for context in seen if context is not None), _TASK)]
    done, whole = 0, sum(len(part) for _, part in tasks)
    examples: dict[int, list[Example]] = {}
    work = functools.partial(_examples_in, recommender, depth, seed)
    with contextlib.closing(outcomes_of(work, tasks, parallelism)) as outcomes:
        for number, of_task in outcomes:
            examples[number] = of_task
            done += len(tasks[number][1])
            on_progress(doing, done * len(contexts) // whole, len(contexts))
    return [example for number in sorted(examples) for example in examples[number]]


def _examples_in(
    recommender: Recommender, depth: int, seed: int, task: tuple[View, Sequence[Context]]
) -> list[Example]:
    """The examples of some contexts in one view."""
    view, contexts = task

    def changed(retriever: Retriever) -> Retriever:
        if view.withheld and isinstance(retriever, WordsRetriever):
            return WithheldCitances(retriever.words, retriever.settings, view.withheld, seed)
        return retriever

    system, examples = recommender.with_retrievers(changed), []
    k = min(depth, recommender.manifest.counts.papers)
    for topic, candidates in system.candidates(system.topics(contexts), k):
        cited = np.isin(candidates.rows, candidates.papers.rows(topic.context.cited_ids)).astype(np.int8)
        if cited.any():
            uncited = hidden(topic, candidates.rows, view.withheld, seed)
            by_citations = {name: np.where(uncited, np.nan, candidates.signal(name)) for name in _BY_CITATIONS}
            candidates = replace(candidates, signals={**candidates.signals, **by_citations})
            examples.append(Example(features_of(topic, candidates, uncited), cited))
    return examples


class WithheldCitances(WordsRetriever):
    """A retriever of words whose citing sentences are withheld for a share of the papers, other ones for each context.

    Args:
        words: The words of an index.
        settings: How they are searched.
        share: The share of the papers.
        seed: Seed of the choice.
    """

    def __init__(self, words: Words, settings: WordSettings, share: float = 0.5, seed: int = 0) -> None:
        super().__init__(words, settings)
        self._share, self._seed = share, seed

    def search(
        self, topic: Topic, k: int, filters: Filters = NO_FILTERS, _prepared: None = None, *, sort: str = "relevance"
    ) -> Candidates:
        """The candidates of the retriever, without what is withheld."""
        candidates = super().search(topic, k, filters, sort=sort)
        if "citance" not in candidates.signals:
            return candidates
        without = hidden(topic, candidates.rows, self._share, self._seed)
        rest = replace(
            candidates,
            scores=np.where(without, candidates.signals["bm25"], candidates.scores),
            signals={
                name: np.where(without, np.nan, values) if name.startswith("citance") else values
                for name, values in candidates.signals.items()
            },
            citances=tuple(replace(one, keys=np.where(without, -1, one.keys)) for one in candidates.citances),
        )
        return rest.taken(np.flatnonzero(~np.isnan(rest.scores))).in_order()


def hidden(topic: Topic, rows: NDArray[np.int64], share: float, seed: int) -> NDArray[np.bool_]:
    """For which papers the citing sentences are withheld from a context, (rows,)."""
    number = np.uint64(hash_sample(seed, topic.context.context_id))
    with np.errstate(over="ignore"):
        mixed = (rows.astype(np.uint64) + number) * np.uint64(_MIX)
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(_MIX)
    return (mixed >> np.uint64(32)).astype(np.float64) < share * 2.0**32


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
