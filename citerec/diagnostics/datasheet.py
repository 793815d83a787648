"""The datasheet of a labelled set: what it is, how it was made, what it cannot show."""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

from citerec.diagnostics.label import FEW


def write_datasheet(path: Path, manifest: Mapping[str, Any], titles: Mapping[str, str]) -> None:
    """Writes the datasheet.

    Args:
        path: Where to.
        manifest: The set's manifest, as JSON has it.
        titles: Titles of the families.
    """
    text = _templates().get_template("datasheet.md.j2").render(set=manifest, titles=titles, few=FEW)
    path.write_text(text, encoding="utf-8")


@functools.cache
def _templates() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("citerec.diagnostics"), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
