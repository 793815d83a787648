"""Extractive writers: sentences of the sources. The oracles among them see the target: upper bounds, not systems."""

import functools
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from citerec.contexts.markers import trimmed_end
from citerec.errors import WriterError
from citerec.files.text import replaced
from citerec.write.anchors import mentions, surnames
from citerec.write.tasks import Prediction, Sentence, Source, TextTask, sentences_of
from citerec.write.writers.base import Writer, WriterPart

LEAD_SENTENCES = 3
"""How many sentences LEAD and LexRank take (CiteBench, Funkquist et al. 2023, section 3.3)."""
TEXTRANK_SHARE = 0.2
"""Share of the sentences that summa takes by default."""
WORDS = 150
"""Words of a text of `textrank-each` by default."""
LEXRANK_THRESHOLD = 0.1
"""Cosine from which two sentences are alike (Erkan and Radev, JAIR 2004, section 5.1)."""
_DAMPING, _STEPS = 0.85, 150  # after so many steps, scores are off by less than 1e-10

_LISTS: Mapping[str, str] = tomllib.loads(Path(__file__).parent.with_name("words.toml").read_text(encoding="utf-8"))


def any_of(name: str) -> str:
    """A pattern of the words and phrases in a list of words.toml."""
    return "|".join(map(str.strip, _LISTS[name].split(",")))


_HEURISTIC = [re.compile(r"propose|introduce|in this paper", re.IGNORECASE)]
# Phrases for what authors have done, the surest first.
_WE = r"\b(?:we|i|this (?:paper|work|article|study))\b"
_MADE = r"(?:propose|introduce|present|develop)"
_DID = r"(?:show|demonstrate|describe|study|investigate|explore|provide|design|prove|derive|address|analy[sz]e)"
_CONTRIBUTIONS = [
    re.compile(rf"(?i){_WE} (?:\w+ )?{_MADE}s?\b"),
    re.compile(r"(?i)\b(?:in this (?:paper|work|article|study)|here,? we|paper,? we)\b|propose|introduce"),
    re.compile(rf"(?i){_WE}.*\b(?:{_MADE}|{_DID})"),
    re.compile(r"(?i)\bwe\b"),
]
# Sentences of abstracts in the third person: "We propose X" becomes "Salton and Buckley [0] propose X".
_WORK = r"(?:paper|work|article|study|letter|report|chapter|thesis|survey)"
_OPENS = re.compile(
    rf"(?i)(?:in (?:this|the present|our) {_WORK}|here|therefore|thus|hence|finally|to this end)(?:, ?| (?=(?:we|i) ))"
    # What "this" refers to is not quoted.
    r"|(?:based on|motivated by|inspired by|following|given|to \w+) (?:this|these|that|those)\b[^,.]*, (?=(?:we|i) )"
)
_THIS_PAPER = re.compile(rf"(?:this|the present|our) ({_WORK})(?= (?:[a-z]+ly )?[a-z]+(?:s|ed)\b)", re.IGNORECASE)
_NAMED_WORK = re.compile(rf"\b(?:this|the present) (?={_WORK}\b)", re.IGNORECASE)
# What refers to a sentence before it, which is not written with it.
_LEANS = re.compile(
    rf"(?i)(?:while )?(?:this(?! {_WORK}\b)|these|those|it|they|such|its|their|both|the (?:latter|former))\b"
)
# "I" means the author only at the beginning: further on it may be a number. "US" is a country.
_SELF = re.compile(r"^I(?= [a-z])|\b(?:[wW]e|us|[oO]ur|[mM]y)\b")
_FIRST = "we our ours us ourselves my me myself"
_THIRD = "they their theirs them themselves their them themselves"
_PRONOUNS = dict(zip(_FIRST.split(), _THIRD.split(), strict=True))
# Before a verb that can stand without its subject: "We propose", "This paper also shows".
_SUBJECT = re.compile(
    rf"(?:(?P<we>[Ww]e|I)|(?i:this|the present|our) {_WORK}) "
    rf"(?!(?:\w+ly )?(?:are|am|is|was|were|have|has|had|{any_of('no_verbs')})\b)"
)
_PRONOUN = re.compile(rf"\b(?:{'|'.join(_PRONOUNS)})\b", re.IGNORECASE)

_NO_VERB = re.compile(rf"(?:{any_of('no_verbs')})|[a-z]+ed")
_IRREGULAR = {"have": "has", "are": "is", "am": "is", "were": "was", "do": "does"}
_ADVERB = re.compile(r"not|only|also|then|further|first|here|now|thus|hence|therefore|[a-z]+ly")
_WORD = re.compile(r"[A-Za-z]+(?:-[A-Za-z]+)*")
_AND_VERB = re.compile(rf"(?<= and )(?:{any_of('sure_verbs')})\b")
# Closing quotes and brackets may follow the end of a sentence.
_END = re.compile(r"([.?!]?)([\"'”’)\]]*)\Z")


@dataclass(eq=False)
class ExtractiveWriter(Writer):
    """Writes sentences that it picks from the sources.

    Attributes:
        pick: Picks the sentences, with their attributions, in the order of the text.
        phrase: Rewrites a sentence; by default it is unchanged.
        is_oracle: Whether it looks at the targets.
        settings: The settings that `pick` depends on.
    """

    name: str
    pick: Callable[[TextTask], Sequence[Sentence]]
    phrase: Callable[[Sentence, TextTask], str] | None = None
    is_oracle: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.settings = {"writer": self.name, **self.settings}

    def write(self, task: TextTask) -> Prediction:
        """The picked sentences; empty if it finds none to pick."""
        sentences = tuple(self._written(sentence, task) for sentence in self.pick(task))
        text = " ".join(sentence.text for sentence in sentences)
        return Prediction(task, text, self.name, sentences, self.is_oracle)

    def _written(self, sentence: Sentence, task: TextTask) -> Sentence:
        text = self.phrase(sentence, task) if self.phrase else sentence.text
        # A sentence's own citations match none of our sources, whatever their numbers.
        ours = sentence.attributions if self.phrase else ()
        cites = mentions(text, task.sources)
        others = (one for one in cites if one.unknown or not one.sources or not set(one.sources) <= set(ours))
        return Sentence(text, sentence.attributions, tuple(dict.fromkeys(text[one.start : one.end] for one in others)))


def extractive(writer: ExtractiveWriter) -> WriterPart:
    """An extractive writer for the registry; it has no options."""
    return WriterPart(writer.name, lambda _name, _kind: replace(writer))


def source_sentences(source: Source) -> tuple[str, ...]:
    """The sentences of a source: from its data set if given, else split by rule."""
    return source.sentences or sentences_of(source.text)


def documents(task: TextTask) -> list[tuple[tuple[int, ...], Source]]:
    """What sentences are taken from, each with its attributions: the citing paper if it is given, then the sources.

    The citing paper has no number: it cites, and is not cited.
    """
    own = [((), task.citing_source)] if task.citing_source else []
    return [*own, *(((number,), source) for number, source in enumerate(task.sources))]


def all_sentences(task: TextTask, each: int | None = None) -> list[Sentence]:
    """The first sentences of each document (None: all): LEAD of OARelatedWork, EXT-LEAD of CiteSum for one source."""
    return [
        Sentence(sentence, attributions)
        for attributions, source in documents(task)
        for sentence in source_sentences(source)[:each]
    ]


def lead(task: TextTask) -> list[Sentence]:
    """LEAD: the first three sentences of the sources, one after another (CiteBench)."""
    return all_sentences(task)[:LEAD_SENTENCES]


def stands_alone(sentence: str) -> bool:
    """Whether a sentence asks nothing, and does not begin with what refers to the one before it, such as "this"."""
    return not (_LEANS.match(sentence) or sentence.rstrip().endswith("?"))


def contribution_each(
    task: TextTask, cues: Sequence[re.Pattern[str]] = _CONTRIBUTIONS, *, alone: bool = False
) -> list[Sentence]:
    """The sentence of each source that states its contribution most clearly, else its first.

    With the cue `_HEURISTIC` alone, it is EXT-HEURISTIC (CiteSum, Mao et al. 2022, section 3.1). By default there are
    more phrases, the surest first. They were chosen on SciTLDR's training part; docs/results.md shows the gain. With
    `alone`, a sentence that does not stand alone is taken only where there is no other.
    """
    return [
        Sentence(sentences[contribution_of(sentences, cues)], (number,))
        for number, source in enumerate(task.sources)
        if (whole := source_sentences(source))
        if (sentences := (alone and tuple(filter(stands_alone, whole))) or whole)
    ]


def contribution_of(sentences: Sequence[str], cues: Sequence[re.Pattern[str]] = _CONTRIBUTIONS) -> int:
    """The number of the sentence that states the contribution most clearly; 0, the first, if none does."""
    numbers = (number for cue in cues for number, sentence in enumerate(sentences) if cue.search(sentence))
    return next(numbers, 0)


def textrank(task: TextTask) -> list[Sentence]:
    """TextRank of all sources together, by `summa` (Mihalcea and Tarau, EMNLP 2004; CiteBench ran it so).

    From fewer than five sentences it takes none, because a fifth of them is less than one. A sentence that runs over
    the end of a source may be of any.
    """
    parts = documents(task)
    sentences = []
    for sentence in _summa(" ".join(source.text for _, source in parts), ratio=TEXTRANK_SHARE):
        whole = (attributions for attributions, source in parts if sentence in source.text)
        sentences.append(Sentence(sentence, next(whole, tuple(range(len(task.sources))))))
    return sentences


def textrank_each(task: TextTask) -> list[Sentence]:
    """TextRank of each source separately, each with its share of the words (OARelatedWork, section 6.1.3).

    As many words as the first target by default, as in OARelatedWork; `WORDS` if there is none. Even if its share is
    less than a sentence, a source gets its best one: it must be cited.
    """
    words = len(task.targets[0].split()) if task.targets else WORDS
    sources = documents(task)
    share = max(1, round(words / max(1, len(sources))))
    sentences = []
    for attributions, source in sources:
        texts = _summa(source.text, words=share)
        if not texts and (ranked := _summa(source.text, ratio=1.0, scores=True)):
            texts = [max(ranked, key=lambda pair: pair[1])[0]]
        sentences += [Sentence(text, attributions) for text in texts]
    return sentences


def _summa(text: str, **options: Any) -> list[Any]:
    """The sentences that summa takes; none of a text of one sentence, whose graph has no edge."""
    from summa.summarizer import summarize

    return list(summarize(text, split=True, **options)) if text.strip() else []


def lexrank(task: TextTask) -> list[Sentence]:
    """LexRank: the sentences most central among those of all sources (Erkan and Radev, JAIR 2004).

    PageRank over the graph in which sentences are neighbours whose cosine, words weighted by tf · idf, is above a
    threshold; idf is over the sentences of the task. They come in the order of the sources; the first of equals counts.
    """
    import numpy as np
    from scipy.sparse import csr_array, diags_array, eye_array

    candidates = all_sentences(task)
    size = len(candidates)
    if size <= LEAD_SENTENCES:
        return candidates
    words = [re.findall(r"[^\W_]+", candidate.text.lower()) for candidate in candidates]
    numbers = {word: number for number, word in enumerate(sorted(set().union(*words)))}
    columns = [numbers[word] for of_sentence in words for word in of_sentence]
    rows = np.repeat(np.arange(size), list(map(len, words)))
    counts = csr_array((np.ones(len(columns)), (rows, columns)), shape=(size, max(1, len(numbers))))
    weights = counts @ diags_array(np.log(size / np.maximum((counts > 0).sum(axis=0), 1)))
    lengths = np.sqrt((weights * weights).sum(axis=1))
    weights = diags_array(1 / np.maximum(lengths, 1e-9)) @ weights
    # Each is like itself, even if its words weigh nothing.
    alike = ((weights @ weights.T > LEXRANK_THRESHOLD) + eye_array(size, dtype=bool)).astype(np.float64)
    steps = diags_array(1 / alike.sum(axis=1)) @ alike
    scores = np.full(size, 1 / size)
    for _ in range(_STEPS):
        scores = _DAMPING * (scores @ steps) + (1 - _DAMPING) / size
    # Values that differ only by rounding are equal.
    best = np.argsort(-np.round(scores, 9), kind="stable")[:LEAD_SENTENCES]
    return [candidates[number] for number in sorted(best.tolist())]


def oracle(
    sentences: Sequence[str],
    targets: Sequence[str],
    kinds: Sequence[int] = (2,),
    *,
    most: int = 0,
    stemming: bool = False,
) -> list[int]:
    """The numbers of the sentences whose ROUGE against the most similar target is highest, in their order.

    It adds the sentence that raises ROUGE F1 most, until none does: Greedy Oracle (Nallapati et al., AAAI 2017, section
    3.1.1), by ROUGE-2 as in OARelatedWork, section 6.1.2. With `most` 1 it is EXT-ORACLE. CiteSum (Mao et al. 2022,
    section 3.1) uses ROUGE-2; the authors of SciTLDR, whose published row CiteSum repeats, used ROUGE-1.

    Args:
        sentences: The sentences to choose from.
        targets: The texts to compare with.
        kinds: The lengths of n-grams. Later kinds break ties of the first; then the order of the sentences does.
        most: How many sentences it chooses at most; 0 for as many as help.
        stemming: Whether words are stemmed.
    """
    from citerec.write.metrics import grown_rouge, tokens_of

    tokens = tokens_of(sentences, stemming=stemming)

    def choose(target: Sequence[str]) -> tuple[tuple[float, ...], list[int]]:
        reached, chosen = (0.0,) * len(kinds), list[int]()
        for _ in range(min(most or len(sentences), len(sentences))):
            text = [token for number in chosen for token in tokens[number]]
            scores = list(zip(*(grown_rouge(text, tokens, target, n).tolist() for n in kinds), strict=True))
            best = max((number for number in range(len(sentences)) if number not in chosen), key=scores.__getitem__)
            if scores[best] <= reached:
                break
            reached = scores[best]
            chosen.append(best)
        return reached, chosen

    of_targets = map(choose, tokens_of(targets, stemming=stemming))
    return sorted(max(of_targets, key=lambda choice: choice[0])[1])


def targets_of(task: TextTask) -> tuple[str, ...]:
    """The targets of a task, for writers that see them; a WriterError if it has none."""
    if not task.targets:
        remedy = "It is an upper bound for tasks whose text is known: take another --writer."
        raise WriterError(f"the oracle needs a target, and {task.task_id or 'the task'} has none", remedy)
    return task.targets


def cited(sentence: Sentence, _task: TextTask) -> str:
    """A sentence with its citation before the full stop: "… [0]."; its own citations are left out."""
    text, stop, closing, _ = _END.split(uncited(sentence.text), maxsplit=1)
    citations = "".join(f" [{number}]" for number in sentence.attributions)
    return f"{text}{closing}{citations}{stop or '.'}"


def attributed(sentence: Sentence, task: TextTask) -> str:
    """A sentence of an abstract in the third person, with its authors in place of "we", and with its citation.

    A sentence without "we" or the like is quoted. Its own citations are left out: their numbers are of another
    list.
    """
    (number,) = sentence.attributions
    source = task.sources[number]
    text = _unopened(uncited(sentence.text))
    names = surnames(source.authors)
    if paper := _THIS_PAPER.match(text):
        of_authors = f" of {names}" if names else ""
        text = f"The {paper[1].lower()}{of_authors} [{number}]{_in_third_person(text[paper.end() :])}"
    elif (pronoun := _SELF.search(text)) and (names or pronoun[0].lower() not in ("our", "my")):
        rest = text[pronoun.end() :]
        if pronoun[0].lower() in ("our", "my"):
            names += "'s"
        elif pronoun[0].lower() in ("we", "i"):
            rest = _of_one(rest) if len(source.authors) == 1 else re.sub("^ am ", " are ", rest)
        text = text[: pronoun.start()] + f"{names} [{number}]".lstrip() + _in_third_person(rest)
    else:
        text, stop, closing, _ = _END.split(text, maxsplit=1)
        return f"“{text.replace('“', '‘').replace('”', '’')}{closing}” [{number}]{stop or '.'}"
    return text if text.endswith((".", "?", "!", ")", '"', "”")) else f"{text}."


def impersonal(sentence: Sentence, _task: TextTask) -> str:
    """A sentence of an abstract that names no author: "We propose X" becomes "Proposes X"."""
    text = _unopened(sentence.text)
    if subject := _SUBJECT.match(text):
        rest = text[subject.end() - 1 :]
        text = _capital((_of_one(rest) if subject["we"] else rest).strip())
    return _capital(_in_third_person(_NAMED_WORK.sub("the ", text)))


def _unopened(text: str) -> str:
    """A sentence without an opening that only leads to what the authors did: "In this paper, we …"."""
    opening = _OPENS.match(text)
    return _capital(text[opening.end() :]) if opening else text


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _in_third_person(text: str) -> str:
    def other(pronoun: re.Match[str]) -> str:
        third = _PRONOUNS[pronoun[0].lower()]
        return pronoun[0] if pronoun[0] == "US" else third.capitalize() if pronoun[0][0].isupper() else third

    return _PRONOUN.sub(other, text)


def _of_one(rest: str) -> str:
    """Changes the text after "we" to follow the name of one author: verbs get their ending."""
    for word in _WORD.finditer(rest):
        verb = word[0].lower()
        if not _ADVERB.fullmatch(verb):
            after = _AND_VERB.sub(lambda verb: _singular(verb[0]), rest[word.end() :])
            return rest if _NO_VERB.fullmatch(verb) else rest[: word.start()] + _singular(verb) + after
    return rest


def _singular(verb: str) -> str:
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if re.search(r"(?:s|sh|ch|x|z|o)$", verb):
        return f"{verb}es"
    return f"{verb[:-1]}ies" if re.search(r"[^aeiou]y$", verb) else f"{verb}s"


def uncited(sentence: str) -> str:
    """A sentence without its own citations in brackets: their numbers are of another list."""
    starts = [(one.start, one.end) for one in mentions(sentence, ()) if sentence[one.start] in "([\\【"]
    return replaced(sentence, ((trimmed_end(sentence, start, " "), end, "") for start, end in starts))


def _oracle(name: str, kinds: Sequence[int], *, most: int = 0, stemming: bool = False) -> WriterPart:
    """The writer of what `oracle` chooses; a WriterError if a task has no target. If no sentence helps, the first."""

    def pick(task: TextTask) -> list[Sentence]:
        targets, candidates = targets_of(task), all_sentences(task)
        numbers = oracle([one.text for one in candidates], targets, kinds, most=most, stemming=stemming)
        return [candidates[number] for number in numbers] or candidates[:most]

    settings = {"by": f"rouge{kinds[0]}", "stemming": stemming}
    return extractive(ExtractiveWriter(name, pick, is_oracle=True, settings=settings))


_first_each = functools.partial(all_sentences, each=1)
_of_lead = {"sentences": LEAD_SENTENCES}

ATTRIBUTED = extractive(ExtractiveWriter("attributed", functools.partial(contribution_each, alone=True), attributed))
CONTRIBUTION = extractive(ExtractiveWriter("contribution", contribution_each))
LEAD = extractive(ExtractiveWriter("lead", lead, settings=_of_lead))
LEAD_EACH = extractive(ExtractiveWriter("lead-each", _first_each, cited))
EXT_LEAD = extractive(ExtractiveWriter("ext-lead", _first_each))
EXT_HEURISTIC = extractive(ExtractiveWriter("ext-heuristic", functools.partial(contribution_each, cues=_HEURISTIC)))
TEXTRANK = extractive(ExtractiveWriter("textrank", textrank, settings={"share": TEXTRANK_SHARE}))
TEXTRANK_EACH = extractive(ExtractiveWriter("textrank-each", textrank_each, cited))
LEXRANK = extractive(ExtractiveWriter("lexrank", lexrank, settings={**_of_lead, "threshold": LEXRANK_THRESHOLD}))
EXT_ORACLE = _oracle("ext-oracle", (2, 1), most=1)
EXT_ORACLE_ROUGE1 = _oracle("ext-oracle-rouge1", (1, 2), most=1, stemming=True)
GREEDY_ORACLE = _oracle("greedy-oracle", (2,))
