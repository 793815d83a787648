"""What `citerec index` says of an index that it made or changed."""

from pathlib import Path
from typing import TYPE_CHECKING

from citerec.cli.console import note, say
from citerec.files.text import counted

if TYPE_CHECKING:
    from citerec.index.manifest import Manifest


def tell_vectors(folder: Path, *, added: bool = False) -> None:
    """Says how many papers have a vector, and how well they are found; `added` after papers were added."""
    from citerec.index.vectors.manifest import DenseManifest, encode_command

    manifest = DenseManifest.read(folder)
    kind = manifest.kind_of_search
    say(
        f"{manifest.count:,} papers have a vector of {manifest.dimension} numbers ({manifest.model}); "
        f"{'searched exactly' if kind in ('exact', 'flat') else f'searched by FAISS {kind}'}."
    )
    if manifest.without_vector and manifest.given:
        why = f"none was given{f', and {manifest.model} did not encode them' * added}"
        note(
            f"{counted(manifest.without_vector, 'paper')} cannot be found by vector: {why}. Give more: "
            f"{encode_command(folder, manifest.model)} --vectors PATH"
        )
    elif manifest.without_vector:
        note(f"Papers without a vector, no text: {manifest.without_vector:,}.")
    for reason, count in manifest.faults.items():
        note(f"Given vectors left out, {reason}: {count:,}.")


def tell(path: Path, manifest: "Manifest", done: str, *, added: bool = False) -> None:
    """Says what an index holds, and what of its sources was left out; `added` after papers were added."""
    from citerec.index.generations import generation_of
    from citerec.index.manifest import DENSE
    from citerec.index.vectors.manifest import has_vectors

    folder = generation_of(path)
    counts = manifest.counts
    parts = [f"{counts.papers:,} papers", f"{counts.with_abstract:,} with an abstract"]
    if counts.with_tldr:
        parts.append(f"{counts.with_tldr:,} with a TLDR")
    if counts.citances:
        parts.append(f"{counts.citances:,} citing sentences of {counts.with_citances:,} papers")
    say(f"{path} {done}: {', '.join(parts)}.")
    if manifest.remark:
        note(manifest.remark)
    if counts.duplicates:
        note(f"Records of papers that later records replaced or deleted: {counts.duplicates:,}.")
    if counts.unmatched:
        note(f"Abstracts, TLDRs or citations of papers not in the index: {counts.unmatched:,}.")
    if counts.bad:
        note(f"Records that could not be read: {counts.bad:,}. See {folder / 'quarantine.jsonl'}")
    if has_vectors(folder / DENSE):
        tell_vectors(folder / DENSE, added=added)
    _tell_old_vectors(path, manifest)


def _tell_old_vectors(path: Path, manifest: "Manifest") -> None:
    """Says which folders of an index were made for the papers before."""
    from citerec.index.verify import vectors_beside

    for folder, made in vectors_beside(path):
        if made["store"] != manifest.fingerprint:
            note(
                f"The vectors of {folder.name} were made for the papers before. Bring them up to date: "
                f"citerec index encode {path} --retriever {folder.name}"
            )
