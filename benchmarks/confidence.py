"""How right the shipped calibration is on indexes that it did not see: python benchmarks/confidence.py FOLDER.

FOLDER has indexes of data/acl and data/acm: `acl`, `acm` (MiniLM), and `acl-static`, `acm-static` with the vectors of
static encoders that did not see the corpus, which are `encoder-acl`, `encoder-acm`; and `ranker-acl`, `ranker-acm`,
rankers that learned from that corpus alone (docs/train.md): answers on each corpus are ranked by that of the other, as
they will be on an index that nobody knows. Further indexes are made here: small ones of both corpora, and of fields of
data/arxiv. Contexts are asked as they are, in a draft, and as a bare sentence; then without what they cite in the
index. Beside them sentences of other fields, and words without meaning.

The table has, for each corpus, what a calibration says that was fitted on all the others. `--out FOLDER` writes the one
that was fitted on all of them: indexes/confidence.
"""

import argparse
import functools
import gzip
import itertools
import json
import random
import re
import string
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from citerec.confidence import CALIBRATION, DEPTH, EVIDENCE, Calibration, Curves
from citerec.contexts.provenance import Provenance
from citerec.contexts.read import read_contexts
from citerec.contexts.topic import Topic
from citerec.files.resume import file_digest, hash_sample
from citerec.index.build import BuildOptions, build_index
from citerec.index.vectors import DenseOptions
from citerec.models.loading import MANIFEST
from citerec.recommend import Recommender
from citerec.records import MARKER, Confidence, Context
from citerec.retrieve.base import Floats
from citerec.settings import shipped
from citerec.systems import Recipe
from citerec.train.confidence import Answers, answers_of, fitted, measured, probabilities_of
from citerec.train.groups import write_model

DATA = Path(__file__).parents[2] / "shared" / "data"
CONTEXTS = {
    "acl": (DATA / "acl" / "contexts-dev.jsonl", DATA / "acl" / "contexts-train.jsonl"),
    "acm": (DATA / "acm" / "contexts-dev-in-draft.jsonl",),
}
OTHER = {"acl": "acm", "acm": "acl"}


class Field(NamedTuple):
    """Papers of data/arxiv: their fields, how many, and whether with their abstracts."""

    names: set[str]
    size: int
    has_abstracts: bool = True


PHYSICS, MATHEMATICS, COMPUTING, BIOLOGY = {"Physics"}, {"Mathematics"}, {"Computer Science"}, {"Biology", "Medicine"}
NEAR = PHYSICS | MATHEMATICS
FIELDS = {
    "physics": Field(PHYSICS, 12_000),
    "physics, titles": Field(PHYSICS, 3_000, has_abstracts=False),
    "mathematics": Field(MATHEMATICS, 5_000),
    "mathematics, titles": Field(NEAR, 60_000, has_abstracts=False),
    "computing": Field(COMPUTING, 20_000),
    "computing, titles": Field(COMPUTING, 5_000, has_abstracts=False),
    "biology": Field(BIOLOGY, 1_500),
}
OF_COMPUTING = re.compile(
    "comput|algorithm|learn|network|software|classif|web|user|data ?base|corpus|semantic|image|retriev|language|speech"
    "|cluster|robot|tag|neural|graph|query|mining|online|internet|program",
    re.IGNORECASE,
)
CITATION = re.compile(r"\s?\((?:[^()]*(?:19|20)\d\d[^()]*)\)|\s?\[\d[\d,\s–-]*\]|\s?\(\d+(?:[,–-]\s?\d+)*\)")
LIMIT, SENTENCES = 1000, 300
SIZES = {"small": (900, 3100), "tiny": (150, 100)}


class Corpus(NamedTuple):
    """The evidence of one corpus.

    Attributes:
        answers: By name of index and view.
        ours: Evidence of sentences about what an index is about, beside the answers.
        others: Evidence of sentences that are not, by index and kind.
    """

    answers: dict[str, Answers]
    ours: dict[str, Any]
    others: dict[str, Any]


def main() -> None:
    """Prints the tables of indexes/confidence/DATASHEET.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="write the calibration of all")
    options = parser.parse_args()
    tasks = [*(delayed(of_corpus)(options.folder, name) for name in CONTEXTS), delayed(of_fields)(options.folder)]
    *parts, fields = Parallel(-1, backend="multiprocessing")(tasks)
    corpora = dict(zip(CONTEXTS, parts, strict=True))
    for name, corpus in corpora.items():
        curves = fit([corpora[OTHER[name]], fields])
        show(name, corpus, curves)
    show("fields", fields, fit(list(corpora.values())))
    if options.out:
        write(options.out, corpora, fit([*corpora.values(), fields]))


def fit(parts: Sequence[Corpus]) -> Curves:
    """The curves of some corpora."""
    answers = [one for part in parts for one in part.answers.values()]
    ours = [(one, np.empty((0, len(EVIDENCE)))) for part in parts for one in part.ours.values()]
    others = [(np.empty((0, len(EVIDENCE))), one) for part in parts for one in part.others.values()]
    return fitted(answers, [*ours, *others])


def show(name: str, corpus: Corpus, curves: Curves) -> None:
    """Prints how right some curves are on the answers of a corpus."""
    for view, answers in corpus.answers.items():
        events = curves.at(answers.evidence)
        first, ten = answers.right.T
        at_all = curves.at(answers.taken_out[first])["fits"]
        lost = np.quantile(events["fits"][first], 0.1)
        ece = [one["ece"] for one in measured(probabilities_of(curves, answers), answers.right).values()]
        verdicts, out = verdicts_of(curves, answers.evidence), verdicts_of(curves, answers.taken_out[first])
        shares = (
            f"{name} {first[verdicts == name].mean():.2f} of {(verdicts == name).mean():.3f}" for name in VERDICTS
        )
        print(
            f"{name} {view:22} n {len(first):5} right {first.mean():.3f} {ten.mean():.3f}"
            f" | AUROC {auroc(events['first'], first):.3f} {auroc(events['among_ten'], ten):.3f}"
            f" | ECE {ece[0]:.3f} {ece[1]:.3f}"
            f" | taken out {auroc_of(events['fits'][first], at_all):.3f} {(at_all < lost).mean():.2f}"
            f" | {', '.join(shares)}; of the right {(verdicts[first] == NOTHING).mean():.3f} {NOTHING}"
            f" | taken out: neither sure nor likely {np.isin(out, ('weak', NOTHING)).mean():.2f}"
        )
    for view, evidence in (corpus.ours | corpus.others).items():
        print(f"{name} {view:28} n {len(evidence):5} {NOTHING} {(verdicts_of(curves, evidence) == NOTHING).mean():.3f}")


VERDICTS, NOTHING = ("sure", "likely", "weak"), "nothing fits"


def verdicts_of(curves: Curves, evidence: Any) -> Any:
    """The verdict on the first paper of each answer, (answers,)."""
    events = curves.at(evidence)
    answers = (Confidence(*one) for one in zip(*(events[name] for name in EVENTS_OF), strict=True))
    return np.array([NOTHING if one.nothing_fits else one.verdict(one.first) for one in answers])


EVENTS_OF = tuple(Confidence.__dataclass_fields__)


def auroc(scores: Any, right: Any) -> float:
    """The area under the ROC curve."""
    return auroc_of(scores[right], scores[~right])


def auroc_of(high: Any, low: Any) -> float:
    """The probability that one of `high` is above one of `low`."""
    places = np.searchsorted(np.sort(low), high, "left") + np.searchsorted(np.sort(low), high, "right")
    return float(places.mean() / 2 / len(low))


def of_corpus(folder: Path, name: str) -> Corpus:
    """The evidence of data/acl or data/acm."""
    small = {folder / f"{name}-{size}": size for size in SIZES}
    if name == "acm":  # data/acl has titles only
        small[folder / "acm-titles"] = "small"
    for index, size in small.items():
        if not index.is_dir():
            papers = some_papers(name, *SIZES[size])
            build(index, titles(papers) if index.name.endswith("titles") else papers, folder / f"encoder-{name}")
    corpus = Corpus({}, {}, {})
    recipe = Recipe.load("hybrid+ltr", [f"ltr.model={folder / f'ranker-{OTHER[name]}'}"])
    for index in (folder / name, folder / f"{name}-static", *small):
        with Recommender.open(index, recipe) as system:
            contexts = list(itertools.chain.from_iterable(read_contexts(file, cited=True) for file in CONTEXTS[name]))
            contexts = [one for one in contexts if len(system.store.papers(one.cited_ids)) == len(set(one.cited_ids))]
            contexts.sort(key=lambda one: hash_sample(0, "calibration", one.context_id))
            contexts = contexts[: 2 * LIMIT]
            views: dict[str, Iterable[Topic]] = {"sentence": map(bare, system.topics(contexts[:LIMIT]))}
            views["no draft"] = system.topics([replace(one, cited_before=None) for one in contexts])
            if any(one.cited_before is not None for one in contexts):
                views["draft"] = system.topics(contexts)
            for view, topics in views.items():
                corpus.answers[f"{index.name}, {view}"] = answers_of(system, topics)
            for kind, sentences in (("no meaning", nonsense()), ("other fields", foreign())):
                corpus.others[f"{index.name}, {kind}"] = evidence_of_all(system, system.topics(sentences))
    return corpus


def evidence_of_all(system: Recommender, topics: Iterable[Topic]) -> Floats:
    """The evidence of a system's answers to topics, (answers, pieces), empty ones left out."""
    answers = system.candidates(topics, min(DEPTH, system.index.most_hits))
    return np.array([system.evidence(topic, candidates) for topic, candidates in answers if candidates], np.float64)


def of_fields(folder: Path) -> Corpus:
    """The evidence of fields of data/arxiv, without cited papers: what is about them, and what is not."""
    corpus, sentences = Corpus({}, {}, {}), {}
    for name, field in FIELDS.items():
        index = folder / f"arxiv-{name.replace(', ', '-')}"
        papers = [one for one in arxiv() if fields_of(one) <= field.names]
        random.Random(3).shuffle(papers)
        sentences[name] = [*sentences_of(papers[:SENTENCES])]
        if not index.is_dir():
            some = papers[SENTENCES : SENTENCES + field.size]
            build(index, some if field.has_abstracts else titles(some), folder / "encoder-acm")
    cited = [one for files in CONTEXTS.values() for one in itertools.islice(read_contexts(files[0]), 0, 900, 6)]
    for name, field in FIELDS.items():
        others = [other for other, of_other in FIELDS.items() if is_far(field.names, of_other.names)]
        away = [one for other in others for one in sentences[other][:120]]
        if field.names != COMPUTING:
            away += [Context(text=one.text, context_id=one.context_id) for one in cited]
        with Recommender.open(folder / f"arxiv-{name.replace(', ', '-')}", "hybrid+ltr") as system:
            corpus.ours[f"{name}, its own"] = evidence_of_all(system, system.topics(sentences[name]))
            corpus.others[f"{name}, other fields"] = evidence_of_all(system, system.topics(away))
            corpus.others[f"{name}, no meaning"] = evidence_of_all(system, system.topics(nonsense()))
    return corpus


def is_far(some: set[str], others: set[str]) -> bool:
    """Whether what is about some fields is not about others."""
    return some != others and not some | others <= NEAR


def titles(papers: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Papers without their abstracts."""
    return [one | {"abstract": None} for one in papers]


def bare(topic: Topic) -> Topic:
    """A topic of which only the sentence is known."""
    return replace(
        topic, citing_title="", citing=None, citing_year=None, citing_id=None, neighbours="", cited_before=None
    )


def build(index: Path, papers: Sequence[dict[str, Any]], encoder: Path) -> None:
    """Builds an index of some papers, with static vectors."""
    file = index.with_suffix(".jsonl")
    file.write_text("".join(f"{json.dumps(one)}\n" for one in papers))
    build_index([file], index, BuildOptions(dense=DenseOptions(str(encoder))))


def records(folder: Path) -> Iterator[dict[str, Any]]:
    """The records of S2AG-shaped shards."""
    for file in sorted(folder.iterdir()):
        with gzip.open(file, "rt") as lines:
            yield from map(json.loads, lines)


@functools.cache
def arxiv() -> list[dict[str, Any]]:
    """The papers of data/arxiv with their abstracts."""
    abstracts = {one["corpusid"]: one["abstract"] for one in records(DATA / "arxiv" / "abstracts")}
    return [paper(one, abstracts) for one in records(DATA / "arxiv" / "papers")]


def paper(record: dict[str, Any], abstracts: dict[int, str]) -> dict[str, Any]:
    """A record as citerec's own JSON Lines have it."""
    fields = [one["category"] for one in record.get("s2fieldsofstudy") or ()]
    return {
        "paper_id": str(record["corpusid"]),
        "title": record["title"],
        "year": record["year"],
        "abstract": abstracts.get(record["corpusid"]),
        "authors": [one["name"] for one in record["authors"]],
        "fields_of_study": fields,
    }


def fields_of(one: dict[str, Any]) -> set[str]:
    """The fields of a paper; a name that no field has if there are none."""
    return set(one["fields_of_study"]) or {"none"}


def some_papers(name: str, most_cited: int, others: int) -> list[dict[str, Any]]:
    """So many cited papers of a corpus at most, and others."""
    cited = {int(one) for file in CONTEXTS[name] for context in read_contexts(file) for one in context.cited_ids}
    abstracts = DATA / name / "abstracts"
    texts = {one["corpusid"]: one["abstract"] for one in records(abstracts)} if abstracts.is_dir() else {}
    papers = [paper(one, texts) for one in records(DATA / name / "papers")]
    random.Random(5).shuffle(papers)
    papers.sort(key=lambda one: int(one["paper_id"]) not in cited)
    return papers[: min(most_cited, len(cited))] + papers[len(cited) : len(cited) + others]


def sentences_of(papers: Sequence[dict[str, Any]]) -> Iterator[Context]:
    """A sentence of the abstract of each paper, with a place; of every second one with those around it."""
    chance = random.Random(11)
    for number, one in enumerate(papers):
        parts = re.split(r"(?<=[.!?])\s+", (one["abstract"] or "").replace("\n", " "))
        parts = [part for part in parts if len(part.split()) > 7]
        if len(parts) < 3:
            continue
        at = chance.randrange(1, len(parts) - 1)
        words = parts[at].split()
        place = chance.randint(4, len(words))
        text = f"{' '.join(words[:place]).rstrip('.')} {MARKER} {' '.join(words[place:])}".strip()
        before, after = (parts[at - 1], parts[at + 1]) if number % 2 else ("", "")
        yield Context(text=text, context_id=one["paper_id"], before=before, after=after)


def foreign() -> list[Context]:
    """Sentences of SciCite and of data/arxiv that are about other things than computing."""
    lines = [json.loads(line)["text"] for line in (DATA / "text" / "scicite" / "train.txt").read_text().splitlines()]
    random.Random(11).shuffle(lines)
    places = (
        (line, CITATION.search(line)) for line in lines if not OF_COMPUTING.search(line) and len(line.split()) > 9
    )
    texts = (f"{line[: place.start()]} {MARKER}{line[place.end() :]}" for line, place in places if place)
    of_scicite = [
        Context(text=text, context_id=f"scicite-{at}") for at, text in enumerate(itertools.islice(texts, 600))
    ]
    papers = [one for one in arxiv() if "Computer Science" not in fields_of(one)]
    random.Random(12).shuffle(papers)
    papers = [one for one in papers[:6000] if not OF_COMPUTING.search(one["abstract"] or "")]
    return [*of_scicite[:SENTENCES], *itertools.islice(sentences_of(papers), SENTENCES)]


def nonsense() -> list[Context]:
    """Words without meaning: random letters, and random syllables."""
    chance = random.Random(7)

    def letters() -> str:
        return "".join(chance.choice(string.ascii_lowercase) for _ in range(chance.randint(3, 11)))

    def syllables() -> str:
        parts = ("bcdfghklmnprstvw", "aeiou", ["", "", "n", "r", "s"])
        return "".join("".join(map(chance.choice, parts)) for _ in range(chance.randint(1, 4)))

    words = (letters, syllables)
    texts = (" ".join(words[at % 2]() for _ in range(chance.randint(1, 18))) for at in range(SENTENCES))
    return [Context(text=f"{text} {MARKER}.", context_id=f"nonsense-{at}") for at, text in enumerate(texts)]


def write(out: Path, corpora: dict[str, Corpus], curves: Curves) -> None:
    """Writes the calibration that comes with citerec."""
    contexts = [one for files in CONTEXTS.values() for file in files for one in read_contexts(file, cited=True)]
    groups = {name: len(one.right) for corpus in corpora.values() for name, one in corpus.answers.items()}
    manifest = Calibration(
        **dict(curves),
        corpus="",
        system="hybrid+ltr",
        recipe=Recipe.load("hybrid+ltr").whole().to_json(),
        made_for=file_digest(shipped("ranker") / MANIFEST),
        evidence=tuple(EVIDENCE),
        training={"answers": groups},
        measured={},
    )
    write_model(CALIBRATION, out, manifest, Provenance.of(contexts), lambda _: None)


if __name__ == "__main__":
    main()
