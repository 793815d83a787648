"""Options shared by several commands, and helpers to declare others."""

import contextlib
import math
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from citerec.files.progress import Progress, progress_bar
from citerec.records import Filters

if TYPE_CHECKING:
    from citerec.files.parallel import Parallelism

Option = Callable[[Any], Any]
PATH = click.Path(path_type=Path)


class _Address(click.Path):
    """A path, or an address of fsspec such as `s3://bucket/key`."""

    def __init__(self) -> None:
        super().__init__()
        self.name = "path|address"

    def convert(self, value: Any, _param: click.Parameter | None, _context: click.Context | None) -> Path:
        """The path, or what is used like one."""
        from citerec.files.addresses import path_of

        return path_of(value)


ADDRESS = _Address()


class PartsOption(click.Option):
    """An option whose help lists the registered parts. They are looked up only when the help is shown.

    Args:
        parts: Returns the texts that replace `{names}` in the help.
    """

    def __init__(self, *declarations: Any, parts: Callable[[], Mapping[str, str]], **attributes: Any) -> None:
        super().__init__(*declarations, **attributes)
        self._parts = parts

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The option and its help."""
        record = super().get_help_record(ctx)
        return record and (record[0], record[1].format_map(self._parts()))


def names_of(registry: str) -> Callable[[], Mapping[str, str]]:
    """The names of a registry, or those that a function returns, for `{names}` in the help of a `PartsOption`.

    Args:
        registry: Where it is: `module:variable`.
    """

    def parts() -> Mapping[str, str]:
        names = pkgutil.resolve_name(registry)
        return {"names": ", ".join(names() if callable(names) else names)}

    return parts


class Share(click.FloatRange):
    """A share from 0 to 1, but not `nan`."""

    name = "share"

    def __init__(self) -> None:
        super().__init__(0, 1)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The share as a number."""
        share = float(super().convert(value, param, ctx))
        if math.isnan(share):
            self.fail(f"{value!r} is not a share from 0 to 1", param, ctx)
        return share


def path_option(*names: str, help: str, **attributes: Any) -> Option:
    """An option that takes a path."""
    return click.option(*names, type=PATH, help=help, **attributes)


def address_option(*names: str, help: str, **attributes: Any) -> Option:
    """An option that takes a path or an address."""
    return click.option(*names, type=ADDRESS, help=help, **attributes)


def number(
    name: str, default: int | None, help: str, *, least: int = 1, most: int | None = None, **attributes: Any
) -> Option:
    """An option that takes an integer."""
    return click.option(name, type=click.IntRange(least, most), default=default, help=help, **attributes)


def share(name: str, default: float, help: str) -> Option:
    """An option that takes a number from 0 to 1."""
    return click.option(name, type=Share(), default=default, help=help)


def one_of(name: str, choices: Sequence[str], help: str, *, variable: str | None = None) -> Option:
    """An option that takes one of several words; by default the first."""
    names = [name, variable] if variable else [name]
    return click.option(*names, type=click.Choice(choices), default=choices[0], help=help)


def found_index(_context: click.Context, _parameter: click.Parameter, given: Path | None) -> Path:
    """A callback: the given index, or the only one there is."""
    from citerec.index.manifest import find_index

    return find_index(given)


def index_option(what: str, *, needed: bool = True) -> Option:
    """`--index`; unless it is `needed`, None if it is not given."""
    callback = found_index if needed else None
    return path_option("--index", help=f"{what}.  [default: the only one below indexes/]", callback=callback)


def max_bad(what: str) -> Option:
    """`--max-bad`."""
    text = f"Share of {what} above which the work stops. 20 are always allowed, but not all; with 0, none is."
    return share("--max-bad", 0.05, text)


def with_options(options: Sequence[Option]) -> Option:
    """A decorator that adds several options, in their order."""

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def is_given(name: str) -> bool:
    """Whether the user gave the option of this variable, whatever its value."""
    return click.get_current_context().get_parameter_source(name) is not ParameterSource.DEFAULT


def refuse_without(option: str, value: object, *names: str) -> None:
    """Raises a usage error if options are given that would be ignored without another one."""
    for parameter in click.get_current_context().command.params:
        if value is None and parameter.name in names and is_given(parameter.name):
            spellings = "/".join([*parameter.opts, *parameter.secondary_opts])
            raise click.UsageError(f"{spellings} goes with {option} only")


def system_option(*names: str, **attributes: Any) -> Option:
    """`--system`, whose help lists the systems."""
    text = "{names}; any of them followed by +RERANKER; or a TOML file of settings. Those that end in -api send words "
    text += "of your text to a web service, and need no index.  "
    text += "[default: the best that the index supports]"
    return click.option(
        *names,
        metavar="NAME|FILE",
        cls=PartsOption,
        parts=names_of("citerec.systems:system_names"),
        help=text,
        **attributes,
    )


settings_options = [
    click.option(
        "--set",
        "assignments",
        multiple=True,
        metavar="KEY=VALUE",
        help="Change one setting, for example words.bm25.k1=0.9; may be repeated. Keys: docs/settings.md.",
    ),
    system_option("--system"),
]
filter_options = [
    click.option("--year-from", type=int, metavar="YEAR", help="Only papers of this year or later."),
    click.option("--year-to", type=int, metavar="YEAR", help="Only papers of this year or earlier."),
    click.option(
        "--field",
        "fields",
        multiple=True,
        help='Only this field of study, for example "Computer Science"; may be repeated.',
    ),
    click.option(
        "--venue", "venues", multiple=True, help="Only venues with these words in their name; may be repeated."
    ),
    click.option("--min-citations", type=int, metavar="N", help="Only papers cited at least this often."),
    click.option("--exclude", multiple=True, metavar="ID", help="Never this paper; may be repeated."),
]


def filters_of(options: Mapping[str, Any]) -> Filters:
    """The filters that `filter_options` gave."""
    names = ("year_from", "year_to", "fields", "venues", "min_citations", "exclude")
    return Filters(**{name: options[name] for name in names})


seed = number("--seed", 0, "Seed of all random choices.", least=0)
resamples = number("--resamples", 1000, "Bootstrap samples of the intervals.", least=100)
workers = number("--workers", None, "Processes that read.  [default: one for each processor]")
on = click.option(
    "--on",
    metavar="ray|ADDRESS",
    help="Where the work is done, if not in processes of this machine: ray, a Ray of this machine; ray://HOST:PORT or "
    "HOST:PORT, a Ray cluster (docs/cluster.md). --workers is then how many tasks run at once.",
)


@contextlib.contextmanager
def working(
    on: str | None, workers: int | None, *, here: int | None = None
) -> "Iterator[tuple[Parallelism, Progress]]":
    """The workers of `--on` and `--workers`, and a bar of the progress of their work.

    Without both options, `here` is how many processes work; None for as many as processors.
    """
    from citerec.files.parallel import workers_on

    with workers_on(on, workers) as parallelism, progress_bar() as on_progress:
        yield parallelism or here, on_progress


work_option = address_option(
    "--work",
    help="Where the results of shards are kept: a folder, or an address that all machines of a cluster reach.  "
    "[default: beside --out]",
)
keys_option = click.option(
    "--keys",
    metavar="PATTERN",
    default="{auth}{year}{word}",
    help="Keys of new entries (docs/formats.md#citation-keys).",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")


def reading(what: str) -> list[Option]:
    """The options of commands that read full texts: `--split`, `--max-bad` and `--workers`."""
    splitter = click.option(
        "--split",
        default="pysbd",
        metavar="pysbd|spacy|MODEL",
        help="Splitter of texts into sentences, if the source does not mark them.",
    )
    return [splitter, max_bad(what), workers]


def _known_input(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    from citerec.write.tasks import INPUTS

    if value is not None and value not in INPUTS:
        raise click.BadParameter(f"{value!r} is not one of {', '.join(INPUTS)}.")
    return value


def input_option(default: str | None) -> Option:
    """What tasks of related work are written from."""
    text = "What to write from: abstracts or full texts of the cited papers and of the paper that is written, as in "
    text += "OARelatedWork: {names}. Full texts of `oracle` inputs are cut by looking at the target."
    return click.option(
        "--input",
        "given",
        cls=PartsOption,
        parts=names_of("citerec.write.tasks:INPUTS"),
        default=default,
        callback=_known_input,
        metavar="NAME",
        help=text if default else f"{text}  [default: what the tasks hold]",
    )


full_texts_option = path_option(
    "--full-texts", multiple=True, help="S2ORC full texts, for inputs that need them; may be repeated."
)
