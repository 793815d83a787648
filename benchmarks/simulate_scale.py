"""Simulated scale: hours and cost of 200 million papers and ten million full texts on N machines.

    python benchmarks/simulate_scale.py --work /tmp/scale
    python benchmarks/simulate_scale.py --work /tmp/scale --machines 16,64 --scenario cpu --set qdrant_nodes=16
    python benchmarks/simulate_scale.py --work /tmp/scale --docs docs/simulated-scale.md

Nothing is run at that size: a discrete-event model (`cluster_model.py`) works off shards with rates that were measured
on one machine, and with others that are assumed. `--inputs` lists all of them with where they come from; `--set`
changes one. It writes `simulated-scale.json` and `simulated-scale.svg` into the folder. The same inputs give the same
bytes. The driver and the nodes of databases do not die in this model; machines do.
"""

import argparse
import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cluster_model import Conditions, Stage, StageResult, simulate

MACHINES = "1,2,4,8,16,32,64,128,256"
BEGIN, END = "<!-- simulated scale: written by benchmarks/simulate_scale.py -->", "<!-- end of simulated scale -->"
GROWTH, SPEED, SCALE, SETS = "docs/growth.md", "benchmarks/README.md", "docs/scale.md", "docs/diagnostics.md"


@dataclass(frozen=True, slots=True)
class Input:
    """A number that goes in, and its basis.

    What was measured, published or carried on by a line of growth has words of the page that tells it; the rest is
    assumed, or given by the task.
    """

    value: float
    unit: str
    basis: str
    source: str
    quote: str = ""


def measured(value: float, unit: str, page: str, quote: str, note: str = "", basis: str = "measured") -> Input:
    return Input(value, unit, basis, f"{page}{note and ': ' + note}", quote)


def assumed(value: float, unit: str, why: str = "") -> Input:
    return Input(value, unit, "assumed", why)


def given(value: float, unit: str, why: str = "issue") -> Input:
    return Input(value, unit, "given", why)


INPUTS: dict[str, Input] = {
    "papers": given(200e6, "papers", "the size asked for"),
    "citations": given(2.4e9, "citations", "the size asked for"),
    "texts": given(10e6, "full texts", "the size asked for"),
    "text_bytes": measured(47_854, "characters a text", "data/acm/s2orc", "", "mean of 116 texts"),
    "text_packed": measured(16_768, "bytes a text, compressed", "data/acm/s2orc", "", "mean of 116 texts"),
    "text_sentences": measured(39.9, "citing sentences a text", "data/acm/s2orc", "", "markers, mean of 116 texts"),
    "paper_packed": measured(
        440e9 / 225e6, "bytes to fetch a paper", SCALE, "440 GB", "a release, citations included", "published"
    ),
    "processors": given(2, "processors a machine", "as the machine that was measured"),
    "read_papers": measured(193_543, "papers a processor second", SPEED, "193,543", "made-up records"),
    "read_citations": measured(268_363, "citations a processor second", SPEED, "268,363", "made-up records"),
    "extract": measured(
        0.30e6, "characters a second, one process", SPEED, "pysbd, 1 process | 13.9 | 14 | 0.30 |", "made-up texts"
    ),
    "build": measured(96.9, "s a million papers, one machine", GROWTH, "| 1,000,000 | build | 96.9 |"),
    "build_reading": measured(14.9 / 46.6, "of it reading shards", SPEED, "reading 14.9", "of 46.6 processor seconds"),
    "encode": measured(13_611, "s a million papers, one machine", GROWTH, "| 1,000,000 | encode | 13,611 |"),
    "profile": measured(9025 / 180, "sentences a processor second", "docs/results.md", "from 9,025 pairs", "3 minutes"),
    "analyse": measured(106_338 / 19, "papers a processor second", SPEED, "took 19 s", "words for sparse vectors"),
    "graph": measured(400_000 / 185, "vectors a processor second", SPEED, "40 s and 185 s", "FAISS HNSW, one thread"),
    "faiss": measured(55_958, "s for 200 million vectors", GROWTH, "55,958", "from a million and less", "carried on"),
    "text_files": measured(636, "files of full texts", SETS, "636 shards", "of a release", "published"),
    "release_files": assumed(360, "files of papers, abstracts, citations"),
    "encode_part": assumed(50_000, "papers a shard of encoding"),
    "profile_part": assumed(100_000, "sentences a shard of profiles"),
    "push_part": assumed(200_000, "points a shard of the upload"),
    "machine_link": assumed(125e6, "bytes a second, a machine", "1 Gbit/s"),
    "driver_link": assumed(125e6, "bytes a second, the driver", "1 Gbit/s"),
    "site_link": assumed(1250e6, "bytes a second, the release's servers", "10 Gbit/s for all machines together"),
    "paper_bytes": assumed(1_500, "bytes of text sent to encode a paper"),
    "sentence_bytes": assumed(300, "bytes of text sent to encode a sentence"),
    "context_bytes": assumed(1_000, "bytes of a context that extraction sends back"),
    "vector_bytes": given(768, "bytes a vector", "384 numbers, float16"),
    "point_bytes": assumed(3_000, "bytes a point", "vector, words, payload"),
    "send": assumed(2_000, "points a processor second, sending them", "the client's own work"),
    "mongodb_nodes": assumed(8, "nodes of MongoDB"),
    "mongodb_records": assumed(5_000, "records a second, a node"),
    "qdrant_nodes": assumed(8, "nodes of Qdrant"),
    "qdrant_points": assumed(5_000, "points a second, a node"),
    "node_processors": assumed(8, "processors a node", "they also build the graph"),
    "gpu": given(0, "1: machines that encode have a GPU", "chosen by the scenario"),
    "gpu_papers": assumed(2_000, "papers a second, one GPU", "no GPU was measured: 192 tokens at some 10 TFLOP/s"),
    "gpu_sentences": assumed(5_000, "sentences a second, one GPU", "no GPU was measured: texts of 72 tokens"),
    "one_driver": given(0, "1: SQLite, Lucene, FAISS on one machine", "chosen by the scenario"),
    "deaths": assumed(0.05, "deaths an hour of each machine", "a spot machine lives 20 hours in the mean"),
    "detect": assumed(60, "s until a lost shard is given away"),
    "replace": assumed(300, "s until a new machine is there"),
    "spread": assumed(0.2, "of the logarithm of a shard's work"),
    "slow_share": assumed(0.02, "of the machines are slow"),
    "slow_factor": assumed(3, "times as long on a slow machine"),
    "price": assumed(0.10, "for an hour of a machine", "no vendor's price: put in yours; the driver too"),
    "gpu_price": assumed(1.00, "for an hour of a machine with a GPU", "no vendor's price: put in yours"),
    "node_price": assumed(0.40, "for an hour of a node", "paid while its stage lasts"),
}

MAY_BE_ZERO = {"gpu", "one_driver", "deaths", "detect", "replace", "spread", "slow_share"} | {
    name for name in INPUTS if "price" in name
}

SCENARIOS: dict[str, tuple[str, dict[str, float]]] = {
    "cpu": ("MongoDB and Qdrant, encoding on CPUs", {}),
    "cpu-no-deaths": ("the same, no machine dies", {"deaths": 0}),
    "cpu-spot-hour": ("the same, a machine lives one hour in the mean", {"deaths": 1}),
    "cpu-large-parts": (
        "the same, encoding cut into 360 parts",
        {"encode_part": 200e6 / 360, "profile_part": 399e6 / 360},
    ),
    "one-driver": ("SQLite, Lucene and FAISS on the driver, encoding on CPUs", {"one_driver": 1}),
    "gpu": ("MongoDB and Qdrant, encoding on GPUs (an assumed rate)", {"gpu": 1}),
    "gpu-twice": ("the same, twice the nodes", {"gpu": 1, "mongodb_nodes": 16, "qdrant_nodes": 16}),
}


def values(changes: Mapping[str, float]) -> dict[str, float]:
    """The inputs as numbers, some of them changed."""
    return {name: one.value for name, one in INPUTS.items()} | dict(changes)


def pipeline(v: Mapping[str, float]) -> list[Stage]:
    """The stages for inputs, in order; times are those of all work, which is cut into shards of equal size."""
    cpus, papers, sentences = v["processors"], v["papers"], v["texts"] * v["text_sentences"]
    records, files = papers + sentences, v["release_files"] + v["text_files"]

    def stage(name: str, shards: float, work: float, place: str, service: float, price: float = v["price"]) -> Stage:
        shards = max(1, round(shards))
        nodes = {"MongoDB": v["mongodb_nodes"], "Qdrant": v["qdrant_nodes"]}.get(place, 0)
        # The driver is there in every stage.
        return Stage(name, shards, work / shards, place, service / shards, price, v["price"] + nodes * v["node_price"])

    def through_driver(count: float, size: float) -> float:
        return count * size / v["driver_link"]

    fetched = papers * v["paper_packed"] + v["texts"] * v["text_packed"]
    reading = (papers / v["read_papers"] + v["citations"] / v["read_citations"]) / cpus
    # Files are read while they come, so a shard takes the longer of both, of which its turn at the servers is a part.
    turns = fetched / v["site_link"]
    fetching = max(reading, fetched / v["machine_link"], turns) - turns
    extracting = v["texts"] * v["text_bytes"] / (v["extract"] * cpus)
    building, share = v["build"] / 1e6 * records, v["build_reading"]
    store, storing = "MongoDB", records / (v["mongodb_nodes"] * v["mongodb_records"])
    if v["one_driver"]:
        store, storing = "driver", building * (1 - share)
    paper, sentence, price = v["encode"] / 1e6, 1 / (v["profile"] * cpus), v["price"]
    if v["gpu"]:
        paper, sentence, price = 1 / v["gpu_papers"], 1 / v["gpu_sentences"], v["gpu_price"]
    texts = through_driver(papers, v["paper_bytes"] + v["vector_bytes"])
    lines = through_driver(sentences, v["sentence_bytes"] + v["vector_bytes"])
    stages = [
        stage("fetch", files, fetching, "release servers", turns),
        stage("extract", v["text_files"], extracting, "driver", through_driver(sentences, v["context_bytes"])),
        stage("ingest", files, building * share, store, storing),
        stage("encode", papers / v["encode_part"], papers * paper, "driver", texts, price),
        stage("profiles", sentences / v["profile_part"], sentences * sentence, "driver", lines, price),
    ]
    if v["one_driver"]:
        return [*stages, Stage("arrange vectors", 0, 0, "driver", v["faiss"], v["price"], v["price"])]
    rate = v["qdrant_nodes"] * min(v["qdrant_points"], v["graph"] * v["node_processors"])
    sending = records * ((1 / v["analyse"] + 1 / v["send"]) / cpus + v["point_bytes"] / v["machine_link"])
    return [*stages, stage("push", records / v["push_part"], sending, "Qdrant", records / rate)]


def conditions(v: Mapping[str, float]) -> Conditions:
    return Conditions(v["deaths"], v["detect"], v["replace"], v["spread"], v["slow_share"], v["slow_factor"])


def repeated(changes: Mapping[str, float], machines: int, seeds: int) -> dict[str, Any]:
    """The summary of the runs of all seeds."""
    v = values(changes)
    stages, wrong = pipeline(v), conditions(v)
    return summary([simulate(stages, machines, wrong, seed) for seed in range(seeds)], machines)


def summary(runs: Sequence[Sequence[StageResult]], machines: int) -> dict[str, Any]:
    """Means over the seeds, and between which values nine of ten seeds lie."""
    totals = [_totals(run, machines) for run in runs]
    found: dict[str, Any] = {"machines": machines}
    for key in totals[0]:
        each = [one[key] for one in totals]
        cuts = statistics.quantiles(each, n=20, method="inclusive") if len(each) > 1 else each
        found[key] = {"mean": statistics.fmean(each), "low": cuts[0], "high": cuts[-1]}
    found["stages"] = {}
    for results in zip(*runs, strict=True):
        reasons = [result.held_back_by for result in results]
        found["stages"][results[0].stage.name] = {
            "hours": statistics.fmean(result.hours for result in results),
            "utilisation": statistics.fmean(result.utilisation for result in results),
            "held_back_by": max(sorted(set(reasons)), key=reasons.count),
        }
    found["longest"] = max(found["stages"], key=lambda name: found["stages"][name]["hours"])
    return found


def _totals(run: Sequence[StageResult], machines: int) -> dict[str, float]:
    hours = sum(result.hours for result in run)
    return {
        "hours": hours,
        "cost": sum(result.cost for result in run),
        "utilisation": sum(result.worked for result in run) / (hours * machines),
        "lost_share": sum(result.lost for result in run) / (hours * machines),
        "deaths": sum(result.deaths for result in run),
    }


def sensitivity(names: Sequence[str], changes: Mapping[str, float], machines: int) -> dict[str, dict[str, list[float]]]:
    """By what factor the hours change with half and with twice each assumed input, in each scenario (5 seeds)."""
    found: dict[str, dict[str, list[float]]] = {}
    for scenario in names:
        given_here = SCENARIOS[scenario][1] | dict(changes)
        usual = repeated(given_here, machines, 5)["hours"]["mean"]
        for name, one in INPUTS.items():
            if one.basis != "assumed" or "price" in name:
                continue
            each = [given_here | {name: given_here.get(name, one.value) * factor} for factor in (0.5, 2)]
            hours = [repeated(changed, machines, 5)["hours"]["mean"] / usual for changed in each]
            found.setdefault(name, {})[scenario] = hours
    return found


def sensitivity_table(found: Mapping[str, Mapping[str, Sequence[float]]], machines: int) -> str:
    """The inputs that change the hours by 2 % or more, in Markdown."""
    names = list(next(iter(found.values())))
    head = [f"`{name}`, {what}" for name in names for what in ("half", "twice")]
    lines = [f"| assumed input, {machines} machines | {' | '.join(head)} |", "|---|" + "---:|" * len(head)]
    small = []
    for name, scenarios in found.items():
        factors = [factor for scenario in names for factor in scenarios[scenario]]
        if max(abs(factor - 1) for factor in factors) < 0.02:
            small.append(f"`{name}`")
        else:
            lines.append(f"| `{name}` | {' | '.join(f'× {factor:.2f}' for factor in factors)} |")
    return "\n".join([*lines, "", f"Less than 2 % either way: {', '.join(small)}."])


def table(found: Mapping[str, Any], seeds: int) -> str:
    """The tables of the page, in Markdown: the first scenario in full, hours of all others, and of the stages."""
    first, *_ = found
    lines = [
        f"{seeds} seeds. Scenario `{first}`: {SCENARIOS[first][0]}. In brackets: nine of ten seeds lie between.",
        "",
        "| machines | hours | cost | at work | lost to deaths | longest stage | held back by |",
        "|---:|---:|---:|---:|---:|---|---|",
    ]
    for row in found[first]["machines"]:
        longest = row["stages"][row["longest"]]
        work, lost = (
            f"{100 * row[key]['mean']:.{digits}f} %" for key, digits in (("utilisation", 0), ("lost_share", 1))
        )
        shown = f"{row['machines']} | {_range(row['hours'])} | {_range(row['cost'])} | {work} | {lost}"
        lines.append(f"| {shown} | {row['longest']}, {_number(longest['hours'])} h | {longest['held_back_by']} |")
    names = list(found[first]["machines"][-1]["stages"])
    lines += ["", f"Hours of its stages, and what holds each back:\n\n| machines | {' | '.join(names)} |"]
    lines.append("|---:|" + "---:|" * len(names))
    for row in found[first]["machines"]:
        cells = [f"{_number(one['hours'])}, {one['held_back_by']}" for one in row["stages"].values()]
        lines.append(f"| {row['machines']} | {' | '.join(cells)} |")
    columns = [str(row["machines"]) for row in found[first]["machines"]]
    lines += ["", "All scenarios, hours (cost):\n", f"| scenario | what it is | {' | '.join(columns)} |"]
    lines.append("|---|---|" + "---:|" * len(columns))
    for name, scenario in found.items():
        cells = [f"{_number(row['hours']['mean'])} ({_number(row['cost']['mean'])})" for row in scenario["machines"]]
        lines.append(f"| `{name}` | {SCENARIOS[name][0]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def inputs_table() -> str:
    lines = ["| input | value | unit | basis | from |", "|---|---:|---|---|---|"]
    for name, one in INPUTS.items():
        lines.append(f"| `{name}` | {_number(one.value)} | {one.unit} | {one.basis} | {one.source} |")
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _range(one: Mapping[str, float]) -> str:
    return f"{_number(one['mean'])} ({_number(one['low'])}–{_number(one['high'])})"


def write_page(page: Path, text: str) -> None:
    """Puts a text between the marks of a page."""
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


def positive(text: str) -> int:
    """A number on the command line."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number above 0")
    return int(text)


def counts(text: str) -> list[int]:
    return [positive(one) for one in text.split(",")]


def setting(text: str) -> tuple[str, float]:
    """NAME=VALUE of `--set`."""
    name, _, value = text.partition("=")
    if name not in INPUTS:
        raise argparse.ArgumentTypeError(f"there is no input {name!r}; --inputs lists them")
    try:
        number = float(value)
    except ValueError:
        example = f"{name}={INPUTS[name].value:g}"
        raise argparse.ArgumentTypeError(f"{value!r} is not a number; write {example}") from None
    if not (0 < number < float("inf") or (number == 0 and name in MAY_BE_ZERO)):
        raise argparse.ArgumentTypeError(f"{name} must be {'0 or ' * (name in MAY_BE_ZERO)}above 0")
    return name, number


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, metavar="FOLDER", help="where JSON and plot are written")
    parser.add_argument("--machines", type=counts, default=MACHINES, help="numbers of machines (default: %(default)s)")
    parser.add_argument("--seeds", type=positive, default=20, help="runs of each (default: %(default)s)")
    parser.add_argument("--scenario", action="append", choices=SCENARIOS, help="only this one; may be repeated")
    parser.add_argument(
        "--set", type=setting, action="append", default=[], metavar="NAME=VALUE", help="another value of an input"
    )
    parser.add_argument(
        "--sensitivity", type=positive, metavar="N", help="half and twice each assumption, on N machines"
    )
    parser.add_argument("--inputs", action="store_true", help="only list the inputs")
    parser.add_argument("--docs", type=Path, metavar="PAGE", help="write tables into this page, the plot beside it")
    arguments = parser.parse_args()
    if arguments.inputs:
        print(inputs_table())
        return
    if arguments.work is None:
        parser.error("--work FOLDER is missing")
    changes = dict(arguments.set)
    found: dict[str, Any] = {}
    for name in arguments.scenario or SCENARIOS:
        changed = SCENARIOS[name][1] | changes
        rows = []
        for count in arguments.machines:
            rows.append(repeated(changed, count, arguments.seeds))
            print(f"{name}, {count} machines: {_range(rows[-1]['hours'])} hours", flush=True)
        stages = pipeline(values(changed))
        one = sum(stage.hours_of_one for stage in stages)
        found[name] = {"changes": changed, "hours_of_one": one, "stages": [asdict(stage) for stage in stages]}
        found[name]["machines"] = rows
    arguments.work.mkdir(parents=True, exist_ok=True)
    written: dict[str, Any] = {"inputs": {name: asdict(one) for name, one in INPUTS.items()}, "seeds": arguments.seeds}
    written["scenarios"] = found
    tables = table(found, arguments.seeds)
    if arguments.sensitivity:
        written["sensitivity"] = sensitivity(arguments.scenario or ["cpu", "gpu"], changes, arguments.sensitivity)
        tables += f"\n\n{sensitivity_table(written['sensitivity'], arguments.sensitivity)}"
    text = json.dumps(written, indent=1)
    (arguments.work / "simulated-scale.json").write_text(text + "\n", encoding="utf-8")
    from scale_plot import draw  # matplotlib takes a second, and --help needs none

    draw(found, {name: title for name, (title, _) in SCENARIOS.items()}, arguments.work / "simulated-scale.svg")
    print(f"\n{tables}")
    if arguments.docs:
        write_page(arguments.docs, f"{tables}\n\n## What goes in\n{inputs_table()}")
        plot = arguments.docs.with_suffix(".svg")
        plot.write_bytes((arguments.work / "simulated-scale.svg").read_bytes())


if __name__ == "__main__":
    main()
