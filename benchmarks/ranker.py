"""Makes the contexts of the ranker for everyone: python benchmarks/ranker.py FOLDER [--seed 0].

data/acl says what the training papers cite (`edges-train.tsv.gz`), but only within the Anthology, some six each, and
not in which order. A draft is made of it: the other references of the citing paper and, since drafts cite dozens,
references of these, in random order, up to a random place. In AGAIN of the drafts the cited paper is among them, at a
random place. The drafts of data/acm are real. Contexts that cite a paper for the first time are written twice there:
these are harder to find, and what the draft cites already would push them down. docs/train.md has the commands that
make the ranker of both.
"""

import argparse
import gzip
import json
import random
from collections import defaultdict
from pathlib import Path

DATA = Path(__file__).parents[2] / "shared" / "data"
ACL = DATA / "acl"
AGAIN = 0.25  # nearly half repeat one, but of dozens: a draft of data/acl is shorter than a real one
FURTHER = 80  # references of references, at most


def main() -> None:
    """Writes `acl-drafts.jsonl` and `acm-drafts.jsonl`, contexts with `cited_before`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    with (given.folder / "acm-drafts.jsonl").open("w") as out:
        for line in (DATA / "acm" / "contexts-dev-in-draft.jsonl").read_text().splitlines():
            context = json.loads(line)
            out.write(f"{line}\n")
            if not set(context["cited_ids"]) & set(context["cited_before"]):
                out.write(json.dumps({**context, "context_id": f"{context['context_id']}-first"}) + "\n")
    references: dict[int, list[int]] = defaultdict(list)
    with gzip.open(ACL / "edges-train.tsv.gz", "rt") as file:
        for line in file:
            citing, cited = map(int, line.split())
            references[citing].append(cited)
    draws = random.Random(given.seed)
    with (ACL / "contexts-train.jsonl").open() as file, (given.folder / "acl-drafts.jsonl").open("w") as out:
        for context in map(json.loads, file):
            others = [one for one in references[context["citing_id"] or -1] if one not in context["cited_ids"]]
            further = {far for one in others for far in references[one]} - {*others, *context["cited_ids"]}
            others += draws.sample(sorted(further), min(len(further), draws.randint(0, FURTHER)))
            draws.shuffle(others)
            before = others[: draws.randint(0, len(others))]
            if before and draws.random() < AGAIN:
                for paper in context["cited_ids"]:
                    before.insert(draws.randint(0, len(before)), paper)
            out.write(json.dumps({**context, "cited_before": before}) + "\n")


if __name__ == "__main__":
    main()
