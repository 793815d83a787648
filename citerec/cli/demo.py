"""`citerec demo`: a first look, on the corpus that comes with citerec."""

from citerec.cli.console import output
from citerec.cli.options import Out
from citerec.files.places import INDEXES, shipped
from citerec.files.progress import progress_bar

_SENTENCES = (
    "Attention alone, without recurrence or convolution, suffices to translate well <REF>.",
    "People under uncertainty lean on a few heuristics, as <REF> showed, and so err in ways one can predict.",
    "A guide RNA can send the nuclease to almost any sequence of the genome, which it then cuts <REF>.",
)


def demo(*, out: Out = INDEXES / "demo") -> None:
    """Build the demo index, and search it with three sentences.

    The demo corpus holds some 250 well-known papers of 18 fields.

    Example: citerec demo

    Args:
        out: Folder of the demo index.
    """
    from citerec.cli.tables import show_answer
    from citerec.index.build import build_index
    from citerec.recommend import Recommender

    console = output()
    with progress_bar() as on_progress:
        manifest = build_index([shipped("diagnostics", "demo")], out, on_progress=on_progress)
    console.print(f"{out} built: {manifest.counts.papers} papers of 18 fields.", markup=False)
    recommender = Recommender.open(out)
    for sentence in _SENTENCES:
        (answer,) = recommender.search_text(sentence, k=3, explain=True)
        show_answer(answer, {})
    console.print(
        f"""
[bold]Where to go next[/]
  citerec recommend "Your own sentence <REF>." --index {out}
  citerec write citation "Your own sentence <REF>." --index {out}
  citerec index build my.bib --out indexes/mine       your own library
  citerec index build PATH/TO/S2AG --out indexes/s2   Semantic Scholar's shards
  citerec index info {out}
  citerec recommend --help""",
        soft_wrap=True,
    )
