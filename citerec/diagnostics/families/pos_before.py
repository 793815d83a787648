"""Part of speech of the word before the citation; medium sentences, the marker in the middle (Maharjan 3.1.5)."""

from citerec.diagnostics.families.family import Family
from citerec.diagnostics.families.measures import MEDIUM, MIDDLE
from citerec.diagnostics.families.parts_of_speech import part_of_speech, parts_of_speech

FAMILY = Family(
    name="pos_before",
    title="Part of speech before the citation",
    classes=lambda _: parts_of_speech(),
    class_of=lambda facts: part_of_speech(facts.sentence.tag_before),
    conditions=(MEDIUM, MIDDLE),
    needs_tagger=True,
)
