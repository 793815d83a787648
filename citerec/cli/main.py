"""`citerec`: the main command, and its errors."""

import atexit
import gc
import os
import sys
from collections.abc import Iterable

import click

from citerec.cli.commands import Commands
from citerec.errors import CiterecError
from citerec.files.packages import missing_package
from citerec.files.text import one_line
from citerec.version import __version__


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
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True},
    epilog="Example: citerec demo",
)
@click.version_option(__version__, "-V", "--version", message="citerec %(version)s")
def cli() -> None:
    """Papers to cite, for a sentence with <REF> in it.

    Build an index of papers once, then search it sentence by sentence.
    """


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
    except ImportError as error:
        if (missing := missing_package(error)) is None:
            raise
        return _failed(str(missing), 2)
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
