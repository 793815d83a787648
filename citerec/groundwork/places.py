"""Where things lie: in the current directory, or beside the package."""

from pathlib import Path

INDEXES = Path("indexes")

DIAGNOSTICS = Path("diagnostics")
"""Where diagnostic sets are looked for, before those that are shipped."""

RECIPES = INDEXES / "recipes"
"""Where recipes are looked for, before those that are shipped."""


def shipped(*parts: str) -> Path:
    """A file or folder that comes with citerec: inside the wheel, or in its place in a checkout."""
    package = Path(__file__).parent.parent
    inside = package.joinpath("shipped", *parts)
    if inside.exists():
        return inside
    root = package.parent
    return root.joinpath("indexes", *parts) if parts[0] == "recipes" else root.joinpath(*parts)
