"""`citerec serve`, `lsp` and `mcp`: the web API with its page, and servers for editors and assistants."""

import functools
import os
import signal
import sys
from pathlib import Path
from typing import Any

import click

from citerec.cli.console import say
from citerec.cli.options import (
    PartsOption,
    index_option,
    keys_option,
    number,
    path_option,
    settings_options,
    system_option,
    with_options,
)
from citerec.errors import SettingsError
from citerec.records import Paper

_TOKEN = "CITEREC_TOKEN"


def _writers() -> dict[str, str]:
    from citerec.write.writers.base import WRITERS, default_writer

    names = ", ".join(name for name in WRITERS if "oracle" not in name)
    return {"writers": names, "default_writer": default_writer("citation")}


@click.command(epilog="Example: citerec serve indexes/demo --port 8765")
@click.argument("indexes", metavar="INDEX…", nargs=-1, required=True)
@click.option("--host", default="127.0.0.1", help="Address to listen on; one that others can reach needs a token.")
@number("--port", 8765, "Port to listen on; 0 for a free one.", least=0, most=65535)
@path_option(
    "--token-file",
    metavar="FILE",
    help=f"File of tokens, one a line: whoever calls needs one of them.  [default: the token in {_TOKEN}, if set]",
)
@system_option("--system")
@click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change one setting: of the server, such as serve.queue=100 (docs/serve.md), or of the system, such as "
    "words.bm25.k1=0.9 (docs/settings.md); may be repeated.",
)
@click.option(
    "--writer",
    cls=PartsOption,
    parts=_writers,
    metavar="NAME|FOLDER",
    help="Writes citation texts: {writers}; or a model.  [default: {default_writer}]",
)
@number("--workers", 1, "Processes that answer requests, all over the same files of the indexes.")
@click.option("--log", is_flag=True, help="Print a line for each request, with its address but not its text.")
def serve(
    indexes: tuple[str, ...],
    host: str,
    port: int,
    token_file: Path | None,
    system: str | None,
    assignments: tuple[str, ...],
    writer: str | None,
    workers: int,
    log: bool,
) -> None:
    """Serve indexes as a web API and a page.

    INDEX is a directory, or NAME=DIRECTORY; its name in requests is NAME, or that of the directory. Requests
    that name no index search the first one. An index that is built again is taken over without a restart.
    """
    from citerec.serve.guard import is_loopback, read_tokens
    from citerec.serve.indexes import named_places
    from citerec.serve.server import listening_socket, serve
    from citerec.serve.service import open_service
    from citerec.write.writers.base import default_writer

    tokens = read_tokens(token_file, os.environ.get(_TOKEN))
    if not tokens and not is_loopback(host):
        raise SettingsError(
            f"--host {host} can be reached by others, and there is no token",
            f"Give --token-file FILE, or set {_TOKEN}.",
        )
    places = named_places(indexes)
    opener = functools.partial(open_service, places, system, assignments, writer or default_writer("citation"))
    with listening_socket(host, port) as listening:
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listening.getsockname()[1]}"
        line = f"citerec serves {', '.join(places)} at {address}/api/v1 and, as a page, at {address}"
        serve(opener, listening, host, tokens, workers=workers, log=log, on_start=lambda: say(line))


@click.command(
    epilog="Example: citerec lsp --index indexes/demo --bib refs.bib\n\n"
    "How to set up VS Code, Neovim and Emacs: docs/editors.md"
)
@index_option("The index to search", needed=False)
@path_option("--bib", metavar="FILE", help="The bibliography of all drafts.  [default: each draft's own]")
@keys_option
@number("-k", 10, "How many papers a completion recommends.", most=50)
@click.option("--own-first/--no-own-first", default=True, help="List papers of the bibliography first that fit well.")
@click.option("--log", is_flag=True, help="Write what happens to standard error.")
@with_options(settings_options)
def lsp(log: bool, **options: Any) -> None:
    r"""Serve editors: recommend papers, check citations and add entries while you write.

    A language server for LaTeX and Markdown, which your editor starts; it speaks on standard input and output.
    It completes the keys of citations, says what a key is, offers papers at \cite{?} and [@?], and marks keys
    without an entry. The index is opened in the background.
    """
    from citerec.corpus.citation_keys import citation_key
    from citerec.serve.lsp import serve
    from citerec.serve.lsp_drafts import Options

    citation_key(Paper(""), options["keys"])  # a wrong pattern ends the command at once
    code = serve(Options(**options), log=log)
    sys.stderr.flush()
    os._exit(code)  # Python would wait for a search, or for the index to open


@click.command(epilog="Example: citerec mcp --index indexes/demo")
@index_option("The index to search")
@with_options(settings_options)
def mcp(index: Path, system: str | None, assignments: tuple[str, ...]) -> None:
    """Serve an index to assistants, as tools of the Model Context Protocol.

    Clients start this command themselves and talk to it over standard input and output: docs/assistants.md
    shows their configuration. The tools recommend and find papers, check a bibliography, and give entries. They
    read only the index, and write nothing.
    """
    # Clients start it in folders of any project: settings of fastmcp in a `.env` there are not meant for it.
    os.environ.setdefault("FASTMCP_ENV_FILE", os.devnull)
    from citerec.serve.indexes import ServedIndex
    from citerec.serve.mcp import serve
    from citerec.systems import choose

    choose(index, system, assignments)  # what is wrong with them ends the command at once
    served = ServedIndex(index, system, assignments)
    # Ctrl-C ends it at once: otherwise it would wait until standard input is closed. Nothing can be lost.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    serve(served)
