"""Which headlines stand over related work."""

import pytest

from citerec.contexts.sections import is_introduction, is_related_work


@pytest.mark.parametrize(
    "headline",
    [
        "Related Work", "2 Related Work", "2. RELATED WORKS", "II. Related Literature", "Prior research",
        "A.1 Literature Review", "The related work", "Background and Related Work", "Related Work and Background:",
        "Review of the literature",
    ],
)  # fmt: skip
def test_related_work(headline: str) -> None:
    assert is_related_work(headline)


@pytest.mark.parametrize(
    "headline", [None, "", "Introduction", "Future Work", "Workflow", "Related workers", "3 Background"]
)
def test_not_related_work(headline: str | None) -> None:
    assert not is_related_work(headline)


def test_background_counts_beside_an_introduction() -> None:
    assert is_related_work("3 Background", introduced=True)
    assert not is_related_work("3 Methods", introduced=True)
    assert is_introduction("1 Introduction")
    assert not is_introduction("Introduction of species")
