"""`citerec lsp`: the language server for editors."""

import os
import sys
from pathlib import Path

import click

from citerec.cli.options import index_option, path_option, settings_options, with_options
from citerec.records import Paper


@click.command(
    epilog="Example: citerec lsp --index indexes/demo --bib refs.bib\n\n"
    "How to set up VS Code, Neovim and Emacs: docs/editors.md"
)
@index_option("The index to search", needed=False)
@path_option("--bib", metavar="FILE", help="The bibliography of all drafts.  [default: each draft's own]")
@click.option(
    "--keys",
    metavar="PATTERN",
    default="{auth}{year}{word}",
    help="Keys of new entries (docs/formats.md#citation-keys).",
)
@click.option("-k", type=click.IntRange(1, 50), default=10, help="How many papers a completion recommends.")
@click.option("--own-first/--no-own-first", default=True, help="List papers of the bibliography first that fit well.")
@click.option("--log", is_flag=True, help="Write what happens to standard error.")
@with_options(settings_options)
def lsp(
    index: Path | None,
    bib: Path | None,
    keys: str,
    k: int,
    own_first: bool,
    log: bool,
    system: str | None,
    assignments: tuple[str, ...],
) -> None:
    r"""Serve editors: recommend papers, check citations and add entries while you write.

    A language server for LaTeX and Markdown, which your editor starts; it speaks on standard input and output.
    It completes the keys of citations, says what a key is, offers papers at \cite{?} and [@?], and marks keys
    without an entry. The index is opened in the background.
    """
    from citerec.corpus.citation_keys import citation_key
    from citerec.serve.lsp import serve
    from citerec.serve.lsp_drafts import Options

    citation_key(Paper(""), keys)  # a wrong pattern ends the command at once
    code = serve(Options(index, system, assignments, bib, keys, k, own_first), log=log)
    sys.stderr.flush()
    os._exit(code)  # Python would wait for a search, or for the index to open
