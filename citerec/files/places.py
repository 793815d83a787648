"""Paths of indexes, sets and recipes: in the current directory, or shipped with the package."""

from pathlib import Path

INDEXES = Path("indexes")

DIAGNOSTICS = Path("diagnostics")
"""Searched for diagnostic sets before the shipped ones."""

RECIPES = INDEXES / "recipes"
"""Searched for recipes before the shipped ones."""


def shipped(*parts: str) -> Path:
    """A file or folder that comes with citerec: inside the wheel, or in its place in a checkout."""
    package = Path(__file__).parent.parent
    inside = package.joinpath("shipped", *parts)
    if inside.exists():
        return inside
    root = package.parent
    return root.joinpath("indexes", *parts) if parts[0] in ("recipes", "ranker") else root.joinpath(*parts)
