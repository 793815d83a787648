"""`citerec mcp`: a server of the Model Context Protocol, for assistants."""

import os
import signal
from pathlib import Path

import click

from citerec.cli.options import index_option, settings_options, with_options


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
    from citerec.serve.mcp import OpenedOnce, serve

    opened = OpenedOnce(index, system, assignments)
    # Ctrl-C ends it at once: otherwise it would wait until standard input is closed. Nothing can be lost.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    serve(opened)
