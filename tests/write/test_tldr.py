"""TLDRs: the corpus's own first, else one from the abstract, and which of the two it is."""

from citerec.records import Paper
from citerec.write.drafting import Tldr, tldrs
from citerec.write.tasks import Source, TextTask
from citerec.write.writers import default_writer, open_writer

OWN = Paper("1", "One", "Graphs are hard. We propose kernels.", tldr="Kernels, in short.")
NONE = Paper("2", "Two", "Trees are easy. We cut trees.")
NOTHING = Paper("3", "Three")


def test_where_a_tldr_comes_from() -> None:
    writer = open_writer(default_writer("tldr"), "tldr")
    assert list(tldrs([OWN, NONE, NOTHING], writer)) == [
        Tldr(OWN, "Kernels, in short.", "corpus"),
        Tldr(NONE, writer.write(TextTask("2", (Source.of(NONE),))).text, "trained"),
        Tldr(NOTHING, None, "corpus"),
    ]


def test_anew() -> None:
    (tldr,) = tldrs([OWN], open_writer("ext-lead", "tldr"), rewrite=True)
    assert tldr == Tldr(OWN, "Graphs are hard.", "ext-lead")
