"""What CiteBench's own scripts do, where it differs from its paper or from the source.

Source: UKPLab/citebench, src/data_processing/related_work_benchmark_construction.py and src/constants.py.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from citerec.files.hashing import hash_sample

NAMES = {"aburaed": "aburaed_et_al", "chen": "chen_et_al", "lu": "lu_et_al", "xing": "xing_et_al"}
"""Names of the data sets in CiteBench's files; CHEN's is followed by its part."""
_CHEN_PARTS = ("delve", "s2orc")
VALIDATION = 0.1
"""Share of XING's train records that become the validation split."""

_YEAR = r"\([^()]*\d{4}[^()]*\)"
_NAME = r"[A-Z]\w+\s*"
_CITATION = re.compile(
    rf"\([^()]*\d\d[^()]*\)|{_NAME}.{{1,8}}{_YEAR}|{_NAME}{_YEAR}|{_NAME}and\s*{_NAME}\([^()]*\d{{4}}\)"
    r"|\[[^\[\]]*\d[^\[\]]*\]"
)
_DIGIT = re.compile(r"\d")


def dataset_name(format_name: str, path: Path) -> str:
    """The name of a data set; CHEN's two are known by the names of their folders or files."""
    name = NAMES[format_name]
    if name == NAMES["chen"]:
        place = "/".join(path.resolve().parts[-2:]).lower()
        part = next((part for part in _CHEN_PARTS if part in place), "")
        return f"{name}_{part}" if part else name
    return name


def aburaed_target(tagged: str) -> str:
    """ABURAED's sentence: `<cite>` becomes `[0]`, other citations `<CITE>`, and digits `#`.

    Anything in round brackets with two digits in a row, or in square brackets with a digit, counts as a citation.
    """
    text = without_digits(_CITATION.sub("<CITE>", tagged))
    return text.replace("<t>", "").replace("</t>", "").replace("<cite>", "[0]").strip()


def without_digits(text: str) -> str:
    """A text with `#` for each digit."""
    return _DIGIT.sub("#", text)


def lu_target(text: str, anchors: Iterable[str]) -> str:
    """LU's text: each anchor of the source is replaced in turn, wherever its letters occur.

    So `@cite_1` is also replaced in `@cite_12`, which becomes `[0]2`; such texts are among the published ones. Anchors
    without a paper stay.
    """
    for number, anchor in enumerate(anchors):
        text = text.replace(anchor, f"[{number}]")
    return text


def xing_split(split: str | None, seed: int, *names: str) -> str | None:
    """The split of a record of XING: a tenth of train is `val`; the scripts draw it without a seed, here by a hash."""
    if split == "train" and hash_sample(seed, *names) / 2**64 < VALIDATION:
        return "val"
    return split
