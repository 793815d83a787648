"""citerec as the yardstick calls it: the only file to change when a command or a function gets another name.

Commands run as a user types them, each in a process of its own, so that their processor time and memory can be told.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
MODEL = "all-MiniLM-L6-v2"
COMMAND = Path(sys.executable).with_name("citerec")

SYSTEMS = ("bm25", "bm25+citances", "dense", "hybrid", "hybrid+profile", "hybrid+ltr", "hybrid+profile+ltr")
"""Systems with real models. `hybrid+ltr` has the pretrained ranker; the last has its own, trained on data/acl."""
SMALL = ("bm25+cross-encoder", "ncn", "bm25+title-likelihood", "hatten", "lcr", "galactica", "citebart")
"""Systems with the small models of the tests."""
SETTINGS = {
    "galactica": ("galactica.constrained=true",),
    "citebart": ("citebart.constrained=true", "citebart.max_input_tokens=60"),
}
"""So that what small models write names papers, though they learned nothing."""
NEEDS_CITATIONS = {"bm25+citances", "hybrid+profile", "hybrid+profile+ltr"}
WRITERS = ("contribution", "trained")


LAUNCHER = """
import os, sys
_, status, usage = os.wait4(os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ), 0)
report = f"{os.waitstatus_to_exitcode(status)} {usage.ru_utime + usage.ru_stime} {usage.ru_maxrss}"
os.write(int(sys.argv[1]), report.encode())
"""
"""Starts a command and reports its exit code, seconds and kilobytes. It is small: the memory of the process that starts
another counts as memory of that one."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: exit code, output, seconds of processor time and bytes of peak memory, children included."""

    code: int
    output: str
    error: str
    seconds: float
    peak: int


def call(*arguments: object, command: object = COMMAND, folder: Path = ROOT, check: bool = True) -> Ended:
    """Runs a command to its end; with `check`, raises RuntimeError unless its exit code is 0."""
    line = [str(command), *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "COLUMNS": "100", "CITEREC_CHAT_MODEL": ""}
    with tempfile.TemporaryFile() as report:
        launched = subprocess.run(
            [sys.executable, "-I", "-S", "-c", LAUNCHER, str(report.fileno()), *line],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment,
            pass_fds=[report.fileno()],
            check=True,
        )
        report.seek(0)
        code, seconds, kilobytes = report.read().split()
    output, error = (text.decode("utf-8", "replace") for text in (launched.stdout, launched.stderr))
    if check and int(code):
        raise RuntimeError(f"{' '.join(line)} ended with {int(code)}:\n{error[-2000:]}")
    return Ended(int(code), output, error, float(seconds), int(kilobytes) * 1024)


def apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a function in a new process, which gives its memory back."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


# Indexes and what is trained


def build_index(sources: Iterable[object], out: Path, citing_sentences: Path | None = None) -> Ended:
    """Builds an index by words."""
    more = ("--citances", citing_sentences) if citing_sentences else ()
    return call("index", "build", *sources, "--out", out, *more)


def encode_index(index: Path, vectors: Path | None = None, *, profiles: bool = False) -> Ended:
    """Gives an index the vectors of MiniLM: those that were made before, or new ones; and profiles."""
    given = ("--vectors", vectors) if vectors else ("-c", "backend=onnx-int8")
    ended = call("index", "encode", index, "--model", MODEL, *given)
    if profiles:
        call("index", "encode", index, "--retriever", "profile", "--model", MODEL, "-c", "backend=onnx-int8")
    return ended


def add_to_index(papers: Path, index: Path) -> Ended:
    """Adds papers to an index."""
    return call("index", "add", index, papers)


def train_ranker(contexts: Path, index: Path, limit: int) -> Ended:
    """Trains an index's own ranker over `hybrid+profile`."""
    drawn = ("--limit", limit, "-c", "dev_limit=200", "-c", "seed=0")
    return call("train", "ltr", "--contexts", contexts, "--index", index, "--system", "hybrid+profile", *drawn)


def train_tagger(train: Path, out: Path, dev: Path | None) -> dict[str, float]:
    """Macro F1 and accuracy on dev, 0 to 1, of a linear tagger."""
    call("train", "tagger", train, "--out", out, *(("--dev", dev) if dev else ()))
    scores = json.loads((out / "manifest.json").read_bytes())["dev"]
    return {name: scores[name] for name in ("macro_f1", "accuracy")}


def write_small_models(index: Path, texts: Sequence[str], models: Path) -> None:
    """Puts the small models of the tests into an index, with what is encoded by the one in the folder `models`."""
    sys.path.insert(0, str(ROOT))
    from citerec import Index
    from citerec.papers.citebart.model import citation_of
    from citerec.rerank.cross_encoder import CrossEncoder, TextOptions
    from tests.tiny_causal import write_tiny_opt
    from tests.tiny_hatten import write_tiny_hatten
    from tests.tiny_models import write_tiny_scibert
    from tests.tiny_ncn import write_tiny_ncn
    from tests.tiny_seq2seq import write_tiny_bart

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        opened = Index.open(index)
        papers = list(opened.papers(_ids(index)).values())
        titles = [paper.title for paper in papers]
        model = CrossEncoder.begin(str(write_tiny_scibert(folder / "base", texts)), TextOptions(max_tokens=64), seed=0)
        (index / "trained" / "cross-encoder").mkdir(parents=True)
        model.save(index / "trained" / "cross-encoder", model.manifest.model_copy(update={"weight": 1.0}))
        write_tiny_ncn(index / "trained" / "ncn", papers, list(texts))
        write_tiny_bart(index / "trained" / "citebart", [citation_of(paper) for paper in papers])
        references = [f" {paper.title}, {' '.join(paper.authors)}" for paper in papers]
        write_tiny_opt(index / "trained" / "galactica", references)
        hatten = write_tiny_hatten(models, [*titles, *texts])
        call("index", "encode", index, "--retriever", "hatten", "--model", hatten)


def _ids(index: Path) -> list[str]:
    from contextlib import closing

    from citerec.index.manifest import open_store

    with closing(open_store(index)) as store:
        return [text.paper_id for text in store.all_papers()]


# Recommendations


def run(index: Path, system: str, contexts: Path, out: Path, k: int = 100) -> Ended:
    """Writes a TREC run: the first k papers for each context, under the leak rules."""
    more = [part for setting in SETTINGS.get(system, ()) for part in ("-c", setting)]
    return call("run", contexts, "--index", index, "--system", system, "-k", k, "--out", out, *more)


def recommend(sentence: str, index: Path, system: str | None = None) -> Ended:
    """What a user gets who asks once."""
    return call("recommend", sentence, "--index", index, *(("--system", system) if system else ()))


def first_ids(index: Path, sentences: Sequence[str], k: int = 10) -> list[list[str]]:
    """The ids of the first papers for each sentence, by the index's default system."""
    from citerec import Recommender

    with Recommender.open(index) as recommender:
        return [[hit.paper.paper_id for hit in recommender.search(sentence, k)] for sentence in sentences]


def searches(index: Path, systems: Sequence[str], contexts: Path, k: int) -> dict[str, Callable[[int], object]]:
    """For each system a function that answers a context, by its number, alone."""
    from citerec import Recommender, load_contexts

    listed = list(load_contexts(contexts))

    def answer(recommender: Recommender) -> Callable[[int], object]:
        return lambda number: recommender.search(listed[number], k)

    return {system: answer(Recommender.open(index, system)) for system in systems}


# Drafts


def fill(draft: Path, bibliography: Path, index: Path) -> Ended:
    """Fills each place of a draft with the first paper."""
    named = ("--bib", bibliography, "--index", index)
    return call("fill", draft.name, *named, "--yes=any", folder=draft.parent, check=False)


def check(draft: Path, bibliography: Path, index: Path) -> tuple[int, list[str]]:
    """The exit code, and the findings of a draft as `code line`, in order."""
    named = ("--bib", bibliography, "--index", index, "--year", 2026, "--format", "json")
    ended = call("check", draft.name, *named, folder=draft.parent, check=False)
    if not ended.output.startswith("{"):
        return ended.code, []
    findings = json.loads(ended.output)["findings"]
    return ended.code, [f"{one['code']} {Path(one['path']).name}:{one['line']}" for one in findings]


# Texts


def write_texts(tasks: Path, kind: str, writer: str, out: Path, limit: int | None = None) -> None:
    """Writes a text for each task of a file, as JSON Lines."""
    some = ("--limit", limit) if limit else ()
    call("write", "batch", tasks, "--kind", kind, "--writer", writer, "--out", out, *some)


def written_texts(path: Path) -> list[str]:
    """The texts that `write_texts` wrote, in the order of the tasks."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line)["prediction"] for line in lines]


def related_work(papers: Sequence[str], index: Path) -> str:
    """A related-work paragraph of some papers."""
    ended = call("write", "related-work", "--papers", ",".join(papers), "--index", index, "--format", "json")
    return str(json.loads(ended.output)["text"])


# Diagnostic sets


def build_diagnostic_set(release: Path, out: Path, tagger: Path) -> list[dict[str, str]]:
    """The classes of each context, by family, of a set that is built of a release of S2AG and S2ORC."""
    places = [part for name in ("papers", "s2orc", "citations") for part in (f"--{name}", release / name)]
    call("diagnostics", "build", *places, "--out", out, "--spacy-model", tagger, "--quota", 2)
    with (out / "contexts.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line)["labels"] for line in lines]
