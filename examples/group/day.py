"""From data in BEIR's form to a table for a paper: a group's own parts beside BM25.

python day.py BEIR_FOLDER OUT_FOLDER
"""

import sys
from pathlib import Path

import group  # noqa: F401 - it registers the parts

import citerec


def main(data: Path, out: Path) -> None:
    """Builds an index of the corpus, measures, and writes results, a page and a LaTeX table."""
    index = citerec.Index.build(data / "corpus.jsonl", out / "index")
    results = citerec.evaluate(
        ["bm25", "title-words", "bm25+short-first"],
        data,
        index=index,
        families="together",
        metrics="first,recall@10,ndcg_cut_10,P_10",
    )
    results.write(out / "results")
    (out / "table.tex").write_text(results.to_latex(), encoding="utf-8")
    print(results.to_latex())


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
