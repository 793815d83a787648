"""Which sentence of a cited paper a citing sentence refers to, and whether a paper fits a sentence.

    python benchmarks/support.py CITING.jsonl PAPERS.jsonl [--json]
    python benchmarks/support.py CITING.jsonl PAPERS.jsonl --learn DATA [--out FILE]

CITING and PAPERS are those of CL-SciSumm: sentences, each with the numbers of the sentences of the cited paper that it
refers to. `f1` and `recall@3` are of a model that did not see the paper (cross-validated by paper), means over citing
sentences, with the first two sentences as its answer for F1. --learn makes the model that comes with citerec, of these
and of the contexts in DATA/acl/contexts-train.jsonl, and measures on contexts-dev of DATA/acl and DATA/acm whether the
cited paper is told from others of the same library: ten near ones and ten by chance.
"""

import argparse
import gzip
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from citerec.contexts.read import read_contexts
from citerec.corpus.base import papers_in
from citerec.drafts import support
from citerec.drafts.support import Curve, Support, best_sentence, sentence_evidence
from citerec.records import Context

_FOLDS, _ANSWERS, _LISTED = 10, 2, 3
_SMALL, _LARGE, _CONTEXTS, _OTHERS = 30, 400, 1500, 10


def lines(path: Path) -> list[Any]:
    """The values of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def curve_of(evidence: Any, right: Any, threshold: float = 0.5) -> Curve:
    """A curve fitted to evidence, (rows, pieces); both answers weigh the same."""
    mean, scale = evidence.mean(axis=0), np.maximum(evidence.std(axis=0), 1e-6)
    values = np.clip((evidence - mean) / scale, -4, 4)
    model = LogisticRegression(C=1.0, max_iter=2000, class_weight="balanced").fit(values, right)
    mean, scale, weights = (np.round(one, 5).tolist() for one in (mean, scale, model.coef_[0]))
    return Curve(mean, scale, weights, round(float(model.intercept_[0]), 5), threshold)


def sentence_figures(citing: Sequence[Any], papers: Mapping[str, Any]) -> tuple[dict[str, float], Curve]:
    """The figures of sentences, and the curve of all of them."""
    rows = []
    for one in citing:
        numbers, sentences = zip(*papers[one["topic"]], strict=True)
        evidence = sentence_evidence(one["text"], sentences)
        rows.append((one["topic"], evidence, np.isin(numbers, one["gold"])))
    topics = sorted({topic for topic, *_ in rows})
    totals: dict[str, list[float]] = {}
    for fold in range(_FOLDS):
        held = set(topics[fold::_FOLDS])
        learnt = [row for row in rows if row[0] not in held]
        curve = curve_of(np.concatenate([row[1] for row in learnt]), np.concatenate([row[2] for row in learnt]))
        for _, evidence, right in (row for row in rows if row[0] in held):
            scores = {"": curve.at(evidence), "bm25 ": evidence[:, 1], "cosine ": evidence[:, 0]}
            for name, values in scores.items():
                order = (-values).argsort(kind="stable")
                hits, gold = right[order[:_ANSWERS]].sum(), max(1, right.sum())
                totals.setdefault(f"{name}f1", []).append(2 * hits / (_ANSWERS + gold))
                totals.setdefault(f"{name}recall@{_LISTED}", []).append(right[order[:_LISTED]].sum() / gold)
    whole = curve_of(np.concatenate([row[1] for row in rows]), np.concatenate([row[2] for row in rows]))
    return {name: float(np.mean(values)) for name, values in totals.items()}, whole


def supported(curve: Curve, found: Sequence[tuple[Support, Context]]) -> tuple[Any, Any]:
    """How probable the best sentence of each cited abstract is, and that of another one of the library by chance."""
    choose, cited, chance = random.Random(0), [], []
    for library, context in found:
        papers = {paper.paper_id: paper for paper in library.papers if paper.abstract}
        own = papers.pop(context.cited_ids[0], None)
        if own and papers:
            cited.append(best_sentence(context.text, own, curve)[1])
            chance.append(best_sentence(context.text, choose.choice([*papers.values()]), curve)[1])
    return np.array(cited), np.array(chance)


def cases(corpus: Path, contexts: Path, size: int, abstracts: Mapping[str, str]) -> list[tuple[Support, Context]]:
    """Contexts that cite one paper, each with the library that it is told from: papers that such contexts cite."""
    chosen = [one for one in read_contexts(contexts) if len(one.cited_ids) == 1]
    random.Random(0).shuffle(chosen)
    chosen = chosen[:_CONTEXTS]
    wanted = {one.cited_ids[0] for one in chosen}
    papers = {
        one.paper_id: one for path in sorted(corpus.iterdir()) for one in papers_in(path) if one.paper_id in wanted
    }
    known = [replace(one, abstract=abstracts.get(one.paper_id, one.abstract)) for one in papers.values()]
    parts = [known[start : start + size] for start in range(0, len(known), size)]
    made = [(Support(part), {one.paper_id for one in part}) for part in parts]
    return [(library, one) for one in chosen for library, ids in made if one.cited_ids[0] in ids]


def fit_rows(found: Iterable[tuple[Support, Context]]) -> tuple[Any, Any]:
    """Evidence, (rows, pieces), and what each row is: 0 the cited paper, 1 one near it, 2 one by chance."""
    evidence, kinds, choose = [], [], random.Random(0)
    for library, context in found:
        ids = [paper.paper_id for paper in library.papers]
        own, rows = ids.index(context.cited_ids[0]), library.evidence(context)
        near = [int(at) for at in (-library.vectors @ library.vectors[own]).argsort() if at != own][:_OTHERS]
        chance = [at for at in choose.sample(range(len(ids)), min(len(ids), _OTHERS + 1)) if at != own][:_OTHERS]
        evidence.append(rows[[own, *near, *chance]])
        kinds += [0, *(1 for _ in near), *(2 for _ in chance)]
    return np.concatenate(evidence), np.array(kinds)


def fit_figures(curve: Curve, evidence: Any, kinds: Any) -> dict[str, float]:
    """How well the cited paper is told from others, and how many by chance are found at the curve's threshold."""
    scores = curve.at(evidence)
    cited = scores[kinds == 0]
    found = {}
    for name, kind in (("near", 1), ("chance", 2)):
        others = scores[kinds == kind]
        right = np.r_[np.ones(len(cited)), np.zeros(len(others))]
        found[f"{name} AUROC"] = float(roc_auc_score(right, np.r_[cited, others]))
        found[f"{name} found"] = float((others < curve.threshold).mean())
        found[f"{name} found at 5 %"] = float((others < np.quantile(cited, 0.05)).mean())
    return found | {"false alarms": float((cited < curve.threshold).mean()), "contexts": float(len(cited))}


def abstracts_in(folder: Path) -> dict[str, str]:
    """The abstracts of a folder of S2AG's files, by id."""
    found = {}
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            found.update({str(one["corpusid"]): one["abstract"] for one in map(json.loads, file)})
    return found


def learn(data: Path, size: int, says: Curve) -> tuple[Curve, Curve, dict[str, Any]]:
    """The curve of fit, that of sentences with its threshold, learnt from data/acl, and figures on other contexts."""
    abstracts, train = abstracts_in(data / "acl-abstracts"), data / "acl/contexts-train.jsonl"
    with_texts = cases(data / "acl/papers", train, _LARGE, abstracts)
    # Small and large libraries, with titles and with abstracts.
    others = (cases(data / "acl/papers", train, many, texts) for many in (_SMALL, _LARGE) for texts in ({}, abstracts))
    parts = [fit_rows(found) for found in others]
    evidence, kinds = (np.concatenate(part) for part in zip(*parts, strict=True))
    curve = curve_of(evidence, kinds == 0)
    curve = curve._replace(threshold=round(float(np.quantile(curve.at(evidence[kinds == 0]), 0.05)), 4))
    says = says._replace(threshold=round(float(np.quantile(supported(says, with_texts)[1], 0.95)), 4))
    figures = {}
    for name, corpus, path, texts in (
        ("acl titles", "acl", "acl/contexts-dev.jsonl", {}),
        ("acl abstracts", "acl", "acl/contexts-dev.jsonl", abstracts),
        ("acm", "acm", "acm/contexts-dev.jsonl", abstracts_in(data / "acm/abstracts")),
    ):
        found = cases(data / corpus / "papers", data / path, size, texts)
        figures[name] = fit_figures(curve, *fit_rows(found))
        for kind, values in zip(("cited", "chance"), supported(says, found), strict=True):
            if len(values):
                figures[name][f"{kind} supported"] = float((values >= says.threshold).mean())
    return curve, says, figures


def main() -> None:
    """Prints the figures, or makes the model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("citing", type=Path)
    parser.add_argument("papers", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--learn", type=Path, metavar="DATA")
    parser.add_argument("--library", type=int, default=_SMALL, help="papers that one is told from")
    parser.add_argument("--out", type=Path, default=Path(support.__file__).with_name(support.MODEL))
    options = parser.parse_args()
    papers = {one["paper"]: one["sentences"] for one in lines(options.papers)}
    figures, says = sentence_figures(lines(options.citing), papers)
    if options.json:
        print(json.dumps(figures))
        return
    print("   ".join(f"{name} {value:.3f}" for name, value in figures.items()))
    if options.learn:
        fit, says, of_fit = learn(options.learn, options.library, says)
        for name, values in of_fit.items():
            print(f"{name:14}", "   ".join(f"{one} {value:.3f}" for one, value in values.items()))
        made = {"kind": "citerec-support", "version": 1, "fit": fit._asdict(), "says": says._asdict()}
        measured = {"learnt": ["data/acl contexts-train", "CL-SciSumm 2018"], "sentences": figures, "fit_on": of_fit}
        options.out.write_text(json.dumps({**made, **measured}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
