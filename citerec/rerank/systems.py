"""Which rerankers an index has, and what is the best that it supports."""

from pathlib import Path

import orjson

from citerec.contexts.learnt import NOTHING, Learnt, learnt_by_part, read_learnt
from citerec.errors import SettingsError
from citerec.rerank.reranker import Reranker
from citerec.retrieve.dense.manifest import DenseManifest, has_vectors
from citerec.retrieve.hybrid import DENSE
from citerec.retrieve.manifest import Manifest
from citerec.retrieve.staging import RANKERS
from citerec.settings import RetrievalSettings

LTR, CROSS_ENCODER = RANKERS


def best_system(index: Path) -> str:
    """The name of the best built-in system that an index supports: docs/results.md says by how much."""
    if not (index / DENSE / "manifest.json").is_file():
        return "bm25+citances" if Manifest.read(index).counts.citances else "bm25"
    if (index / LTR / "manifest.json").is_file():
        return "hybrid+ltr"  # a cross-encoder behind it was measured to take away: it is asked by name only
    manifest = index / CROSS_ENCODER / "manifest.json"
    # A weight of 0: training found that it does not help.
    return "hybrid+cross-encoder" if manifest.is_file() and _weight(manifest) else "hybrid"


def _weight(manifest: Path) -> float:
    try:
        return float(orjson.loads(manifest.read_bytes()).get("weight", 1))
    except (ValueError, AttributeError):
        return 1  # broken: who opens it says how


def learnt_by_system(index: Path, settings: RetrievalSettings) -> Learnt:
    """What the trained parts of a system learnt from: its rerankers, what encoded the vectors, and its settings.

    Raises:
        ModelError: A part's file of digests is broken.
        IndexUnusableError: The index has vectors that cannot be used.
    """
    found = NOTHING
    if settings.tuned_on:
        found |= read_learnt(Path(settings.tuned_on), Path(settings.tuned_on).name)
    if DENSE in settings.retrievers and has_vectors(index / DENSE):
        found |= learnt_by_part(DenseManifest.read(index / DENSE).model)
    for name in settings.rerankers:
        found |= learnt_by_part(_place(index, settings, name)[0])
    return found


def _place(index: Path, settings: RetrievalSettings, name: str) -> tuple[Path, bool]:
    """Where a reranker lies, and whether the settings say so."""
    given = settings.ltr.model if name == LTR else settings.cross_encoder.model
    return (Path(given), True) if given else (index / name, False)


def open_rerankers(index: Path, settings: RetrievalSettings) -> list[Reranker]:
    """The rerankers that the settings name, in their order.

    Raises:
        SettingsError: The index has none of this kind, and no other folder is given.
        ModelError: It cannot be opened.
    """
    opened: list[Reranker] = []
    for name in settings.rerankers:
        path, given = _place(index, settings, name)
        if not given and not path.is_dir():
            command = "ltr" if name == LTR else "reranker"
            raise SettingsError(
                f"{index} has no {name}", f"Train one: citerec train {command} --contexts FILE --index {index}"
            )
        if name == LTR:
            from citerec.rerank.ltr import LtrReranker

            opened.append(LtrReranker(path, settings.ltr))
        else:
            from citerec.rerank.cross_encoder_rerank import CrossEncoderReranker

            opened.append(CrossEncoderReranker(path, settings.cross_encoder))
    return opened
