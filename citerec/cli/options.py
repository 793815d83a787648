"""Types of the options that several commands share, and checks of options."""

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter, Token

from citerec.cli.commands import UsageError
from citerec.files.progress import Progress, progress_bar
from citerec.records import Filters

if TYPE_CHECKING:
    from citerec.files.parallel import Parallelism


def at_least(least: float, most: float = math.inf) -> Callable[[Any, Any], None]:
    """A validator of a number, or of each of several: it is in a range, and no `nan`."""

    def validate(_kind: Any, value: Any) -> None:
        for number in value if isinstance(value, tuple) else (value,):
            if number is not None and not least <= number <= most:
                raise ValueError(f"must be {least:g} or more{'' if math.isinf(most) else f', and at most {most:g}'}")

    return validate


def _address(_kind: Any, tokens: "tuple[Token, ...]") -> Any:
    from citerec.files.addresses import path_of

    return path_of(tokens[0].value)


Address = Annotated[Path, Parameter(converter=_address, n_tokens=1, metavar="PATH|ADDRESS")]
"""A path, or an address of fsspec such as `s3://bucket/key`."""

Count = Annotated[int, Parameter(validator=at_least(1))]
Natural = Annotated[int, Parameter(validator=at_least(0))]
Share = Annotated[float, Parameter(validator=at_least(0, 1), metavar="SHARE")]
"""A number from 0 to 1."""

Switch = Annotated[bool, Parameter(negative_bool="no-")]
"""An option that has its opposite beside it: `--fold` and `--no-fold`."""

Json = Annotated[bool, Parameter(name="--json", help="Print JSON instead of tables.")]
Seed = Annotated[int, Parameter(validator=at_least(0), help="Seed of all random choices.")]
Resamples = Annotated[int, Parameter(validator=at_least(100), help="Bootstrap samples of the intervals.")]
Device = Annotated[
    str | None, Parameter(metavar="NAME", help="Such as cpu or cuda:0.  [default: a GPU if there is one]")
]
MaxBad = Annotated[
    float,
    Parameter(
        validator=at_least(0, 1),
        metavar="SHARE",
        help="Share of unreadable records above which the work stops. 20 are always allowed, but not all; with 0, none "
        "is.",
    ),
]
Workers = Annotated[
    int | None, Parameter(validator=at_least(1), help="Processes that read.  [default: one for each processor]")
]
On = Annotated[
    str | None,
    Parameter(
        metavar="ray|ADDRESS",
        help="Where the work is done, if not in processes of this machine: ray, a Ray of this machine; ray://HOST:PORT "
        "or HOST:PORT, a Ray cluster (docs/cluster.md). --workers is then how many tasks run at once.",
    ),
]
Work = Annotated[
    Address | None,
    Parameter(
        help="Where the results of shards are kept: a folder, or an address that all machines of a cluster reach.  "
        "[default: beside --out]",
    ),
]
IndexPath = Annotated[
    Path | None,
    Parameter(name="--index", metavar="PATH", help="The index.  [default: the only one below indexes/]"),
]
Splitter = Annotated[
    str,
    Parameter(
        name="--split",
        metavar="pysbd|spacy|MODEL",
        help="Splitter of texts into sentences, if the source does not mark them.",
    ),
]
KeyPattern = Annotated[str, Parameter(metavar="PATTERN", help="Keys of new entries (docs/formats.md#citation-keys).")]
Bib = Annotated[Path | None, Parameter(metavar="FILE")]
GivenInput = Annotated[
    str | None,
    Parameter(
        name="--input",
        metavar="NAME",
        help="What to write from: abstracts or full texts of the cited papers and of the paper that is written, as in "
        "OARelatedWork: abstracts, full, oracle and others (docs/writing.md). Full texts of `oracle` inputs are cut by "
        "looking at the target.",
    ),
]
FullTexts = Annotated[
    tuple[Path, ...],
    Parameter(name="--full-texts", help="S2ORC full texts, for inputs that need them; may be repeated."),
]


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class SystemOptions:
    """The system that searches, and its settings."""

    assignments: Annotated[
        tuple[str, ...],
        Parameter(
            name="--set",
            metavar="KEY=VALUE",
            help="Change one setting, for example words.bm25.k1=0.9; may be repeated. Keys: docs/settings.md.",
        ),
    ] = ()
    system: Annotated[
        str | None,
        Parameter(
            metavar="NAME|FILE",
            help="A built-in system (docs/parts.md); any of them followed by +RERANKER; or a TOML file of settings. "
            "Those that end in -api send words of your text to a web service, and need no index.  [default: the best "
            "that the index supports]",
        ),
    ] = None


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
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

    def filters(self, exclude: tuple[str, ...] = ()) -> Filters:
        """The filters, with papers that are never found."""
        return Filters(self.year_from, self.year_to, self.fields, self.venues, self.min_citations, exclude)


Exclude = Annotated[tuple[str, ...], Parameter(metavar="ID", help="Never this paper; may be repeated.")]
Sort = Literal["relevance", "newest", "oldest", "most-cited", "venue", "field"]


def refuse_without(option: str, value: object, **others: object) -> None:
    """Raises a usage error if options are given (are not None) that would be ignored without another one."""
    for name, other in others.items():
        if value is None and other is not None:
            raise UsageError(f"--{name.replace('_', '-')} goes with {option} only")


def known_input(name: str | None) -> str | None:
    """The name of an input, if there is one of this name; else a usage error."""
    from citerec.write.tasks import INPUTS

    if name is not None and name not in INPUTS:
        raise UsageError(f"--input {name!r} is not one of {', '.join(INPUTS)}")
    return name


def index_of(path: Path | None) -> Path:
    """The given index, or the only one there is."""
    from citerec.index.manifest import find_index

    return find_index(path)


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


def named_pairs(values: tuple[str, ...], form: str) -> dict[str, str]:
    """NAME=VALUE pairs of the command line; a usage error if one has another form, or a name is there twice."""
    pairs: dict[str, str] = {}
    for given in values:
        name, separator, value = given.partition("=")
        if not separator or not name or not value or name in pairs:
            raise UsageError(f"{given!r} is not {form} with a name of its own")
        pairs[name] = value
    return pairs
