"""Which headlines stand over related work."""

import pytest

from citerec.contexts.sections import is_introduction, is_related_work, split_number

RELATED = """Related Work|2 Related Work|2. RELATED WORKS|II. Related Literature|Prior research|A.1 Literature Review|
The related work|Background and Related Work|Related Work and Background:|Review of the literature|2.Related Work|
II.RELATED WORK|2.1.Related work|XIV. Related Work|iv. related work|3) Prior work|2.related work|A Literature Review|
B.Related Work|2. Theoretical Background"""


def test_headlines() -> None:
    for headline in RELATED.replace("\n", "").split("|"):
        assert is_related_work(headline), headline
    for headline in "|Introduction|Future Work|Workflow|Related workers|3 Background|Unrelated Work".split("|"):
        assert not is_related_work(headline), headline
    assert not is_related_work(None)


def test_background_counts_beside_an_introduction() -> None:
    assert is_related_work("3 Background", introduced=True)
    assert not is_related_work("3 Methods", introduced=True)
    assert is_introduction("1 Introduction") and is_introduction("1.Introduction")
    assert not is_introduction("Introduction of species")


NUMBERS = """2 Method|2|Method
2. Method|2|Method
2.Method|2|Method
2.1 Model|2.1|Model
2.1.Model|2.1|Model
II.METHOD|II|METHOD
XXIV: Method|XXIV|Method
II.3 Metrics|II.3|Metrics
A.Proofs|A|Proofs
A.1 Lemma|A.1|Lemma
2.B Model|2.B|Model"""
NO_NUMBERS = "A Survey|3D Vision|2.5D Vision|U.S. Policy|E.coli|XML|vi editors|2.|"  # all of a headline is no number


@pytest.mark.parametrize("line", [*NUMBERS.splitlines(), *(f"{one}||{one}" for one in NO_NUMBERS.split("|"))])
def test_numbers_of_headlines(line: str) -> None:
    headline, number, rest = line.split("|")
    assert split_number(headline) == (number, rest)
