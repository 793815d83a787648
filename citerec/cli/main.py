"""`citerec`: the main command, and its errors."""

import atexit
import difflib
import gc
import os
import sys

from cyclopts import CycloptsError, MissingArgumentError, UnknownCommandError, UnknownOptionError

from citerec.cli.commands import UsageError, add_commands, group
from citerec.errors import CiterecError
from citerec.files.packages import missing_package
from citerec.files.text import one_line
from citerec.version import __version__

cli = group(
    "citerec",
    "Papers to cite, for a sentence with <REF> in it.\n\n"
    "Build an index of papers once, then search it sentence by sentence.\n\nExample: citerec demo",
    version=f"citerec {__version__}",
    version_flags=["-V", "--version"],
    exit_on_error=False,
    print_error=False,
    result_action="return_value",
)
add_commands(cli, others=False)

_MOVED = {
    "corpus list": "corpus show",
    "diagnostics list": "diagnostics show",
    "index list": "index info",
    "index update": "index add INDEX",
    "train tldr": "train writer --kind tldr",
    "recommend --contexts": "citerec run CONTEXTS",
    "recommend --tag": "an option of citerec run",
    "index add --index": "the first argument: citerec index add INDEX SOURCE",
    "index remove --index": "the first argument: citerec index remove INDEX ID",
    "corpus get --index": "--build INDEX",
    "data citebench --csv": "--format csv",
    "index build --quantize": "-c quantization=VALUE",
    "contexts extract --groups": "-c single=false",
    "diagnostics build --groups": "-c single=false",
    "diagnostics build --split": "-c split=NAME",
    "--json": "--format json",
    "--bibtex": "--format bibtex",
    "--no-bibtex": "--format json, or no option",
    "--csl": "--format csl",
    "--ris": "--format ris",
    "--trec": "--format trec --out FILE",
    "--csv": "--format csv",
    "--sarif": "--format sarif --out FILE",
    "--set": "-c KEY=VALUE",
    "--option": "-c writer.KEY=VALUE",
    "--chat-model": "-c writer.chat_model=NAME",
    "--writes": "--kind KIND",
    "--over-references": "-c references=VALUE",
    "--weight-decay": "-c decay=NUMBER",
    "--learning-rate": "-c learning_rate=NUMBER",
    "recommend --as-of-year": "an option of citerec run",
    "recommend --neighbours": "an option of citerec run",
}
"""What was renamed while citerec was not released: old → new; commands, then options of one command, and of all."""


def main() -> None:
    """Runs the command line. An error is one line: exit code 2 for bad input, 1 for a failure."""
    # At its end Python looks through all objects for cycles, several times: 0.1 s that nobody needs.
    atexit.register(gc.freeze)
    sys.exit(_run(sys.argv[1:]))


def _run(tokens: list[str]) -> int:
    try:
        _add_commands(tokens)
        code = cli(tokens)
        sys.stdout.flush()
    except MissingArgumentError as error:
        if "--print-config" in tokens and error.argument:  # what a training needs is not needed to print its settings
            return _run([*tokens, error.argument.name, "none"])
        return _failed(_usage(str(error), tokens), 2)
    except UnknownOptionError as error:
        return _failed(_usage(_renamed(error.token.keyword or error.token.value, tokens) or str(error), tokens), 2)
    except UnknownCommandError as error:
        name = (error.unused_tokens or [""])[0]
        commands = [*cli.parse_commands(tokens)[0], name]
        if new := _MOVED.get(" ".join(commands)):
            return _failed(_usage(f"citerec {' '.join(commands)} is now: citerec {new}", tokens), 2)
        near = difflib.get_close_matches(name, cli.parse_commands(tokens)[1][-1], n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        return _failed(_usage(f"there is no command {name!r}.{hint}", tokens), 2)
    except (CycloptsError, UsageError) as error:
        return _failed(_usage(str(error), tokens), 2)
    except CiterecError as error:
        return _failed(str(error), error.exit_code)
    except ImportError as error:
        if (missing := missing_package(error)) is None:
            raise
        return _failed(str(missing), 2)
    except (KeyboardInterrupt, EOFError):
        return _failed("stopped. Nothing is lost: repeat the command to resume or restart.", 1)
    except BrokenPipeError:
        # The reader of the output has closed it (`| head`).
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return _failed(f"{error.strerror or error}: {error.filename or ''}. Check the path and its permissions.", 1)
    return code if isinstance(code, int) else 0


def _renamed(option: str, tokens: list[str]) -> str:
    """The new name of an option, in a sentence; empty if it is not an old one."""
    option = option.partition("=")[0]
    bare, command = option.replace("--no-", "--", 1), " ".join(cli.parse_commands(tokens)[0])
    new = _MOVED.get(f"{command} {bare}") or _MOVED.get(option)
    return f"{option} is now {new}" if new else ""


def _add_commands(tokens: list[str]) -> None:
    """Adds the commands that are called or listed: entry points are not read for what is known without them."""
    app, prefix = cli, ""
    for token in tokens:
        if token.startswith("-"):
            continue
        for others in (False, True):
            if token not in app:
                add_commands(app, prefix, others=others)
        if token not in app:
            return
        app, prefix = app[token], f"{prefix}{token}."
        if app.default_command is not None:
            return
    add_commands(app, prefix, listed=True)


def _usage(message: str, tokens: list[str]) -> str:
    commands, _, _ = cli.parse_commands(tokens)
    mark = "" if message.endswith((".", "?")) else "."
    return f"{message}{mark} See: {' '.join(['citerec', *commands])} --help"


def _failed(message: str, code: int) -> int:
    print(f"citerec: {one_line(message)}", file=sys.stderr)
    return code


if __name__ == "__main__":
    main()
