"""The same lists score the same, however a system is given: the leak rules are one."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from citerec import Context, LeakRules, Recommender, evaluate
from citerec.contexts.topic import topic_of
from citerec.diagnostics.sets import DEFAULT_SET, find_set, read_set
from citerec.records import Paper
from citerec.retrieve.run import SearchOptions

K = 20


@pytest.fixture(scope="module")
def contexts(demo_index: Path) -> list[Context]:
    """Contexts whose citing paper is in the index, and whose year only the index knows; some by key, some with none."""
    found = read_set(find_set(DEFAULT_SET)).contexts[:60]
    ids = [str(900000001 + number * 4) for number in range(60)]
    made = []
    for number, (context, citing) in enumerate(zip(found, ids, strict=True)):
        kinds = ({"citing_id": citing}, {"citing_key": f"CorpusId:{citing}"}, {})
        named = kinds[number % 3]
        made.append(Context(text=context.text, context_id=context.context_id, cited_ids=context.cited_ids, **named))
    return made


def test_a_system_as_name_function_run_file_and_run_in_memory_scores_the_same(
    demo_index: Path, contexts: list[Context], tmp_path: Path
) -> None:
    with Recommender.open(demo_index, "bm25") as recommender:
        # Lists without any leak rule: the evaluation must apply them.
        free = SearchOptions(LeakRules(exclude_citing=False, as_of_year=False))
        run = recommender.search_many(contexts, 252, options=free)

    def function(context: Context, k: int) -> Sequence[tuple[str, float]]:
        return list(run[context.context_id].items())

    run.write_trec(tmp_path / "bm25.trec")
    systems = {"name": "bm25", "function": function, "file": tmp_path / "bm25.trec", "memory": run.to_dict()}
    results = evaluate(systems, contexts, index=demo_index, k=K)
    overall = {name: system.overall for name, system in results.systems.items()}
    assert overall["name"].n == 60
    assert overall["name"].values["recall@10"] > 0.1
    for name in ("function", "file", "memory"):
        assert overall[name].values == overall["name"].values, name
        assert results.systems[name].ranks == results.systems["name"].ranks
    # The rules took something away, or this test would show nothing.
    assert results.systems["function"].removed["newer"] > 0
    assert results.systems["function"].removed["citing_paper"] > 0
    unruly = evaluate(systems, contexts, index=demo_index, k=K, exclude_citing=False, as_of_year=False)
    assert unruly.systems["name"].overall.values != overall["name"].values


@pytest.mark.parametrize(
    ("context", "citing", "name", "year"),
    [
        (Context(text="A <REF>", citing_id="7", citing_year=2001), Paper("7", "T", year=1999), "7", 2001),
        (Context(text="A <REF>", citing_id="7"), Paper("7", "T", year=1999), "7", 1999),
        (Context(text="A <REF>", citing_id="7"), None, "7", None),
        (Context(text="A <REF>", citing_key="CorpusId:12"), Paper("12", "T", year=1999), "12", 1999),
        (Context(text="A <REF>"), None, None, None),
    ],
)
def test_what_a_topic_knows_of_its_citing_paper(
    context: Context, citing: Paper | None, name: str | None, year: int | None
) -> None:
    topic = topic_of(context, citing)
    assert (topic.citing_name, topic.citing_year) == (name, year)
    assert not LeakRules().permits(topic, name or "", 1990) or name is None
    assert LeakRules().permits(topic, "other", year)
    assert LeakRules().permits(topic, "other", None)
    assert LeakRules().permits(topic, "other", 9000) == (year is None)
    assert LeakRules(as_of_year=False).permits(topic, "other", 9000)


def test_what_a_draft_cited_before_comes_along() -> None:
    context = Context(text="A <REF>", cited_before=("3", "1"))
    assert topic_of(context).cited_before == ("3", "1")
