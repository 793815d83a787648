"""`citerec serve`, `lsp` and `mcp`: the web API with its page, and servers for editors and assistants."""

import functools
import os
import signal
import sys
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from citerec.cli import options
from citerec.cli.console import say
from citerec.errors import SettingsError

_TOKEN = "CITEREC_TOKEN"


def serve(
    indexes: tuple[str, ...],
    /,
    *,
    host: str = "127.0.0.1",
    port: Annotated[int, Parameter(validator=Number(gte=0, lte=65535))] = 8765,
    token_file: options.File = None,
    chosen: options.SystemOptions = options.SystemOptions(),
    writer: options.Model = None,
    workers: options.Count = 1,
    online: options.Online = options.Online(),
    log: bool = False,
    print_config: options.PrintConfig = False,
) -> None:
    """Serve indexes as a web API and a page.

    INDEX is a directory, or NAME=DIRECTORY; its name in requests is NAME, or that of the directory. Requests
    that name no index search the first one. An index that is built again is taken over without a restart.
    -c also changes settings of the server, such as serve.queue=100, and so do variables such as CITEREC_SERVE_QUEUE;
    --print-config shows them all, as a file for --config (docs/serve.md).

    Example: citerec serve indexes/demo --port 8765

    Args:
        indexes: The indexes.
        host: Address to listen on; one that others can reach needs a token.
        port: Port to listen on; 0 for a free one.
        token_file: File of tokens, one a line: whoever calls needs one of them.  [default: the token in CITEREC_TOKEN,
            if set]
        writer: Writes citation texts: a writer (docs/writing.md), or a model.  [default: attributed]
        workers: Processes that answer requests, all over the same files of the indexes.
        log: Print a line of JSON for each request: its address, status, seconds and id, but not its text.
        print_config: Print the settings of the server as a file for --config, and do nothing else.
    """
    from citerec.serve.app import is_loopback, listening_socket, read_tokens, serve as serve_all
    from citerec.serve.indexes import named_places
    from citerec.serve.service import ServeSettings, Service

    tokens = read_tokens(token_file, os.environ.get(_TOKEN))
    if not tokens and not is_loopback(host):
        remedy = f"Give --token-file FILE, or set {_TOKEN}."
        raise SettingsError(f"--host {host} can be reached by others, and there is no token", remedy)
    variables = {key: os.environ.get(f"CITEREC_SERVE_{key.upper()}") for key in ServeSettings.model_fields}
    assignments = [f"{key}={value}" for key, value in variables.items() if value is not None]
    settings = ServeSettings.assigned([*assignments, *chosen.changes("serve.")], "serve")
    if print_config:
        kinds = dict.fromkeys(ServeSettings.model_fields, ServeSettings)
        print(f"[serve]\n{options.Settings(kinds, {}, dict(settings))}", end="")
        return
    places, asked = named_places(indexes), online.settings(chosen)
    open_all = functools.partial(Service, places, chosen.system, chosen.changes(), writer, settings, asked)
    with listening_socket(host, port) as listening:
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listening.getsockname()[1]}"
        line = f"citerec serves {', '.join(places)} at {address}/api/v1 and, as a page, at {address}"
        serve_all(open_all, listening, host, tokens, workers=workers, log=log, on_start=lambda: say(line))


def lsp(
    *,
    bib: options.File = None,
    keys: options.KeyPattern = "",
    k: Annotated[int, Parameter(name="-k", validator=Number(gte=1, lte=50))] = 10,
    own_first: options.Switch = True,
    online: options.Online = options.Online(),
    log: bool = False,
    chosen: options.Searching = options.Searching(),
) -> None:
    r"""Serve editors: papers, checks and entries while you write.

    A language server for LaTeX, Markdown, Typst and Org, which your editor starts; it speaks on standard input
    and output. It completes the keys of citations, says what a key is, offers papers at \cite{?} and [@?],
    and marks keys without an entry. The index is opened in the background.

    Example: citerec lsp --index indexes/demo --bib refs.bib

    How to set up VS Code, Neovim and Emacs: docs/editors.md

    Args:
        bib: The bibliography of all drafts.  [default: each draft's own]
        k: How many papers a completion recommends.
        own_first: List papers of the bibliography first that fit well.
        log: Write what happens to standard error.
    """
    from citerec.corpus.citation_keys import citation_keys
    from citerec.serve.indexes import ServedIndex
    from citerec.serve.lsp import Workbench, serve as serve_editor

    if keys:
        citation_keys((), keys)  # a wrong pattern ends the command at once
    index = ServedIndex(chosen.index_near(), chosen.system, chosen.changes())
    with online.opened(chosen) as services:
        code = serve_editor(Workbench(index, bib, keys, k, own_first, services), log=log)
    sys.stderr.flush()
    os._exit(code)  # Python would wait for a search, or for the index to open


def mcp(*, online: options.Online = options.Online(), chosen: options.Searching = options.Searching()) -> None:
    """Serve an index to assistants (Model Context Protocol).

    Clients start this command themselves and talk to it over standard input and output: docs/assistants.md
    shows their configuration. The tools recommend and find papers, check a bibliography, and give entries. They
    read only the index, unless --online lets them ask web services, and write nothing.

    Example: citerec mcp --index indexes/demo
    """
    # Clients start it in folders of any project: settings of fastmcp in a `.env` there are not meant for it.
    os.environ.setdefault("FASTMCP_ENV_FILE", os.devnull)
    from citerec.index.manifest import find_index
    from citerec.serve.indexes import ServedIndex
    from citerec.serve.mcp import serve as serve_assistant
    from citerec.systems import choose

    place, settings = find_index(chosen.index_near()), chosen.changes()
    choose(place, chosen.system, settings)  # what is wrong with them ends the command at once
    served = ServedIndex(place, chosen.system, settings)
    # Ctrl-C ends it at once: otherwise it would wait until standard input is closed. Nothing can be lost.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with online.opened(chosen) as services:
        serve_assistant(served, services)
