"""Gets the results of reproducibility.toml again, and says which are not as they should be.

    python benchmarks/reproducibility.py [NAME …] [--work FOLDER] [--minutes 5]
    python benchmarks/reproducibility.py --page docs/reproducibility.md

Without names, all that needs at most so many minutes, and whose data is here. It prints each command as a reader would
type it, and a table of what was expected and what came; the exit code is 1 if a figure is further away than its
tolerance. With --page it runs nothing, and writes the page of the documentation.
"""

import argparse
import shlex
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from citerec.evaluation.results import Results

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"
RESULTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

HEAD = """# Reproducibility
Each result below has its commands, its figures, and how far from them another machine may come. `make reproducibility`
runs all that take less than five minutes and whose data is there; `python benchmarks/reproducibility.py demo` runs one.
The demo set comes with citerec; the other [data](#data) are collections of others. README and
[Benchmarks](results.md) have their figures from the same file, `benchmarks/reproducibility.toml`.

Where a number of yours is to be cited, keep the folder that `--out` writes: `meta.json` in it names versions, command,
and digests of contexts, index, encoder, ranker and plug-ins ([files](formats.md#results)).
"""
DATASETS = """
## Data
In commands, DATA is a folder with the collections, and WORK any folder for what is made.

| name | where it comes from |
|---|---|
| acm | ACM-CR test collection (papers, abstracts, citations by hand); full texts of SemEval-2010 and NUS key phrases |
| acl | ACL Anthology; ACL Anthology Network; citing sentences of ScisummNet and of Athar's corpus |
| text/scitldr | SciTLDR, abstracts only (Cachola et al., 2020) |

`benchmarks/acl-dev` lists the contexts of acl's dev set by ids, with their classes, the digests of their sentences, and
a datasheet: `python benchmarks/acl_dev.py check DATA/acl/contexts-dev.jsonl` says whether yours are the same.
"""


def main() -> int:
    """Runs what is asked for; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(RESULTS)}")
    parser.add_argument("--work", type=Path, help="a folder for what is made; by default one that is removed")
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--page", type=Path, help="write the page there, and run nothing")
    arguments = parser.parse_args()
    if arguments.page:
        arguments.page.write_text(page(), encoding="utf-8")
        return 0
    short = [name for name, one in RESULTS.items() if one["minutes"] <= arguments.minutes]
    names = arguments.names or short
    with tempfile.TemporaryDirectory(prefix="citerec-reproduced-") as folder:
        rows = [row for name in names for row in reproduced(name, (arguments.work or Path(folder)).resolve())]
    print("\n| result | figure | expected | came | |\n|---|---|---:|---:|---|")
    print("\n".join(f"| {name} | {figure} | {old:.3f} | {new:.3f} | {said} |" for name, figure, old, new, said in rows))
    return int(any(said for *_, said in rows))


def reproduced(name: str, work: Path) -> list[tuple[str, str, float, float, str]]:
    """The figures of a result: expected, as they came, and what is wrong. None where its data is missing."""
    one = RESULTS[name]
    if not (DATA / one["data"]).is_dir():
        print(f"{name}: left out, there is no {DATA / one['data']}", file=sys.stderr)
        return []
    for command in one["commands"]:
        print(command, flush=True)
        program, *words = shlex.split(command.replace("WORK", str(work)).replace("DATA", str(DATA)))
        subprocess.run(
            [Path(sys.executable).with_name(program), *words], check=True, cwd=ROOT, stdout=subprocess.DEVNULL
        )
    frame = Results.read(work / "results" / name).to_frame()
    overall = frame[frame["family"] == "overall"].set_index("system")
    rows = []
    for figure, expected in one["figures"].items():
        system, metric = figure.rsplit(" ", 1)
        came = float(overall.loc[system, metric])
        said = "" if abs(came - expected) <= one["tolerance"] else f"further away than {one['tolerance']:g}"
        rows.append((name, figure, expected, came, said))
    return rows


def page() -> str:
    """The page of the documentation."""
    parts = [HEAD]
    for name, one in RESULTS.items():
        commands = "\n".join(one["commands"])
        parts.append(f"\n## {name}\n{one['what']} {took(one)}\n\n```bash\n{commands}\n```\n")
        rows = "".join(f"| {figure} | {value:.3f} |\n" for figure, value in one["figures"].items())
        parts.append(f"\n| figure | ± {one['tolerance']:g} |\n|---|---:|\n{rows}")
    return "".join([*parts, DATASETS])


def took(one: dict[str, Any]) -> str:
    """How long a result takes, in words."""
    minutes, where = one["minutes"], "a GPU" if one.get("gpu") else "two processors"
    return f"About {minutes} minute{'s' * (minutes > 1)} on {where}." if minutes < 60 else f"Some hours on {where}."


if __name__ == "__main__":
    sys.exit(main())
