"""Labelled sentences to learn from: what they say tells their label, or only what stands before them."""

from citerec.discourse.classifier import Paragraph

TOPICS = ("parsing", "tagging", "translation", "summaries", "retrieval", "speech", "dialogue", "vision")


def sentences() -> list[Paragraph]:
    """Sentences by themselves, with SciCite's labels."""
    made = []
    for topic in TOPICS:
        for year in (1999, 2003, 2010):
            made += [
                (f"For {topic} we use the toolkit of Lee et al. ({year}).", "method"),
                (f"Many have worked on {topic} (Kim, {year}; Wu, {year}).", "background"),
                (f"Our result on {topic} is higher than that of Lee ({year}).", "result"),
            ]
    return [Paragraph((text,), (label,)) for text, label in made]


def paragraphs() -> list[Paragraph]:
    """Paragraphs with CORWA's labels. "They do so." goes on with a summary, unless our own work stands before it."""
    made = []
    for topic in TOPICS:
        for name in ("Lee", "Kim"):
            summary = f"{name} et al. (2005) study {topic}."
            made += [
                ((summary, "They do so.", f"We study {topic} too."), ("Single_summ", "Single_summ", "Reflection")),
                ((f"We study {topic} too.", "They do so.", summary), ("Reflection", "Transition", "Single_summ")),
            ]
    return [Paragraph(texts, labels) for texts, labels in made]
