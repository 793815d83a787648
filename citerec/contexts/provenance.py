"""Provenance: digests of what a trained part learnt from (docs/formats.md), and contexts held out from training."""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import orjson

from citerec.contexts.read import read_contexts
from citerec.corpus.reading import raw_lines
from citerec.errors import InputError, ModelError
from citerec.files.resume import hash_sample
from citerec.files.writing import Kind, apart
from citerec.records import Context, citing_name
from citerec.version import __version__

PROVENANCE = "provenance.json"
"""The name of the file in the directory of a part."""

_KIND = "citerec-provenance"
_VERSION = 1
_MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Provenance:
    """What one part, or all parts of a system together, learnt from.

    Attributes:
        trained_on: Digests of the texts that it learnt from, and of their papers.
        tuned_on: The same for the texts on which its settings were chosen.
        unsaid: Names of parts that do not say what they learnt from.
    """

    trained_on: frozenset[str] = frozenset()
    tuned_on: frozenset[str] = frozenset()
    unsaid: tuple[str, ...] = ()

    @classmethod
    def of(cls, trained_on: Iterable[Context] = (), tuned_on: Iterable[Context] = ()) -> "Provenance":
        """The digests of a part that learnt from some contexts, and was tuned on others."""
        learnt, tuned = (frozenset(one for each in side for one in digests_of(each)) for side in (trained_on, tuned_on))
        return cls(learnt, tuned)

    def __or__(self, other: "Provenance") -> "Provenance":
        unsaid = dict.fromkeys((*self.unsaid, *other.unsaid))
        return Provenance(self.trained_on | other.trained_on, self.tuned_on | other.tuned_on, tuple(unsaid))

    def write(self, file: Path) -> None:
        """Writes the digests to a file: JSON, sorted, one digest per line."""
        value = {
            "kind": _KIND,
            "version": _VERSION,
            "trained_on": sorted(self.trained_on),
            "tuned_on": sorted(self.tuned_on),
            "unsaid": list(self.unsaid),
        }
        file.write_bytes(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


NOTHING = Provenance()
"""For a part that learnt from no contexts of citerec."""


def provenance_of_part(part: str | Path) -> Provenance:
    """What a part learnt from, read from its directory.

    Args:
        part: The directory. Without a manifest of citerec, as for a model of the hub, the result is `NOTHING`. A part
            that an older citerec trained is `unsaid`.

    Raises:
        ModelError: Its file of digests is broken, or of another version.
    """
    folder = Path(part).expanduser()
    return read_provenance(folder / PROVENANCE, folder.name) if (folder / _MANIFEST).is_file() else NOTHING


def read_provenance(file: Path, name: str) -> Provenance:
    """The digests in the file of a part; if there is no file, the part's name is `unsaid`.

    Raises:
        ModelError: The file is broken, or of another version.
    """
    try:
        value = orjson.loads(file.read_bytes())
        if (value["kind"], value["version"]) != (_KIND, _VERSION):
            raise ValueError(f"it is not {_KIND} of version {_VERSION}")
        digests = {key: frozenset(map(str, value[key])) for key in ("trained_on", "tuned_on")}
        return Provenance(**digests, unsaid=tuple(map(str, value["unsaid"])))
    except OSError:
        return Provenance(unsaid=(name,))
    except (ValueError, TypeError, KeyError) as error:
        raise ModelError(f"{file} is broken ({error})", "Train the part again.") from error


def digests_of(context: Context) -> tuple[str, ...]:
    """Digests of a context's sentence, ignoring white space, case and punctuation, and of its citing paper."""
    name = citing_name(context.citing_id, context.citing_key)
    return (digest("text", folded(context.text)), *([digest("paper", name)] if name else []))


def digest(*names: str) -> str:
    """The digest of some names: 16 hexadecimal digits."""
    return hashlib.blake2b("\0".join(names).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def folded(text: str) -> str:
    """The words of a text, without case and punctuation."""
    return " ".join(re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold())) or text


PARTS = ("train", "dev", "test")
_FILES = frozenset({_MANIFEST, *(f"{part}.jsonl" for part in PARTS)})
SPLIT = Kind("split of contexts", "citerec-split", _MANIFEST, _FILES)
_PAPER = "paper"


class PartCounts(NamedTuple):
    """The numbers of contexts, of known citing papers, and of contexts without a known citing paper in a part."""

    contexts: int
    citing_papers: int
    without_citing_paper: int


def split_contexts(
    path: Path, out: Path, *, dev: float = 0.1, test: float = 0.1, seed: int = 0
) -> dict[str, PartCounts]:
    """Writes `train.jsonl`, `dev.jsonl` and `test.jsonl` to a folder, and replaces a split that is already there.

    Digests of the citing papers' names and of the seed decide which papers go where; for a context without a
    citing paper, its sentence decides. Lines are copied as they are, in their order.

    Args:
        path: A file of contexts.
        out: The folder.
        dev: A share of the citing papers, below 1; or a number of contexts, from 1. Papers are not divided, so a part
            may get a few contexts more.
        test: The same for the test part.
        seed: Seed of the split.

    Returns:
        The counts of each part.

    Raises:
        SourceError: The file cannot be read.
        InputError: A size is neither a share nor a number, a line is not a context, a part that was asked for would be
            empty, or `path` or something else is at `out`.
        BuildError: The disk is full, or may not be written to.
    """
    for part, size in (("dev", dev), ("test", test)):
        if not (0 <= size < 1 or (size >= 1 and float(size).is_integer())):
            message = f"--{part} {size:g} is neither a share such as 0.1 nor a number of contexts such as 500"
            raise InputError(message, "Give one of them.")
    SPLIT.check_place(out)
    for part in PARTS:
        apart(out / f"{part}.jsonl", path)
    of_lines = [_paper(context) for context in read_contexts(path)]
    places = _places(Counter(of_lines), {"test": test, "dev": dev}, seed)
    counts = {part: _counts([paper for paper in of_lines if places[paper] == part]) for part in PARTS}
    for part, wanted in (("train", 1.0), ("dev", dev), ("test", test)):
        if wanted and not counts[part].contexts:
            fault = f"{path} has too few citing papers for --dev {dev:g} and --test {test:g}: {part} would be empty"
            raise InputError(fault, "Give other shares, another --seed, or more contexts.")
    with SPLIT.writing(out) as folder:
        for part in (part for part in PARTS if counts[part].contexts):
            with (folder / f"{part}.jsonl").open("wb") as file:
                for paper, (_, line, _) in zip(of_lines, raw_lines(path), strict=True):
                    if places[paper] == part:
                        file.write(line.rstrip(b"\r\n") + b"\n")
        manifest = {
            "kind": SPLIT.kind,
            "version": 1,
            "citerec": __version__,
            "file": path.name,
            "dev": dev,
            "test": test,
            "seed": seed,
            "parts": {part: numbers._asdict() for part, numbers in counts.items()},
        }
        (folder / SPLIT.manifest).write_bytes(orjson.dumps(manifest, option=orjson.OPT_INDENT_2))
    return counts


def _counts(papers: Sequence[tuple[str, str]]) -> PartCounts:
    """The counts of a part, from the key of the citing paper of each of its contexts."""
    named = [paper for paper in papers if paper[0] == _PAPER]
    return PartCounts(len(papers), len(set(named)), len(papers) - len(named))


def _paper(context: Context) -> tuple[str, str]:
    """The key of a context's citing paper; without one, the key is its sentence."""
    name = citing_name(context.citing_id, context.citing_key)
    return (_PAPER, name) if name else ("text", folded(context.text))


def _places(papers: Counter[tuple[str, str]], wanted: dict[str, float], seed: int) -> dict[tuple[str, str], str]:
    """The part of each citing paper: in the order of their digests, each part takes as many as it needs of the rest."""
    left = iter(sorted(papers, key=lambda paper: (hash_sample(seed, *paper), paper)))
    places = {}
    for part, size in wanted.items():
        whole = size if size >= 1 else round(size * len(papers))
        taken = 0
        while taken < whole and (paper := next(left, None)):
            places[paper] = part
            taken += papers[paper] if size >= 1 else 1
    return places | dict.fromkeys(left, "train")
