"""Digests of what a trained part learnt from and was tuned on (docs/formats.md). Evaluation checks them."""

import hashlib
import itertools
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import orjson

from citerec.errors import ModelError
from citerec.records import Context, citing_name

LEARNT = "learnt.json"
"""The name of the file in the directory of a part."""

_KIND = "citerec-learnt"
_VERSION = 1
_MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Learnt:
    """What one part, or all parts of a system together, learnt from.

    Attributes:
        learnt_from: Digests of the texts that it learnt from, and of their papers.
        tuned_on: The same for the texts on which its settings were chosen.
        unsaid: Names of parts that do not say what they learnt from.
    """

    learnt_from: frozenset[str] = frozenset()
    tuned_on: frozenset[str] = frozenset()
    unsaid: tuple[str, ...] = ()

    @classmethod
    def of(cls, learnt_from: Iterable[Context] = (), tuned_on: Iterable[Context] = ()) -> "Learnt":
        """The digests of a part that learnt from some contexts, and was tuned on others."""
        learnt, tuned = (
            frozenset(itertools.chain.from_iterable(map(digests_of, part))) for part in (learnt_from, tuned_on)
        )
        return cls(learnt, tuned)

    def __or__(self, other: "Learnt") -> "Learnt":
        return Learnt(
            self.learnt_from | other.learnt_from,
            self.tuned_on | other.tuned_on,
            tuple(dict.fromkeys((*self.unsaid, *other.unsaid))),
        )

    def write(self, file: Path) -> None:
        """Writes the digests to a file: JSON, sorted, one digest per line."""
        value = {
            "kind": _KIND,
            "version": _VERSION,
            "learnt_from": sorted(self.learnt_from),
            "tuned_on": sorted(self.tuned_on),
            "unsaid": list(self.unsaid),
        }
        file.write_bytes(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


NOTHING = Learnt()
"""For a part that learnt from no contexts of citerec."""


def learnt_by_part(part: str | Path) -> Learnt:
    """What a part learnt from, read from its directory.

    Args:
        part: The directory. Without a manifest of citerec, as for a model of the hub, the result is `NOTHING`. A part
            that an older citerec trained is `unsaid`.

    Raises:
        ModelError: Its file of digests is broken, or of another version.
    """
    folder = Path(part).expanduser()
    return read_learnt(folder / LEARNT, folder.name) if (folder / _MANIFEST).is_file() else NOTHING


def read_learnt(file: Path, name: str) -> Learnt:
    """The digests in the file of a part; if there is no file, the part's name is `unsaid`.

    Raises:
        ModelError: The file is broken, or of another version.
    """
    try:
        value = orjson.loads(file.read_bytes())
        if (value["kind"], value["version"]) != (_KIND, _VERSION):
            raise ValueError(f"it is not {_KIND} of version {_VERSION}")
        digests = {key: frozenset(map(str, value[key])) for key in ("learnt_from", "tuned_on")}
        return Learnt(**digests, unsaid=tuple(map(str, value["unsaid"])))
    except OSError:
        return Learnt(unsaid=(name,))
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
