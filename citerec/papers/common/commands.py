"""The commands that several papers share: `data …` and `reproduce`, entry points of `citerec.commands`."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter
from rich.text import Text

from citerec.cli import options
from citerec.cli.console import counts_table, give, note, note_set_aside, say
from citerec.errors import UsageError
from citerec.files.progress import progress_bar
from citerec.files.text import names_in

if TYPE_CHECKING:
    from citerec.papers.common.pair_sets import Plan
    from citerec.papers.common.reproduce import Reproduction

data = App(
    "data",
    help="Build data sets to train and to measure writers on.\n\n"
    "Example: citerec data citesum ../shared/data/acm/s2orc --index indexes/acm --out data/citesum",
)


@options.option_group
class FromFullTexts(options.Tuning):
    """How a data set is built from full texts, and the index that has the abstracts.

    Attributes:
        assignments: Change one setting, such as seed=1; may be repeated. A wrong KEY shows which there are.
        config: A TOML file of such settings; -c wins over it.
        out: The folder to make, or to replace.
    """

    out: options.Out
    index: options.IndexPath = None
    max_bad: options.MaxBad = 0.05
    workers: options.Workers = None

    def build(self, sources: tuple[Path, ...], plan: "Plan") -> None:
        """Builds a data set from full texts, and says what came of it."""
        from citerec.index.manifest import find_index
        from citerec.papers.common.pair_sets import QUARANTINE_FILE, Splitting, build_pairs

        settings, index = self.settings(Splitting, plan.conditions), find_index(self.index)
        conditions, splitting = settings.of(plan.conditions), settings.of(Splitting)
        with progress_bar() as bar:
            how: dict[str, Any] = {"max_bad": self.max_bad, "workers": self.workers, "on_progress": bar}
            built = build_pairs(sources, index, self.out, plan, conditions, splitting, **how)
        splits = ", ".join(f"{split} {count:,}" for split, count in built["splits"].items())
        say(f"{self.out} written: {splits}.", counts_table(built["steps"]))
        if built["left_out"]:
            say(Text("\nSentences that cite, left out:", "dim"), counts_table(built["left_out"]))
        note_set_aside(built["bad"], built["faults"], self.out / QUARANTINE_FILE)


def statistics(
    files: Annotated[tuple[str, ...], Parameter(name="[NAME=]FILE")],
    /,
    *,
    over: Annotated[str, Parameter(metavar="LIST")] = "1024,4096,16384",
    tokenizer: Annotated[str | None, Parameter(metavar="NAME|FOLDER")] = None,
    near: float = 0.9,
    against: Annotated[Path | None, Parameter(metavar="FILE")] = None,
    form: options.Format = "table",
    out: options.OutFile = None,
) -> None:
    """Describe data sets: files of tasks for write batch, train writer and eval-text.

    Prints sizes, lengths, compression, novelty, shares of long texts, and tasks of nearly the same
    input.

    Example: citerec data statistics train=scitldr/train.jsonl dev=scitldr/dev.jsonl --over 512,1024

    Args:
        files: Files of tasks, each perhaps with a name.
        over: Numbers of tokens: the shares of longer inputs and targets are given.
        tokenizer: Count this model's tokens, special ones included.  [default: what stands between white space]
        near: Cosine of TF-IDF vectors above which two inputs are nearly the same. 0: leave this out.
        against: Tasks that a model learnt from: how many are near to one of them?
    """
    from citerec.papers.common.statistics import statistics_table, task_statistics

    limits = names_in(over)
    if not all(limit.isascii() and limit.isdecimal() for limit in limits):
        raise UsageError(f"--over {over!r} is no list of numbers such as 1024,4096")
    with progress_bar() as on_progress:
        figures = task_statistics(
            _named(files),
            over=list(map(int, limits)),
            near=near,
            tokenizer=tokenizer,
            against=against,
            on_progress=on_progress,
        )
    give(form, out, figures, [statistics_table(figures)])


def _named(values: tuple[str, ...]) -> dict[str, Path]:
    """Files by the names given to them, or else by their own without endings."""
    files: dict[str, Path] = {}
    for label, path in map(options.named_file, values):
        name = label or re.sub(r"\.(jsonl?|gz)\b", "", path.name)
        if name in files:
            raise UsageError(f"two files have the name {name}: give them others, NAME=FILE")
        files[name] = path
    return files


def reproduce(
    name: Annotated[str, Parameter(name="NAME|list")],
    /,
    *,
    sample: bool = False,
    data: Annotated[Path | None, Parameter(metavar="FOLDER")] = None,
    writers: Annotated[tuple[str, ...], Parameter(name="--writer", metavar="ROW=NAME|FOLDER")] = (),
    index: Annotated[Path | None, Parameter(metavar="FOLDER")] = None,
    device: options.Device = None,
    out: options.OutFolder = None,
    form: options.Format = "table",
) -> None:
    """Measure a table of a paper, beside its published figures.

    NAME is a table, such as citebench-3; `list` shows all of them, what each needs, and what of that is
    here. Rows that cannot be measured here keep their published figures, and the output says what is
    missing and how to get it. Nothing is downloaded.

    Example: citerec reproduce citebench-3 --sample

    Args:
        name: The table.
        sample: Measure a small sample instead of the table's data; titles say so.
        data: The data folder.  [default: the variable CITEREC_DATA, else ./data, else ../shared/data]
        writers: Fill a row with a writer or checkpoint of yours; several for one row are runs of it. For ranked lists,
            a system.
        index: For ranked lists: the index.  [default: that of the demo set]
        out: Write JSON, CSV and a page here; a stopped run is continued.
    """
    from citerec.papers.common.reproduce import needs, needs_table, reproduce as measured

    if name == "list":
        tables = needs(data)
        give(form, None, tables, [needs_table(tables)], whole=True)
        return
    with progress_bar() as on_progress:
        reproduction = measured(
            name,
            sample=sample,
            data=data,
            writers=writers,
            index=index,
            device=device,
            out=out,
            on_progress=on_progress,
        )
    give(form, None, reproduction.to_json, _parts_of(reproduction), whole=True)
    if out is not None:
        note(f"{out}: reproduction.json, table.csv, and a page to read: {out}/report.html")


def _parts_of(reproduction: "Reproduction") -> Iterator[Any]:
    """The tables, what is missing, and the settings."""
    yield Text(reproduction.title, "bold")
    yield from (Text(line, "yellow") for line in reproduction.remarks)
    for table in reproduction.tables():
        yield ""
        yield table
    yield ""
    yield from (Text(line, "not bold dim") for line in reproduction.explanations())
    if reproduction.missing:
        yield Text("\nNot measured", "bold")
        yield from (f"  {one}" for one in reproduction.missing)
