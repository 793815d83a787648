"""Sources and options of a build."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from citerec.diagnostics.bounds import FieldShares
from citerec.diagnostics.families import sampled_families
from citerec.errors import InputError
from citerec.files.parallel import Parallelism


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """How to sample.

    Attributes:
        seed: Seed of the sample.
        quota: Contexts for each class of a cell, by family.
        per_class: The same for all other families.
        oversample: Papers drawn for each context wanted (Maharjan 3.2.1, step 4: 10 where 3 are needed).
        rounds: How often to draw: each round twice as many papers as the last, for classes that are not full.
        single: Whether a sentence must cite exactly one paper, once.
        split: Sentence splitter: `pysbd`, `spacy`, or a spaCy model.
        model: The spaCy model that tags parts of speech; None leaves those families out.
        field_shares: What decides which fields are small.
        conditions: Whether the conditions of families must hold.
        store: Where papers are kept: None for a file beside the set, or an address such as `mongodb://HOST/DATABASE`.
        max_bad: Share of bad records above which the work stops.
        workers: Processes, by default one for each processor; or Ray.
        work: Where the results of shards are kept, such as an address that all machines of a cluster reach; None for
            beside the set.
    """

    seed: int = 0
    quota: Mapping[str, int] = field(default_factory=dict)
    per_class: int = 1
    oversample: float = 10 / 3
    rounds: int = 3
    single: bool = True
    split: str = "pysbd"
    model: str | None = None
    field_shares: FieldShares = "corpus"
    conditions: bool = True
    store: str | None = field(default=None, repr=False)  # it may hold a password
    max_bad: float = 0.05
    workers: Parallelism = None
    work: Path | None = None

    def quotas(self) -> dict[str, int]:
        """Contexts for each class of a cell, for every sampled family.

        Raises:
            InputError: A family is not sampled.
        """
        sampled = sampled_families()
        for name in self.quota:
            if name not in sampled:
                raise InputError(f"{name!r} has no quota of its own", f"Families with one: {', '.join(sampled)}.")
        return {name: self.quota.get(name, self.per_class) for name in sampled}


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of a set.

    Attributes:
        papers: S2AG `papers`: folders or files.
        texts: S2ORC shards, or one file of contexts.
        citations: S2AG `citations`; without them the intents stay unknown.
        are_contexts: Whether `texts` is a file of contexts.
    """

    papers: Sequence[Path]
    texts: Sequence[Path]
    citations: Sequence[Path] = ()
    are_contexts: bool = False
