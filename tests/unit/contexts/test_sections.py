"""Which headlines stand over related work."""

from citerec.contexts.sections import is_introduction, is_related_work, split_number

RELATED = """Related Work|2 Related Work|2. RELATED WORKS|II. Related Literature|Prior research|A.1 Literature Review|
The related work|Background and Related Work|Related Work and Background:|Review of the literature|2.Related Work|
II.RELATED WORK|2.1.Related work|XIV. Related Work|iv. related work|3) Prior work|2.related work|A Literature Review|
B.Related Work|2. Theoretical Background"""


def test_headlines() -> None:
    assert all(is_related_work(headline) for headline in RELATED.replace("\n", "").split("|"))
    others = ["", "Introduction", "Future Work", "Workflow", "Related workers", "3 Background", "Unrelated Work", None]
    assert not any(is_related_work(headline) for headline in others)
    assert is_related_work("3 Background", introduced=True)  # counts beside an introduction
    assert not is_related_work("3 Methods", introduced=True)
    assert is_introduction("1 Introduction") and is_introduction("1.Introduction")
    assert not is_introduction("Introduction of species")


NUMBERS = "2 Method|2. Method|2.Method|2.1 Model|2.1.Model|II.METHOD|XXIV: Method|II.3 Metrics|A.Proofs|A.1 Lemma"
NO_NUMBERS = "A Survey|3D Vision|2.5D Vision|U.S. Policy|E.coli|XML|vi editors|2.|"  # all of a headline is no number


def test_numbers_of_headlines() -> None:
    for headline, number in zip(NUMBERS.split("|"), "2 2 2 2.1 2.1 II XXIV II.3 A A.1".split(), strict=True):
        assert split_number(headline) == (number, headline.removeprefix(number).strip(" .:"))
    for headline in NO_NUMBERS.split("|"):
        assert split_number(headline) == ("", headline)
