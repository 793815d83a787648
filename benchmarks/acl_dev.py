"""The set acl-dev by ids: which contexts it has, which papers they cite, and their classes; no sentence of others.

    python benchmarks/acl_dev.py check CONTEXTS      # are these contexts those of the set?
    python benchmarks/acl_dev.py write SET INDEX     # of a labelled set, and the index of the papers that it cites

`check` compares ids, cited papers and the digests of the sentences, says what differs, and exits with 1 if anything
does. The set lies in acl-dev/contexts.tsv; acl-dev/DATASHEET.md says what it is, and under which licence.
"""

import argparse
import csv
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

import citerec
from citerec.contexts.read import read_contexts
from citerec.diagnostics.sets import read_set
from citerec.records import Context

SET = Path(__file__).with_name("acl-dev") / "contexts.tsv"
CLASSES = ("field", "year", "citation_count", "length", "location", "pos_before", "pos_after")
COLUMNS = ("context", "citing", "citing_year", "cited", "cited_id", "sha256", *CLASSES)


def digest(context: Context) -> str:
    """The first 16 digits of the SHA-256 of a sentence with its <REF>, in UTF-8."""
    return hashlib.sha256(context.text.encode()).hexdigest()[:16]


def rows(folder: Path, index: Path) -> Iterator[dict[str, object]]:
    """The rows of a labelled set whose contexts cite one paper each."""
    contexts = read_set(folder)
    papers = citerec.Index(index).papers([paper_id for context in contexts for paper_id in context.cited_ids])
    for context in contexts:
        (cited_id,) = context.cited_ids
        citing, cited = (context.citing_key or "").removeprefix("acl:"), papers[cited_id].external_ids["ACL"]
        facts = {"context": context.context_id, "citing": citing, "citing_year": context.citing_year}
        yield {**facts, "cited": cited, "cited_id": cited_id, "sha256": digest(context), **context.labels}


def differences(contexts: Path) -> Iterator[str]:
    """What is not as in the set, a line each."""
    with SET.open(encoding="utf-8", newline="") as file:
        published = {row["context"]: row for row in csv.DictReader(file, delimiter="\t")}
    for context in read_contexts(contexts, cited=True):
        row = published.pop(context.context_id or "", None)
        if row is None:
            yield f"{context.context_id} is not of the set"
        elif (row["cited_id"], row["sha256"]) != (*context.cited_ids, digest(context)):
            yield f"{context.context_id} has another sentence or cites another paper"
    yield from (f"{name} is missing" for name in published)


def main() -> int:
    """Checks or writes; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("check", "write"))
    parser.add_argument("paths", type=Path, nargs="+", metavar="PATH")
    arguments = parser.parse_args()
    if arguments.what == "check":
        faults = list(differences(*arguments.paths))
        print(*faults[:10], f"{len(faults):,} differences from the set acl-dev", sep="\n")
        return 1 if faults else 0
    with SET.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, delimiter="\t", lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows(*arguments.paths))
    return 0


if __name__ == "__main__":
    sys.exit(main())
