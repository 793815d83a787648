"""Papers of authors whom the sentence names, and of those who write: found also where no word is shared."""

from pathlib import Path

import pytest

from citerec import Context, Filters, Recipe, Recommender
from citerec.contexts.read import as_record, parse_context
from citerec.corpus.reading import RecordError
from citerec.drafts import Files, read_draft
from citerec.index.build import build_index
from citerec.retrieve.authors import AuthorRetriever
from tests.conftest import write_lines

PAPERS = {
    "a": ("Trees", 2001, ["Ann Lee", "Bob Ray"]),
    "b": ("Forests", 2002, ["Ann Lee", "Bob Ray"]),
    "c": ("Leaves", 2003, ["Cy Lee"]),
    "d": ("Roots", 2004, ["Kalervo Järvelin"]),
    "e": ("Shown", 2005, []),
    "mine": ("Moss", 2006, ["Bob Ray", "Ann Lee"]),
    "later": ("Ferns", 2030, ["Kalervo Järvelin"]),
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("authors")
    papers = [
        {"paper_id": key, "title": title, "year": year, "authors": names}
        for key, (title, year, names) in PAPERS.items()
    ]
    build_index([write_lines(folder / "papers.jsonl", papers)], folder / "index")
    return folder / "index"


def scores(index: Path, context: Context, filters: Filters | None = None, **settings: float) -> dict[str, float]:
    recipe = Recipe(retrievers={"authors": 1.0}, parts={"authors": AuthorRetriever.Settings(**settings)})
    with Recommender.open(index, recipe) as system:
        hits = system.search(context, 7, filters or Filters())
    return {hit.paper.paper_id: round(hit.score, 3) for hit in hits}


def test_authors_before_the_marker_count_the_more_the_fewer_papers_they_have(index: Path) -> None:
    one = scores(index, Context(text="Järvelin <REF> shows it.", citing_year=2010))
    assert one == {"d": 1}  # of the one who has one paper then; "Shown" has no author, and nothing that is newer counts
    both = scores(index, Context(text="As Lee and Ray <REF> show."))
    assert list(both) == ["a", "b", "mine", "c"] and both["a"] == pytest.approx(1 / (1 + 0.477), abs=1e-3)
    assert both["c"] == pytest.approx(both["a"] / 2, abs=1e-3)
    assert scores(index, Context(text="It rains <REF>.")) == scores(index, Context(text="Lee <REF>"), named=0) == {}
    assert list(scores(index, Context(text="As Lee and Ray <REF> show."), Filters(year_to=2001))) == ["a"]


def test_authors_of_the_citing_paper_are_those_of_its_record_or_of_the_draft(index: Path, tmp_path: Path) -> None:
    assert scores(index, Context(text="It rains <REF>.", citing_id="mine")) == {"a": 0.5, "b": 0.5}
    assert scores(index, Context(text="It rains <REF>.", citing_authors=("Cy Lee",)), own=1) == {"c": 0.5}
    drafts = {
        "draft.tex": r"\title{Rain}\author{K. Noh\thanks{A, B} \and Kalervo J{\"a}rvelin$^1$, and \textbf{Cy Lee}}"
        r"\begin{document}It rains \cite{?}.\end{document}",
        "ieee.tex": r"\author{\IEEEauthorblockN{Cy Lee\IEEEauthorrefmark{1} and Kalervo J\"arvelin}"
        r"\IEEEauthorblockA{Town}}\begin{document}\author[2]{Di Fay}It rains \cite{?}.\end{document}",
        "draft.md": "---\nauthor:\n- name: Kalervo Järvelin\n  at: Town\n- Cy Lee\n---\nIt rains [@?].\n",
    }
    with Recommender.open(index, Recipe(retrievers={"words": 1.0, "authors": 1.0})) as system:
        for name, text in drafts.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
            draft = read_draft(tmp_path / name, Files())
            assert {"Kalervo Järvelin", "Cy Lee"} <= set(draft.authors), name
            (context,) = draft.contexts(system.store)
            assert {hit.paper.paper_id for hit in system.search(context, 7)} == {"c", "d", "later"}
            (other,) = draft.contexts(system.store, citing_id="mine")
            assert {hit.paper.paper_id for hit in system.search(other, 7)} == {"a", "b"}


def test_a_fusion_takes_its_scores_as_they_are(index: Path) -> None:
    context = Context(text="Roots of trees, as Lee <REF> shows.", citing_authors=("Cy Lee",))
    alone = scores(index, context)
    with Recommender.open(index, Recipe(retrievers={"words": 1.0, "authors": 0.1})) as system:
        hits = {hit.paper.paper_id: hit for hit in system.search(context, 7, explain=True)}
    given = {key: reason.score for key, hit in hits.items() for reason in hit.reasons if reason.name == "authors"}
    assert given == pytest.approx({key: score / 10 for key, score in alone.items()}, abs=1e-3)


def test_a_context_file_may_name_the_citing_authors() -> None:
    context = Context(text="It rains <REF>.", citing_authors=("Cy Lee", "Kalervo Järvelin"))
    assert parse_context(as_record(context)).citing_authors == context.citing_authors
    with pytest.raises(RecordError, match="citing_authors"):
        parse_context({"text": "It rains <REF>.", "citing_authors": [{"name": "Cy Lee"}]})
