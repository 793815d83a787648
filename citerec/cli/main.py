"""`citerec`: the command itself, and how it ends when something is wrong."""

import os
import sys

import click

from citerec.cli.contexts import contexts
from citerec.cli.data import data
from citerec.cli.demo import demo
from citerec.cli.diagnostics import diagnostics
from citerec.cli.eval_text import eval_text
from citerec.cli.evaluate import evaluate, report
from citerec.cli.generate import generate
from citerec.cli.index import index
from citerec.cli.rate import rate
from citerec.cli.recommend import recommend
from citerec.cli.train import train
from citerec.errors import CiterecError
from citerec.version import __version__


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True},
    epilog="Example: citerec demo",
)
@click.version_option(__version__, "-V", "--version", message="citerec %(version)s")
def cli() -> None:
    """Papers to cite, for a sentence with <REF> in it.

    Build an index of papers once, then ask it sentence by sentence.
    """


cli.add_command(contexts)
cli.add_command(data)
cli.add_command(demo)
cli.add_command(diagnostics)
cli.add_command(eval_text)
cli.add_command(evaluate)
cli.add_command(generate)
cli.add_command(index)
cli.add_command(rate)
cli.add_command(recommend)
cli.add_command(report)
cli.add_command(train)


def main() -> None:
    """Runs the command line. What is wrong is said in one line: exit code 2 for bad input, 1 for a failure."""
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
        return _failed("stopped. Nothing is lost: the same command goes on, or begins again.", 1)
    except BrokenPipeError:
        # The reader of our output left (`| head`): that is its good right.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return _failed(f"{error.strerror or error}: {error.filename or ''}. Check the path and its rights.", 1)
    return code if isinstance(code, int) else 0


def _usage(error: click.ClickException) -> str:
    message = error.format_message().replace("\n", " ").rstrip(".?")
    mark = "?" if error.format_message().rstrip().endswith("?") else "."
    context = getattr(error, "ctx", None)
    return f"{message}{mark} See: {context.command_path if context else 'citerec'} --help"


def _failed(message: str, code: int) -> int:
    click.echo(f"citerec: {' '.join(message.split())}", err=True)
    return code
