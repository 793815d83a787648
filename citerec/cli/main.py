"""`citerec`: the main command, and its errors."""

import atexit
import gc
import importlib
import os
import sys
from collections.abc import Iterable
from typing import Any

import click

from citerec.errors import CiterecError
from citerec.groundwork.printable import one_line
from citerec.version import __version__


class _Commands(click.Group):
    """The commands of `_COMMANDS`; only the module of the one that is called is imported."""

    def list_commands(self, _context: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, _context: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        module, _, command = _COMMANDS[name].partition(":")
        found: Any = getattr(importlib.import_module(f"citerec.cli.{module}"), command)
        return found  # type: ignore[no-any-return]

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is called, and its arguments. Click knows no names like a wrong one: none is imported."""
        if args[0] not in _COMMANDS and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], _COMMANDS, n=1)
            raise click.UsageError(
                f"No such command {args[0]!r}.{f' Did you mean {near[0]}?' if near else ''}", context
            )
        return super().resolve_command(context, args)


class _Help(click.HelpFormatter):
    """Help in which no line ends within a name with a hyphen: such a name could not be copied.

    Click breaks lines after hyphens, but not after hyphens that are marked as non-breaking.
    """

    def write_text(self, text: str) -> None:
        """Adds a paragraph."""
        super().write_text(_kept(text))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Adds a list of names and what they mean."""
        super().write_dl([(name, _kept(meaning)) for name, meaning in rows], col_max, col_spacing)

    def getvalue(self) -> str:
        """The help as a text."""
        return super().getvalue().replace(_NON_BREAKING, "-")


_NON_BREAKING = "\N{NON-BREAKING HYPHEN}"
click.Context.formatter_class = _Help  # of all commands


def _kept(text: str) -> str:
    return text.replace("-", _NON_BREAKING)


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True},
    epilog="Example: citerec demo",
)
@click.version_option(__version__, "-V", "--version", message="citerec %(version)s")
def cli() -> None:
    """Papers to cite, for a sentence with <REF> in it.

    Build an index of papers once, then search it sentence by sentence.
    """


_COMMANDS = {
    "check": "check:check",
    "contexts": "contexts:contexts",
    "corpus": "corpus:corpus",
    "data": "data:data",
    "demo": "demo:demo",
    "diagnostics": "diagnostics:diagnostics",
    "eval": "evaluate:evaluate",
    "eval-text": "eval_text:eval_text",
    "fill": "fill:fill",
    "generate": "generate:generate",
    "index": "index:index",
    "lsp": "lsp:lsp",
    "mcp": "mcp:mcp",
    "rate": "rate:rate",
    "recommend": "recommend:recommend",
    "report": "evaluate:report",
    "reproduce": "reproduce:reproduce",
    "serve": "serve:serve",
    "train": "train:train",
}


def main() -> None:
    """Runs the command line. An error is one line: exit code 2 for bad input, 1 for a failure."""
    # At its end Python looks through all objects for cycles, several times: 0.1 s that nobody needs.
    atexit.register(gc.freeze)
    sys.exit(_run())


def _run() -> int:
    try:
        code = cli.main(prog_name="citerec", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 2
    except click.ClickException as error:
        return _failed(_usage(error), 2)
    except CiterecError as error:
        return _failed(str(error), error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return _failed("stopped. Nothing is lost: repeat the command to resume or restart.", 1)
    except BrokenPipeError:
        # The reader of the output has closed it (`| head`).
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return _failed(f"{error.strerror or error}: {error.filename or ''}. Check the path and its permissions.", 1)
    return code if isinstance(code, int) else 0


def _usage(error: click.ClickException) -> str:
    message = error.format_message().replace("\n", " ").rstrip()
    mark = "" if message.endswith((".", "?", "?)")) else "."
    context = getattr(error, "ctx", None)
    return f"{message}{mark} See: {context.command_path if context else 'citerec'} --help"


def _failed(message: str, code: int) -> int:
    click.echo(f"citerec: {one_line(message)}", err=True)
    return code
