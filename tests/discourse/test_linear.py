"""The linear tagger: it learns, it is kept without loss, and it gives probabilities of a chain."""

import itertools
from pathlib import Path

import numpy as np
import orjson
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.feature_extraction.text import TfidfVectorizer

from citerec.discourse.classifier import TAGGER_DIRECTORY, Paragraph, TaggerManifest
from citerec.discourse.linear import LinearModel, LinearTagger, marginals, tfidf
from citerec.discourse.tagger import open_tagger, shares_of
from citerec.errors import InputError, ModelError
from tests.discourse.toy import paragraphs, sentences


def _fit(examples: list[Paragraph], seed: int = 0) -> LinearTagger:
    labels = tuple(sorted({label for paragraph in examples for label in paragraph.labels}))
    return LinearTagger.fit(examples, TaggerManifest(model="linear", scheme="toy", labels=labels), seed)


def _save(tagger: LinearTagger, folder: Path) -> Path:
    with TAGGER_DIRECTORY.writing(folder) as partial:
        tagger.save(partial)
    return folder


def test_it_learns_sentences_by_what_they_say_and_by_what_stands_before_them() -> None:
    tagger = _fit(sentences())
    texts = [
        ["Many have worked on chess (Roy, 2007; Day, 2008).", "For chess we use the toolkit of Lee et al. (2005)."],
        ["Our result on chess is higher than that of Lee (2003)."],
        ["For speech we use the toolkit of Lee et al. (1999)."],
    ]
    assert tagger.tag([texts[0][:1], *texts[1:]]) == [("background",), ("result",), ("method",)]
    assert shares_of(tagger, texts) == {"background": 0.25, "method": 0.5, "result": 0.25}
    tagger = _fit(paragraphs())
    summary, ours = "Roy et al. (2007) study chess.", "We study chess too."
    assert tagger.tag([[summary, "They do so.", ours], [ours, "They do so.", summary]]) == [
        ("Single_summ", "Single_summ", "Reflection"),
        ("Reflection", "Transition", "Single_summ"),
    ]


def test_what_is_opened_is_what_was_trained_and_damage_is_named(tmp_path: Path) -> None:
    folder, again = (_save(_fit(paragraphs()), tmp_path / name) for name in ("mine", "again"))
    kept = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert kept == {path.name: path.read_bytes() for path in again.iterdir()}
    trained, opened = _fit(paragraphs()), open_tagger(folder)
    assert (opened.name, opened.scheme, opened.labels) == ("mine", "toy", trained.labels)
    texts = [paragraph.sentences for paragraph in paragraphs()] + [("Nothing of the kind.",), (), ("",)]
    for one, other in zip(trained.probabilities(texts), opened.probabilities(texts), strict=True):
        assert np.array_equal(one, other)
        assert one.sum(axis=1) == pytest.approx(1)
    assert opened.tag([]) == []
    assert [len(labels) for labels in opened.tag(texts)] == [len(one) for one in texts]
    later = orjson.dumps(orjson.loads(kept["manifest.json"]) | {"version": 2})
    for name, content, message in (
        ("vocabulary.json", b'{"words": ["one"]}', "is damaged"),
        ("weights.safetensors", b"nothing", "is damaged"),
        ("manifest.json", later, "version"),
    ):
        (folder / name).write_bytes(content)
        with pytest.raises(ModelError, match=message):
            open_tagger(folder)
        (folder / name).write_bytes(kept[name])
    few = [Paragraph(("Chess.",), ("method",)), Paragraph(("Speech",), ("result",))]
    with pytest.raises(InputError, match="too little in common"):
        _fit(few)


_tokens = st.lists(st.sampled_from("abcdefgh"), max_size=12)


@given(st.lists(_tokens, min_size=2, max_size=8), st.lists(_tokens, max_size=4))
def test_a_model_runs_on_the_vectors_of_scikit_learn(learned: list[list[str]], asked: list[list[str]]) -> None:
    learned = [*learned, ["a"], ["a", "once"]]  # it refuses an empty vocabulary
    blocks = {"whole": (list, 1.0), "half": (list, 0.5)}
    vectorizer = tfidf(blocks).fit(learned)
    columns = len(vectorizer.get_feature_names_out())
    # One output for each column, and no constant: the scores are the vectors themselves.
    model = LinearModel.of(blocks, vectorizer, np.eye(columns, columns + 1))
    assert model.vocabulary["half"] == model.vocabulary["whole"] == sorted(model.vocabulary["whole"])
    assert "once" not in model.vocabulary["whole"]
    reference = TfidfVectorizer(analyzer=list, sublinear_tf=True, min_df=2).fit(learned)
    for texts in filter(None, (learned, asked)):
        whole, half = np.split(model.scores(texts), 2, axis=1)
        assert whole == pytest.approx(reference.transform(texts).toarray(), abs=1e-6)
        assert half == pytest.approx(whole / 2)


@given(st.data(), st.integers(1, 4), st.integers(2, 3))
def test_marginals_are_those_of_all_sequences(data: st.DataObject, length: int, labels: int) -> None:
    alone, following = (
        data.draw(arrays(np.float64, (rows, labels), elements=st.floats(-5, 5))) for rows in (length, labels)
    )
    expected = np.zeros_like(alone)
    for row in itertools.product(range(labels), repeat=length):
        weight = np.exp(alone[range(length), row].sum() + sum(following[pair] for pair in itertools.pairwise(row)))
        expected[range(length), row] += weight
    expected /= expected.sum(axis=1, keepdims=True)
    assert marginals(alone, following) == pytest.approx(expected)
