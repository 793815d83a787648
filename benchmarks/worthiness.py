"""Makes the model of sentences that need a citation: python benchmarks/worthiness.py [--out FILE].

From the full texts of data/acm/s2orc and the related work of CORWA. Citations are taken out of the sentences; a name
that is part of the sentence ("Lee et al. (2004) show") stays, the year goes. A sentence that is none without its
citation ("as in [3]") is left out. Text before the first headline, abstracts, references and acknowledgements are left
out too. The papers of data/acm are in FOLDS parts, each scored by a model that learned from the others. The threshold
for a part is the lowest with PRECISION on the other parts, so nothing is chosen on what it is measured on. CORWA is
only learned from: its paragraphs are all related work, so precision there says little about a whole paper.
"""

import argparse
import gzip
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
from sklearn.linear_model import LogisticRegression

from citerec.contexts.full_text import Document, parse_full_text
from citerec.contexts.markers import CitationMarker, Style, find_markers
from citerec.contexts.sections import is_abstract
from citerec.discourse import worthiness
from citerec.discourse.linear import LinearModel, tfidf
from citerec.discourse.worthiness import BLOCKS, Placed, Sentence, is_sentence

DATA = Path(__file__).parents[2] / "shared" / "data"
FOLDS, PRECISION, KEPT = 5, 0.85, 6000
INVERSE_REGULARISATION = 3.0
_NO_TEXT = re.compile(r"\W*(?:references|bibliography|acknowl\w*|appendi\w*|categor\w*|general terms|keywords)", re.I)
# What stands before a citation that is a word of the sentence.
_WORD_BEFORE = re.compile(
    r"(?:^|\b(?:in|by|of|from|see|e\.g\.,?|to|and|with|than|as|like|on|for|using|cf\.?|at|or|both|the|work|refs?\.?|refer))\W*$",
    re.I,
)
_EMPTY = re.compile(r"[(\[][\s,;]*(?:and references therein)?[\s,;]*[)\]]")
_SPACED = re.compile(r"\s+(?=[.,;:)])")
_NAMES = re.compile(r"[^(\[\d]*")


class Row(NamedTuple):
    """A sentence to learn from or to measure on."""

    paper: str
    sentence: Placed
    cites: bool


def plain(text: str, markers: Sequence[CitationMarker]) -> str | None:
    """A sentence without its citations; None if it is none without them."""
    kept, at = [], 0
    for marker in markers:
        printed = _NAMES.match(text[marker.start : marker.end])
        names = printed[0] if printed and marker.style is Style.AUTHOR_YEAR_TEXT else ""
        if not names and _WORD_BEFORE.search(text[: marker.start]):
            return None
        kept += [text[at : marker.start], names]
        at = marker.end
    joined = "".join([*kept, text[at:]])
    return _SPACED.sub("", " ".join(_EMPTY.sub(" ", joined).split()))


def rows_of(paper: str, section: str | None, sentences: Sequence[tuple[str, list[CitationMarker]]]) -> Iterator[Row]:
    seen = [Sentence(plain(text, markers) or "", bool(markers)) for text, markers in sentences]
    for at, sentence in enumerate(seen):
        if is_sentence(sentence.text):
            yield Row(paper, Placed(seen, at, section), sentence.cites)


def acm() -> Iterator[Row]:
    for shard in sorted((DATA / "acm" / "s2orc").glob("*.gz")):
        for raw in gzip.decompress(shard.read_bytes()).splitlines():
            text = parse_full_text(orjson.loads(raw))
            document = Document(text)
            for section in document.sections():
                if is_abstract(section.headline) or _NO_TEXT.match(section.headline or ""):
                    continue
                for place in section.paragraphs:
                    whole = document.whole(place)
                    markers = [marker for marker, _ in document.citations(place)]
                    yield from rows_of(
                        text.paper_id, section.headline, list(cut(whole, document.sentences(place), markers))
                    )


def cut(
    whole: str, spans: Sequence[tuple[int, int]], markers: Sequence[CitationMarker]
) -> Iterator[tuple[str, list[CitationMarker]]]:
    for start, end in spans:
        here = [one for one in markers if start <= one.start < end]
        yield whole[start:end], [CitationMarker(c.start - start, c.end - start, c.style, c.works) for c in here]


def corwa() -> Iterator[Row]:
    for line in (DATA / "text" / "corwa" / "train.jsonl").read_text().splitlines():
        record = json.loads(line)
        sentences = [" ".join(one.split()) for one in record["paragraph"].split("[BOS]") if one.strip()]
        found = [(sentence, find_markers(sentence)) for sentence in sentences]
        yield from rows_of(f"corwa-{record['id'].split('_')[0]}", "Related Work", found)


def learn(rows: Sequence[Row]) -> worthiness.Worthiness:
    """A model of the KEPT tokens with the greatest weights."""
    gold = np.array([row.cites for row in rows])
    sentences = [row.sentence for row in rows]
    vectorizer, smaller = tfidf(BLOCKS), tfidf(BLOCKS)
    strength = np.abs(fitted(vectorizer.fit_transform(sentences), gold)[:-1])
    at, kept = 0, np.isin(np.arange(len(strength)), np.argsort(-strength, kind="stable")[:KEPT])
    for (_, whole), (_, part) in zip(vectorizer.transformer_list, smaller.transformer_list, strict=True):
        names = whole.get_feature_names_out()
        chosen = kept[at : at + len(names)]
        at += len(names)
        part.set_params(vocabulary=names[chosen].tolist())
        part.idf_ = whole.idf_[chosen].round(3)
    weights = fitted(smaller.transform(sentences), gold).round(3)
    return worthiness.Worthiness(LinearModel.of(BLOCKS, smaller, [weights]), 0.5)


def fitted(matrix: Any, gold: Any) -> Any:
    model = LogisticRegression(C=INVERSE_REGULARISATION, solver="liblinear", random_state=0, max_iter=1000)
    model.fit(matrix, gold)
    return np.append(model.coef_[0], model.intercept_)


def lowest(scores: Any, gold: Any) -> float:
    """The lowest threshold above which the share of citing sentences is at least PRECISION."""
    order = np.argsort(-scores, kind="stable")
    precision = np.cumsum(gold[order]) / np.arange(1, len(order) + 1)
    good = np.flatnonzero(precision >= PRECISION)
    return float(scores[order[good[-1]]])


def measured(gold: Any, flagged: Any) -> dict[str, Any]:
    right, n = int((gold & flagged).sum()), int(flagged.sum())
    z, share = 1.96, right / max(n, 1)
    spread = z * (share * (1 - share) / n + z * z / (4 * n * n)) ** 0.5 if n else 0.0
    middle, whole = share + z * z / (2 * n), 1 + z * z / n  # Wilson's interval
    return {
        "sentences": len(gold),
        "citing": int(gold.sum()),
        "pointed_out": n,
        "precision": round(share, 3),
        "precision_95": [round((middle - spread) / whole, 3), round((middle + spread) / whole, 3)],
        "recall": round(right / int(gold.sum()), 3),
        "pointed_out_of_100_that_do_not_cite": round(100 * int((~gold & flagged).sum()) / int((~gold).sum()), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(worthiness.__file__).with_name(worthiness.MODEL))
    given = parser.parse_args()
    rows, more = list(acm()), list(corwa())
    part = np.array([int(hashlib.sha256(row.paper.encode()).hexdigest(), 16) % FOLDS for row in rows])
    gold, scores = np.array([row.cites for row in rows]), np.zeros(len(rows))
    for fold in range(FOLDS):
        model = learn([*(row for row, at in zip(rows, part, strict=True) if at != fold), *more])
        scores[part == fold] = model.probabilities([rows[n].sentence for n in np.flatnonzero(part == fold)])
    flagged = np.zeros(len(rows), bool)
    for fold in range(FOLDS):
        flagged[part == fold] = scores[part == fold] >= lowest(scores[part != fold], gold[part != fold])
    unnamed = np.array(["has others" not in BLOCKS["place"][0](row.sentence) for row in rows])
    figures = {"all": measured(gold, flagged), "without et al.": measured(gold[unnamed], flagged[unnamed])}
    final = learn([*rows, *more])
    manifest = {
        "kind": "citerec-worthiness",
        "version": 1,
        "threshold": round(lowest(scores, gold), 3),
        "learnt": {
            "data/acm/s2orc": {"papers": len({row.paper for row in rows}), "sentences": len(rows)},
            "data/text/corwa": {"papers": len({row.paper for row in more}), "sentences": len(more)},
        },
        "held_out": figures,
    }
    print(json.dumps(manifest, indent=2))
    linear = final.model
    numbers = {"idf": linear.idf, "weights": linear.weights[0]}
    rounded = {name: [round(float(one), 3) for one in values] for name, values in numbers.items()}
    whole = {**manifest, "vocabulary": linear.vocabulary, **rounded}
    given.out.write_text(json.dumps(whole, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
