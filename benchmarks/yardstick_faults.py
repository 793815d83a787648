"""The share of mutants that the suite kills: faults planted one at a time, by the operators of cosmic-ray.

150 mutants are drawn with a fixed seed from the rooms that decide what users get: a place in the code first, then one
of the changes that are possible there. Each runs the tests that executed its line, quickest first, for 60 seconds at
most, two mutants at a time. A mutant is killed if a test fails; neither a time-out is a kill, nor a line that no test
executes.
"""

import ast
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
PLACES = (
    *("citerec/retrieve", "citerec/index", "citerec/contexts/topic.py", "citerec/evaluation"),
    *("citerec/drafts", "citerec/corpus", "citerec/sources", "citerec/files"),
)
MUTANTS, SEED, SECONDS, AT_ONCE, TESTS = 150, 0, 60, 2, 200
LEFT_OUT = ("VariableReplacer", "VariableInserter")
"""Operators that need names to be given."""
COVERAGE = """[run]
source = citerec
parallel = true
patch = subprocess
sigterm = true
context = ${PYTEST_CURRENT_TEST-}
data_file = %s
"""
PLUGIN = '''"""Notes for each line which test executed it: loaded by `pytest -p covered_tests`."""

import os

import coverage
import pytest

# Processes that a test starts read the rules anew: these hold the name of the test.
os.environ.pop("COVERAGE_PROCESS_CONFIG", None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    if measured := coverage.Coverage.current():
        measured.switch_context(item.nodeid)
    return (yield)
'''


def faults(out: Path, work: Path) -> None:
    """Writes faults.json: the share that is killed, line coverage, and what became of each mutant."""
    work = work / "faults"
    (work / "plugin").mkdir(parents=True, exist_ok=True)
    (work / "plugin" / "covered_tests.py").write_text(PLUGIN, encoding="utf-8")
    trees = [tree(work, number) for number in range(AT_ONCE)]
    data = covered(trees[0], work)
    tests, share = tests_by_line(data, work, trees[0])
    mutants = drawn(trees[0])
    ended: dict[str, str] = {}
    journal = work / "mutants.jsonl"
    if journal.exists():
        ended = dict(json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines())
    free: SimpleQueue[Path] = SimpleQueue()
    for one in trees:
        free.put(one)

    def tried(mutant: dict[str, Any]) -> tuple[str, str]:
        place = free.get()
        try:
            return name_of(mutant), outcome(mutant, tests.get((mutant["file"], mutant["line"]), []), place, work)
        finally:
            free.put(place)

    todo = [mutant for mutant in mutants if name_of(mutant) not in ended]
    with ThreadPoolExecutor(AT_ONCE) as pool, journal.open("a", encoding="utf-8") as file:
        for name, verdict in pool.map(tried, todo):
            ended[name] = verdict
            file.write(json.dumps([name, verdict]) + "\n")
            file.flush()
            print(f"{len(ended)} of {len(mutants)}: {verdict}  {name}", flush=True)
    verdicts = [ended[name_of(mutant)] for mutant in mutants]
    facts = {
        "killed": verdicts.count("killed") / len(verdicts),
        "mutants": len(verdicts),
        "line coverage": share,
        "verdicts": {name_of(mutant): ended[name_of(mutant)] for mutant in mutants},
    }
    (out / "faults.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def tree(work: Path, number: int) -> Path:
    """A clone of the repository, beside a link to ../shared."""
    folder = work / f"tree-{number}"
    if not folder.exists():
        partial = work / f"tree-{number}.part"
        shutil.rmtree(partial, ignore_errors=True)
        subprocess.run(["git", "clone", "--quiet", ROOT, partial], check=True)
        partial.rename(folder)
    if not (link := work / "shared").exists():
        link.symlink_to(ROOT.parent / "shared")
    return folder


def pytest(place: Path, work: Path, *arguments: object, covered: bool = False) -> "subprocess.Popen[bytes]":
    """Starts pytest on the code of a tree."""
    rules = work / "coverage.ini"
    measured = ("-m", "coverage", "run", f"--rcfile={rules}") if covered else ()
    # Nothing is written into the environment that several runs share.
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(place), str(work / "plugin")]),
        "OMP_NUM_THREADS": "1",
        "CITEREC_CI": "1",
        **({"COVERAGE_PROCESS_START": str(rules)} if covered else {}),
    }
    command = [sys.executable, *measured, "-m", "pytest", "-q", "-p", "no:cacheprovider", *map(str, arguments)]
    with (work / f"{place.name}.log").open("wb") as log:
        return subprocess.Popen(command, cwd=place, env=environment, stdout=log, stderr=log, start_new_session=True)


def covered(place: Path, work: Path) -> Path:
    """Runs the suite, folder by folder, and notes which test executed which line."""
    data = work / "coverage"
    data.mkdir(exist_ok=True)
    (work / "coverage.ini").write_text(COVERAGE % (data / "data"), encoding="utf-8")
    for folder in sorted(path.parent for path in place.glob("tests/*/__init__.py")):
        report = data / f"{folder.name}.xml"
        if report.exists():
            continue
        partial = report.with_suffix(".part")
        spread = ("-n", 2, "--dist", "loadfile", "-p", "covered_tests", "--junitxml", partial)
        pytest(place, work, f"tests/{folder.name}", *spread, covered=True).wait()
        partial.rename(report)
        print(f"covered by tests/{folder.name}", flush=True)
    if not (data / "combined").exists():
        command = [sys.executable, "-m", "coverage", "combine", f"--rcfile={work / 'coverage.ini'}", "--keep"]
        # The files by name: in a folder, only those that are called like the result would be taken.
        command += [f"--data-file={data / 'combined'}", *map(str, sorted(data.glob("data.*")))]
        subprocess.run(command, check=True, cwd=place, capture_output=True)
    return data


def tests_by_line(data: Path, work: Path, place: Path) -> tuple[dict[tuple[str, int], list[str]], float]:
    """The tests that executed each line, quickest first, as `file::function`; and the share of the tree's lines."""
    import coverage

    seconds: dict[str, float] = {}
    for report in data.glob("*.xml"):
        for case in ElementTree.parse(report).iter("testcase"):
            name = f"{case.get('classname')}::{str(case.get('name')).partition('[')[0]}"
            seconds[name] = seconds.get(name, 0.0) + float(case.get("time", 0))
    measured = coverage.CoverageData(str(data / "combined"))
    measured.read()
    found: dict[tuple[str, int], list[str]] = {}
    for path in measured.measured_files():
        name = path[path.index("/citerec/") + 1 :] if "/citerec/" in path else path
        for line, contexts in measured.contexts_by_lineno(path).items():
            ids = {part for context in contexts for part in context.split("|") if "::" in part}
            functions = {one.partition(" (")[0].partition("[")[0] for one in ids}
            ordered = sorted(functions, key=lambda one: (seconds.get(classname(one), SECONDS), one))
            found[name, line] = ordered
    reporter = coverage.Coverage(data_file=str(data / "combined"), config_file=str(work / "coverage.ini"))
    reporter.load()
    with tempfile.TemporaryFile("w") as file:
        return found, round(reporter.report(file=file, include=str(place / "citerec" / "*")) / 100, 4)


def classname(function: str) -> str:
    """The name of a test as JUnit's files write it."""
    path, _, name = function.partition("::")
    return f"{path.removesuffix('.py').replace('/', '.')}::{name}"


def drawn(place: Path) -> list[dict[str, Any]]:
    """The mutants."""
    sites: list[list[dict[str, Any]]] = []
    for name in PLACES:
        folder = place / name
        for path in [folder] if folder.suffix else sorted(folder.rglob("*.py")):
            sites += sites_of(path, path.relative_to(place).as_posix())
    choice, spare = random.Random(SEED), random.Random(SEED + 1)
    mutants = [choice.choice(site) for site in choice.sample(sites, MUTANTS)]
    others = (spare.choice(spare.choice(sites)) for _ in itertools.count())
    possible = (other for other in others if other not in mutants and mutated(other, place) is not None)
    return [mutant if mutated(mutant, place) is not None else next(possible) for mutant in mutants]


def mutated(mutant: dict[str, Any], place: Path) -> str | None:
    """The code of the file with the fault in it; None where cosmic-ray cannot plant it."""
    from cosmic_ray.mutating import MutationVisitor
    from cosmic_ray.plugins import get_operator

    source = (place / mutant["file"]).read_text(encoding="utf-8")
    try:
        code: str | None = MutationVisitor.mutate_code(source, get_operator(mutant["operator"])(), mutant["occurrence"])
    except AttributeError:  # of ExceptionReplacer, where an exception's name has a dot
        return None
    return code


def sites_of(path: Path, name: str) -> Iterator[list[dict[str, Any]]]:
    """The places of a file that can be changed, and the changes that are possible at each."""
    from cosmic_ray.ast import Visitor, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    source = path.read_text(encoding="utf-8")
    typed = annotations(source)
    operators = {one: get_operator(one)() for one in operator_names() if not one.endswith(LEFT_OUT)}
    counts = dict.fromkeys(operators, 0)
    sites: dict[tuple[int, int], list[dict[str, Any]]] = {}

    class Collector(Visitor):  # type: ignore[misc]
        def visit(self, node: Any) -> Any:
            for operator, changer in operators.items():
                for begin, _ in changer.mutation_positions(node):
                    if not any(first <= begin < last for first, last in typed):
                        change = {"file": name, "line": begin[0], "operator": operator, "occurrence": counts[operator]}
                        sites.setdefault(begin, []).append(change)
                    counts[operator] += 1
            return node

    Collector().walk(get_ast(source))
    yield from (sites[begin] for begin in sorted(sites))


def annotations(source: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where types are written: they do nothing when a program runs."""
    spans = []
    for node in ast.walk(ast.parse(source)):
        for name in ("annotation", "returns"):
            if isinstance(typed := getattr(node, name, None), ast.expr):
                end = (typed.end_lineno or typed.lineno, typed.end_col_offset or typed.col_offset)
                spans.append(((typed.lineno, typed.col_offset), end))
    return spans


def name_of(mutant: dict[str, Any]) -> str:
    """A name that tells mutants apart."""
    return f"{mutant['file']}:{mutant['line']} {mutant['operator']} {mutant['occurrence']}"


def outcome(mutant: dict[str, Any], tests: list[str], place: Path, work: Path) -> str:
    """What the tests say of a mutant: killed, survived, time-out or not executed."""
    if not tests:
        return "not executed"
    path = place / mutant["file"]
    source, changed = path.read_text(encoding="utf-8"), mutated(mutant, place)
    assert changed is not None
    path.write_text(changed, encoding="utf-8")
    listed = place.with_suffix(".tests")
    listed.write_text("".join(f"{one}\n" for one in tests[:TESTS]), encoding="utf-8")
    process = pytest(place, work, "-x", f"@{listed}")
    try:
        # 5: no test was collected. All else but 0 is a failure, be it in a test or before it.
        return "survived" if process.wait(SECONDS) in (0, 5) else "killed"
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()
        return "time-out"
    finally:
        path.write_text(source, encoding="utf-8")
