"""The page of results, of ranked lists or of texts: tables, charts, and examples to read."""

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from citerec.evaluation import charts, examples, seeds, tables
from citerec.evaluation.rendering import Table, to_html
from citerec.files.text import counted
from citerec.version import __version__

if TYPE_CHECKING:
    from citerec.evaluation.results import Results


def write_page(results: "Results", path: Path) -> None:
    """Writes the page, a single file that needs no other files."""
    _write(path, "page.html.j2", results=results, title=results.record.set.name)


def write_tables_page(
    path: Path,
    title: str,
    shown: Sequence[Table],
    *,
    notes: Sequence[str] = (),
    lines: Sequence[str] = (),
    missing: Sequence[str] = (),
    links: Sequence[tuple[str, str]] = (),
) -> None:
    """Writes a page of tables: first `notes`, then the tables, what explains them, what is missing, and `links`."""
    content = {"notes": notes, "lines": lines, "missing": missing, "links": links}
    _write(path, "tables.html.j2", title=title, shown=shown, **content)


def _write(path: Path, template: str, **content: Any) -> None:
    """Writes a page with its style sheet in it.

    Its Content-Security-Policy allows no scripts, nothing from elsewhere, and no style sheet but its own. Charts set
    their colours in attributes, which can load nothing under this policy.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    loader, strict = PackageLoader("citerec.evaluation"), StrictUndefined
    templates = Environment(loader=loader, autoescape=True, undefined=strict, trim_blocks=True, lstrip_blocks=True)
    templates.globals.update(tables=tables, charts=charts, examples=examples, seeds=seeds, version=__version__)
    templates.filters.update(table=lambda table: Markup(to_html(table)), counted=counted)
    style = templates.get_template("style.css").render()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    allowed = f"style-src-elem 'sha256-{digest}'; style-src-attr 'unsafe-inline'"
    policy = f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
    page = templates.get_template(template).render(style=style, policy=policy, **content)
    path.write_text(page, encoding="utf-8")
