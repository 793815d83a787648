"""Types of the options that several commands share, settings by KEY=VALUE, and checks of options."""

import contextlib
import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, dataclass_transform

from cyclopts import Parameter, Token
from cyclopts.validators import Number

from citerec.cli.main import PRINT_CONFIG
from citerec.errors import SettingsError, UsageError
from citerec.files.progress import Progress, progress_bar
from citerec.records import Context, Filters

if TYPE_CHECKING:
    from citerec.drafts.online import OnlineSettings
    from citerec.files.parallel import Parallelism
    from citerec.sources.look_up import LookUp
    from citerec.systems import Recipe

Kind = TypeVar("Kind")


def _address(_kind: Any, tokens: "tuple[Token, ...]") -> Any:
    from citerec.contexts.read import IRDS, irds_folder
    from citerec.corpus.zotero import ADDRESS, zotero_file
    from citerec.files.addresses import path_of

    address = tokens[0].value
    if address.startswith(IRDS):
        return irds_folder(address)
    return zotero_file() if address == ADDRESS else path_of(address)


def _check_input(_kind: Any, name: str | None) -> None:
    from citerec.write.tasks import INPUTS

    if name is not None and name not in INPUTS:
        raise ValueError(f"{name!r} is not one of {', '.join(INPUTS)}")


Address = Annotated[Any, Parameter(converter=_address, n_tokens=1, metavar="PATH|ADDRESS")]
"""A path, or an address of fsspec such as `s3://bucket/key`.

Its type is Any: in a tuple of `Path`, cyclopts refuses the paths of addresses.
"""


def _plug_in(_kind: Any, files: tuple[Path, ...]) -> None:
    from citerec.files.registry import PLUGINS, load_plugins

    if files:  # the processes that this one starts load them too
        os.environ[PLUGINS] = os.pathsep.join(filter(None, [os.environ.get(PLUGINS), *map(str, files)]))
        load_plugins()


_PLUGIN = "A Python file that registers parts of your own (docs/extend.md); may be repeated."
Plugins = Annotated[tuple[Path, ...], Parameter(name="--plugin", metavar="FILE", validator=_plug_in, help=_PLUGIN)]

Count = Annotated[int, Parameter(validator=Number(gte=1))]
Natural = Annotated[int, Parameter(validator=Number(gte=0))]
Share = Annotated[float, Parameter(validator=Number(gte=0, lte=1), metavar="SHARE")]
"""A number from 0 to 1."""

Switch = Annotated[bool, Parameter(negative_bool="no-")]
"""An option that has its opposite beside it: `--fold` and `--no-fold`."""

Out = Annotated[Path, Parameter(name=("--out", "-o"), metavar="PATH")]
"""What the command makes: a file or a folder."""

OutFolder = Annotated[Path | None, Parameter(name=("--out", "-o"), metavar="FOLDER")]
_WRITTEN = "Write the answer to FILE, and do not print it."
OutFile = Annotated[Path | None, Parameter(name=("--out", "-o"), metavar="FILE", help=_WRITTEN)]
Format = Annotated[Literal["table", "json"], Parameter(name="--format", help="How the answer is given.")]
Seed = Annotated[int, Parameter(validator=Number(gte=0), help="Seed of all random choices.")]
Resamples = Annotated[int, Parameter(validator=Number(gte=100), help="Bootstrap samples of the intervals.")]
_WHERE = "Such as cpu or cuda:0.  [default: a GPU if there is one]"
Device = Annotated[str | None, Parameter(metavar="NAME", help=_WHERE)]
_BAD = "Share of unreadable records above which the work stops. 20 are always allowed, but not all; with 0, none is."
PrintConfig = Annotated[bool, Parameter(name=PRINT_CONFIG, negative=(), show=False)]
MaxBad = Annotated[float, Parameter(validator=Number(gte=0, lte=1), metavar="SHARE", help=_BAD)]
_PROCESSES = "Processes that work.  [default: one for each processor]"
Workers = Annotated[int | None, Parameter(validator=Number(gte=1), help=_PROCESSES)]
_INDEX = "The index.  [default: the only one below indexes/]"
Index = Annotated[Path | None, Parameter(name="INDEX", help=_INDEX)]
IndexPath = Annotated[Path | None, Parameter(name="--index", metavar="PATH", help=_INDEX)]
Text = Annotated[str | None, Parameter(metavar="TEXT")]
Id = Annotated[str | None, Parameter(metavar="ID")]
File = Annotated[Path | None, Parameter(metavar="FILE")]
Model = Annotated[str | None, Parameter(metavar="NAME|FOLDER")]
System = Annotated[str | None, Parameter(metavar="NAME|FILE")]
_ENCODING = "Encoding of the files, if it is not UTF-8 and they do not say."
Encoding = Annotated[str | None, Parameter(name="--encoding", metavar="NAME", help=_ENCODING)]
_KEYS = "Keys of new entries (docs/formats.md#citation-keys).  [default: as most keys of the bibliography]"
KeyPattern = Annotated[str, Parameter(metavar="PATTERN", show_default=False, help=_KEYS)]
_ON = """Where the work is done, if not in processes of this machine: ray, a Ray of this machine; ray://HOST:PORT
or HOST:PORT, a Ray cluster (docs/scale.md). --workers is then how many tasks run at once."""
On = Annotated[str | None, Parameter(metavar="ray|ADDRESS", help=_ON)]
_TAGGER = "Label the intents that contexts do not have by this tagger, made by train tagger (SciCite, ACL-ARC)."
IntentTagger = Annotated[Model, Parameter(name="--tagger", help=_TAGGER)]
_INPUT = """What to write from: abstracts or full texts of the cited papers and of the paper that is written, as in
OARelatedWork: abstracts, full, oracle and others (docs/writing.md). Full texts of `oracle` inputs are cut by looking at
the target."""
InputName = Annotated[str | None, Parameter(name="--input", metavar="NAME", validator=_check_input, help=_INPUT)]
_FULL_TEXTS = "S2ORC full texts, for inputs that need them; may be repeated."
FullTexts = Annotated[tuple[Path, ...], Parameter(name="--full-texts", help=_FULL_TEXTS)]
Predictions = Annotated[tuple[str, ...], Parameter(name="[NAME=]PREDICTIONS", help="Files of predictions.")]
_REFERENCES = "Tasks of the predictions, matched by id."
References = Annotated[Path | None, Parameter(name="--references", metavar="FILE", help=_REFERENCES)]


@dataclass_transform(frozen_default=True, kw_only_default=True)
def option_group(kind: type[Kind]) -> type[Kind]:
    """Makes a class a dataclass whose fields are options of a command, each under its own name."""
    return Parameter(name="*")(dataclass(frozen=True, kw_only=True)(kind))


@option_group
class Work:
    """Where the work is done, and what ends it."""

    max_bad: MaxBad = 0.05
    workers: Workers = None
    on: On = None


@option_group
class Assigned:
    """Settings by name.

    Attributes:
        assignments: Change one setting, such as words.bm25.k1=0.9; may be repeated. Keys: citerec systems --settings.
        config: A TOML file of settings; -c wins over it.
    """

    assignments: Annotated[tuple[str, ...], Parameter(name="-c", metavar="KEY=VALUE")] = ()
    config: Annotated[Path | None, Parameter(name="--config", metavar="FILE")] = None
    plugins: Plugins = ()

    def changes(self, prefix: str = "") -> list[str]:
        """The settings as KEY=VALUE: those whose keys begin with a prefix, without it; by default all others."""
        from citerec.settings import changes

        pairs = changes(self.config, self.assignments)
        if not prefix:
            return [one for one in pairs if not one.startswith(("serve.", "writer.", "online."))]
        return [one.removeprefix(prefix) for one in pairs if one.startswith(prefix)]


@option_group
class SystemOptions(Assigned):
    """The system that searches, and its settings.

    Attributes:
        assignments: Change one setting, such as words.bm25.k1=0.9; may be repeated. Keys: citerec systems --settings.
        config: A TOML file of settings; -c wins over it.
        system: A system (citerec systems lists them); any of them followed by +RERANKER; or a TOML file of settings.
            Those that end in -api send words of your text to a web service, and need no index.  [default: the best
            that the index supports]
    """

    system: System = None


@option_group
class Searching(SystemOptions):
    """The index that is searched, the system, and its settings."""

    index: IndexPath = None

    def index_near(self, near: Path = Path()) -> Path | None:
        """The index that is given, or that of the project that a file is in."""
        from citerec.drafts.project import project_of

        return self.index or project_of(near).index_path

    def choose(self, near: Path = Path()) -> "tuple[Path | None, str, Recipe]":
        """The index, the system and its recipe; by default those of the project that a file is in."""
        from citerec.drafts.project import project_of
        from citerec.systems import choose

        index = self.index if self.system else self.index_near(near)
        return choose(index, self.system or project_of(near).system or None, self.changes())


@option_group
class Online:
    """Whether web services may be asked.

    Attributes:
        online: Let the user ask Crossref, OpenAlex, Semantic Scholar, DBLP and arXiv for entries of bibliographies.
            Only ids, title, first author and venue of an entry are sent. -c online.KEY=VALUE changes how.
    """

    online: bool = False

    def settings(self, chosen: Assigned) -> "OnlineSettings | None":
        """How the services are asked; None if they may not be."""
        from citerec.drafts.online import OnlineSettings

        return OnlineSettings.assigned(chosen.changes("online."), "online") if self.online else None

    def opened(self, chosen: Assigned) -> "contextlib.AbstractContextManager[list[LookUp]]":
        """The services until the end of the block; none if they may not be asked."""
        settings = self.settings(chosen)
        return settings.opened() if settings else contextlib.nullcontext([])


@option_group
class Limits:
    """Which papers may be found.

    Attributes:
        year_from: Only papers of this year or later.
        year_to: Only papers of this year or earlier.
        fields: Only this field of study, for example "Computer Science"; may be repeated.
        venues: Only venues with these words in their name; may be repeated.
        min_citations: Only papers cited at least this often.
    """

    year_from: Annotated[int | None, Parameter(metavar="YEAR")] = None
    year_to: Annotated[int | None, Parameter(metavar="YEAR")] = None
    fields: Annotated[tuple[str, ...], Parameter(name="--field")] = ()
    venues: Annotated[tuple[str, ...], Parameter(name="--venue")] = ()
    min_citations: Annotated[int | None, Parameter(metavar="N")] = None

    @property
    def filters(self) -> Filters:
        """The filters."""
        return Filters(**asdict(self))


@option_group
class LimitsOfHits(Limits):
    """Which papers may be found.

    Attributes:
        exclude: Never this paper; may be repeated.
    """

    exclude: Annotated[tuple[str, ...], Parameter(metavar="ID")] = ()


@option_group
class Tuning(Assigned):
    """Options that few need, as settings by name.

    Attributes:
        assignments: Change one setting of this command; may be repeated. --print-config shows which there are.
        config: A TOML file of such settings; -c wins over it.
        print_config: Print the settings as such a file, and do nothing else.
    """

    print_config: PrintConfig = False

    def settings(self, *kinds: type, own: Collection[str] = (), **defaults: Any) -> "Settings":
        """The settings of some kinds of options.

        Args:
            kinds: Dataclasses and settings; their fields are the keys.
            own: Fields that are no settings: they have options of their own, or the command sets them.
            defaults: Defaults of this command, in place of those of the fields.

        Raises:
            SettingsError: There is no such key.
        """
        from citerec.settings import assign, nearest, read_toml

        kind_of = {name: kind for kind in kinds for name in _fields_of(kind) if name not in own}
        overrides = read_toml(self.config) if self.config else {}
        assign(overrides, self.assignments, lambda: kind_of)
        if unknown := sorted(overrides.keys() - kind_of.keys()):
            raise SettingsError(f"{unknown[0]!r} is no setting here", nearest(unknown[0], lambda: kind_of))
        settings = Settings(kind_of, overrides, {**defaults, **overrides})
        if self.print_config:
            print(settings)
            raise SystemExit(0)
        return settings


@dataclass(frozen=True)
class Settings:
    """Values by key, of which options are made.

    Attributes:
        kind_of: By key the kind of options that it is of.
        overrides: The values that were given.
        values: These, and the defaults of the command.
    """

    kind_of: Mapping[str, type]
    overrides: Mapping[str, Any]
    values: Mapping[str, Any]

    def of(self, kind: type[Kind], **more: Any) -> Kind:
        """Options of a kind.

        Args:
            kind: The dataclass, or the settings.
            more: Fields that have options of their own, None if the option is not given; and options within options.

        Raises:
            SettingsError: A value is of a wrong type or out of its range.
        """
        from pydantic import TypeAdapter, ValidationError

        own = {name: self.values[name] for name in _fields_of(kind) if name in self.values}
        named = {name: value for name, value in more.items() if value is not None}
        try:
            return TypeAdapter(kind).validate_python(own | named)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            key = ".".join(map(str, first["loc"]))
            raise SettingsError(f"{key} = {first['input']}: {first['msg']}", "Give another value.") from None

    def __str__(self) -> str:
        """All settings with their meanings, as a TOML file."""
        from citerec.settings import flat, meanings_of

        parts = []
        for name, kind in self.kind_of.items():
            field = _fields_of(kind)[name]
            value = self.values.get(name, field.default)
            meaning = meanings_of(kind).get(name, "")
            table = value.model_dump() if hasattr(value, "model_dump") else value
            pairs = flat({name: table}) if isinstance(table, Mapping) else [(name, value)]
            lines = (
                f"# {key} =" if one is None or one is MISSING else f"{key} = {json.dumps(one)}" for key, one in pairs
            )
            said = f"# {meaning}\n" if meaning else ""
            parts.append(said + "".join(f"{line}\n" for line in lines))
        return "\n".join(parts)


def _fields_of(kind: type) -> dict[str, Any]:
    """The fields of options by name."""
    return getattr(kind, "model_fields", None) or {field.name: field for field in fields(kind) if field.init}


def intents_of(contexts: Iterable[Context], tagger: str | None) -> list[Context]:
    """The contexts, those without an intent with that of a tagger, if one is given."""
    if tagger is None:
        return list(contexts)
    from citerec.diagnostics.families import strata
    from citerec.discourse.tagger import open_tagger, with_intents

    opened = open_tagger(tagger)
    intents = {spelling for spellings in strata()["intent"].values() for spelling in spellings}
    if intents.isdisjoint(map(str.casefold, opened.labels)):
        raise UsageError(f"{tagger} tags no intents of citations; its labels are {', '.join(opened.labels)}")
    return with_intents(contexts, opened)


def refuse_without(option: str, value: object, **others: object) -> None:
    """Raises a usage error if options are given (are not None) that would be ignored without another one."""
    for name, other in others.items():
        if value is None and other is not None:
            raise UsageError(f"--{name.replace('_', '-')} goes with {option} only")


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


def named_values(values: tuple[str, ...], form: str) -> dict[str, str]:
    """NAME=VALUE pairs of the command line; a usage error if one has another form, or a name is there twice."""
    named: dict[str, str] = {}
    for pair in values:
        name, _, value = pair.partition("=")
        if not name or not value or name in named:
            raise UsageError(f"{pair!r} is not {form} with a name of its own")
        named[name] = value
    return named


def named_paths(values: tuple[str, ...], form: str) -> dict[str, Path]:
    """NAME=PATH pairs of the command line, as `named_values`."""
    return {name: Path(path) for name, path in named_values(values, form).items()}


def named_file(value: str) -> tuple[str | None, Path]:
    """The name given to a file, or None, and the file."""
    name, separator, path = value.partition("=")
    return (name, Path(path)) if separator and name and not Path(value).exists() else (None, Path(value))
