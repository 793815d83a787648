"""`citerec`: the main command, and its errors."""

import atexit
import gc
import importlib
import importlib.util
import inspect
import os
import re
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyclopts import App, CycloptsError, Group, MissingArgumentError, Parameter, UnknownOptionError
from cyclopts.config import Env
from cyclopts.help import PlainFormatter

from citerec.errors import CiterecError, UsageError
from citerec.files.registry import Registry, missing_package
from citerec.files.text import one_line
from citerec.version import __version__

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions

PRINT_CONFIG = "--print-config"
_WIDEST = 30  # characters of names

_ON_TOP = {
    "evaluate": ("eval-text", "report"),
    "index": ("demo", "systems"),
    "check": ("check",),
    "init": ("init",),
    "recommend": ("fill", "recommend", "run"),
    "serve": ("lsp", "mcp", "serve"),
}
_IN_GROUPS = {
    "bib": ("add",),
    "contexts": ("extract", "split"),
    "corpus": ("get", "merge", "show", "update", "verify"),
    "diagnostics": ("build", "export", "label", "review", "show"),
    "index": ("add", "build", "encode", "enrich", "info", "remove", "verify"),
    "train": ("confidence", "dense", "fusion", "ltr", "reranker", "static", "tagger", "writer"),
    "write": ("batch", "citation", "related-work", "tldr"),
}
"""The commands that are functions of each module: those on top, and those of the group of its name, whose help is the
docstring of the module."""


def _place(module: str, command: str) -> str:
    return f"citerec.cli.{module}:{command.replace('-', '_')}"


COMMANDS: Registry[Any] = Registry(
    "command",
    {
        "eval": "citerec.cli.evaluate:evaluate",
        **{name: f"citerec.cli.main:{name}" for name in _IN_GROUPS},
        **{name: _place(module, name) for module, names in _ON_TOP.items() for name in names},
        **{f"{group}.{name}": _place(group, name) for group, names in _IN_GROUPS.items() for name in names},
    },
)
"""Every command: a function, or an `App` of several; `train.ncn` is the command `ncn` of the group `train`."""

_PANELS = {
    "Write": ("bib", "check", "demo", "fill", "init", "recommend", "write"),
    "Index": ("index", "systems"),
    "Corpora": ("contexts", "corpus"),
    "Measure": ("diagnostics", "eval", "eval-text", "rate", "report", "run"),
    "Train": ("data", "train"),
    "Serve": ("lsp", "mcp", "serve"),
    "Papers": ("reproduce",),
    "Others": (),
}
"""The panels of the help, in order; the last one is for commands of other packages."""

_GROUPS = {title: Group(title, sort_key=place) for place, title in enumerate(_PANELS)}


def add_commands(app: App, prefix: str = "", *, others: bool = True, listed: bool = False) -> None:
    """Gives a command those commands of `COMMANDS` whose names begin with its own; none is imported for that.

    Args:
        app: The command.
        prefix: How these names begin.
        others: Whether entry points are read too, which takes 20 ms.
        listed: Whether the commands will be listed only, not called.
    """
    for name, place in COMMANDS.places(others=others).items():
        own = name.removeprefix(prefix)
        if not name.startswith(prefix) or "." in own or own in app:
            continue
        title = next((title for title, names in _PANELS.items() if own in names), "Others")
        panel = "Commands" if prefix else _GROUPS[title]
        app.command(place, name=own, group=panel, help=_first_line(place) if listed else None)


def __getattr__(name: str) -> App:
    """The groups of citerec's own commands."""
    if name not in _IN_GROUPS:
        raise AttributeError(name)
    return App(name, help=inspect.cleandoc(_source(f"citerec.cli.{name}").split('"""')[1]))


def _first_line(place: str) -> str:
    """What a command does, in a line; of a function it is read without an import. Empty of a broken package."""
    module, _, name = place.partition(":")
    try:
        if line := re.search(rf'^def {name}\(.*?"""(.+?)\n', _source(module), re.DOTALL | re.MULTILINE):
            return line[1].removesuffix('"""')
        return str(getattr(importlib.import_module(module), name).help).partition("\n")[0]
    except Exception:  # a broken package of others must not end the list
        return ""


def _source(module: str) -> str:
    """The text of a module, which is not imported."""
    spec = importlib.util.find_spec(module)
    return Path(str(spec and spec.origin)).read_text(encoding="utf-8")


class _Help(PlainFormatter):
    """Help in two columns of plain text, in which the lines of a paragraph flow into each other."""

    def __call__(self, console: "Console", options: "ConsoleOptions", panel: Any) -> None:  # noqa: ARG002
        """Prints a list of commands, or of options."""
        rows = []
        for entry in panel.entries:
            text = _flowing(entry.description, console)
            text += f" [{'|'.join(entry.choices)}]" if entry.choices else ""
            text += f" [default: {entry.default}]" if entry.default is not None else ""
            text += " [required]" if entry.required and entry.positional_label is None else ""
            rows.append((", ".join(entry.display_labels_with_metavar), text))
        if not rows or rows[0][0].startswith("--help"):  # everyone knows these
            return
        width = min(max(len(name) for name, _ in rows), _WIDEST)
        lines = [f"{panel.title}:"]
        for name, text in rows:
            lines += textwrap.wrap(
                f"{name:<{width}}  {text}",
                console.width - 1,
                initial_indent="  ",
                subsequent_indent=" " * (width + 4),
                break_on_hyphens=False,
            )
        end = "\n" if panel.title in _PANELS else "\n\n"
        console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True, end=end)

    def render_description(self, console: "Console", options: "ConsoleOptions", description: Any) -> None:  # noqa: ARG002
        """Prints what a command does."""
        parts = _flowing(description, console).split("\n\n")
        text = "\n\n".join(textwrap.fill(part, console.width - 1, break_on_hyphens=False) for part in parts)
        console.print(f"{text}\n", markup=False, highlight=False)


def _flowing(text: Any, console: "Console") -> str:
    """A text of help in which only paragraphs begin new lines."""
    with console.capture() as capture:
        console.print(text or "", width=10_000, markup=False, highlight=False)
    paragraphs = capture.get().strip().split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _shown(default: Any) -> str | None:
    """A default as help shows it; None if it says nothing."""
    return None if default in (None, False, ()) else str(default)


cli = App(
    "citerec",
    help="Papers to cite, for a sentence with <REF> in it.\n\n"
    "Build an index of papers once, then search it sentence by sentence.\n\nExample: citerec demo",
    config=Env("CITEREC_"),  # any option of a command: CITEREC_SERVE_PORT
    help_flags=["-h", "--help"],
    help_format="plaintext",
    help_formatter=_Help(),
    default_parameter=Parameter(negative_bool=(), negative_iterable=(), show_default=_shown),
    suppress_keyboard_interrupt=False,
    version=f"citerec {__version__}",
    version_flags=["-V", "--version"],
    exit_on_error=False,
    print_error=False,
    result_action="return_value",
)

_MOVED = {
    "corpus list": "corpus show",
    "diagnostics list": "diagnostics show",
    "index list": "index info",
    "index update": "index add INDEX",
    "train tldr": "train writer --kind tldr",
    "recommend --contexts": "citerec run CONTEXTS",
    "index add --index": "the first argument: citerec index add INDEX SOURCE",
    "index remove --index": "the first argument: citerec index remove INDEX ID",
    "corpus get --index": "--build INDEX",
    "data citebench --csv": "--format csv",
    "index build --quantize": "set by the server's own configuration",
    "contexts extract --groups": "-c single=false",
    "diagnostics build --groups": "-c single=false",
    "diagnostics build --split": "-c split=NAME",
    "--no-bibtex": "--format json, or no option",
    **{f"--{form}": f"--format {form}" for form in ("bibtex", "csl", "csv", "json", "ris")},
    **{f"--{form}": f"--format {form} --out FILE" for form in ("sarif", "trec")},
    "fill --min-confidence": "--yes, --yes=likely or --yes=any",
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


_VALUES = (("fill", "--yes", ("sure", "likely", "any")), ("check", "--fix", ("ask", "all")))
"""Options whose value may be left out, with their values: the first one is meant then."""


def main() -> None:
    """Runs the command line. An error is one line: exit code 2 for bad input, 1 for a failure."""
    # Python looks for cycles again and again while modules are imported, and at its end: 0.1 s that nobody needs.
    gc.set_threshold(100_000)
    atexit.register(gc.freeze)
    if "train" not in sys.argv[1:2]:  # numpy's BLAS would start threads, which spin: 0.1 s, and no search uses them
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.exit(_run(sys.argv[1:]))


def _run(tokens: list[str]) -> int:
    for command, option, values in _VALUES:
        if tokens[:1] == [command]:
            pairs = zip(tokens, [*tokens[1:], ""], strict=True)
            tokens = [f"{option}={values[0]}" if one == option and after not in values else one for one, after in pairs]
    try:
        _add_commands(tokens)
        code = cli(tokens)
        sys.stdout.flush()
    except MissingArgumentError as error:
        if PRINT_CONFIG in tokens and error.argument:  # what a command needs is not needed to print its settings
            name = error.argument.name
            return _run([*tokens, *([name] if name.startswith("-") else []), "none"])
        return _failed(_usage(str(error), tokens), 2)
    except (CycloptsError, UsageError) as error:
        return _failed(_usage(_renamed(error, tokens) or str(error), tokens), 2)
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
    except RuntimeError as error:
        if type(error).__name__ != "OutOfMemoryError":  # of torch, which is not imported for this
            raise
        smaller = "Give a smaller batch or fewer tokens (-c batch=N, -c max_tokens=N)"
        return _failed(f"the GPU has too little memory. {smaller}, or set CUDA_VISIBLE_DEVICES= for none.", 1)
    return code if isinstance(code, int) else 0


def _renamed(error: Exception, tokens: list[str]) -> str:
    """The new name of an unknown command or option, in a sentence; empty if it is not an old one."""
    command = " ".join(cli.parse_commands(tokens)[0])
    if isinstance(error, UnknownOptionError):
        old = (error.token.keyword or error.token.value).partition("=")[0]
        new = _MOVED.get(f"{command} {old.replace('--no-', '--', 1)}") or _MOVED.get(old)
        return f"{old} is now {new}" if new else ""
    old = " ".join([command, *(getattr(error, "unused_tokens", None) or [])[:1]])
    return f"citerec {old} is now: citerec {_MOVED[old]}" if old in _MOVED else ""


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
