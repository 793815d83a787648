"""Word vectors for HAtten: from a file in GloVe's text format, or the token embeddings of an encoder."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from citerec.errors import SourceError
from citerec.files.progress import Progress
from citerec.models.encoder import Reading
from citerec.models.loading import open_sentence_transformer

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_UNKNOWN = "[UNK]"
_PROGRESS_EVERY = 10_000

Vectors = NDArray[np.float32]


def read_words(name: str, texts: Iterable[str], most: int, on_progress: Progress) -> "tuple[Tokenizer, Vectors]":
    """A tokenizer, and the vector of each of its words, (words, dimension).

    The vectors are scaled to a mean square of 1: positions, which are added to them, have 1/2.

    Args:
        name: A file in GloVe's text format; else an encoder by folder or name, whose token embeddings are taken.
        texts: The texts whose words are wanted; only read for a file, where all other words are left out.
        most: The largest number of words taken from a file, the most frequent of the texts.
        on_progress: Called as the work goes on.

    Raises:
        SourceError: The file cannot be read, is not in this format, or has no word of the texts.
        ModelError: There is no such model, or it cannot be loaded.
    """
    is_file = Path(name).is_file()
    tokenizer, vectors = _of_file(Path(name), texts, most, on_progress) if is_file else _of_encoder(name)
    return tokenizer, (vectors / max(float(np.sqrt(np.mean(vectors**2))), 1e-12)).astype(np.float32)


def _of_encoder(name: str) -> "tuple[Tokenizer, Vectors]":
    from tokenizers import Tokenizer

    model = open_sentence_transformer(name, "cpu")
    transformer: Any = model[0]
    tokenizer = Tokenizer.from_str(Reading.of(name, model).tokenizer)
    tokenizer.no_padding()
    vectors = transformer.auto_model.get_input_embeddings().weight.detach().numpy()
    return tokenizer, vectors[: tokenizer.get_vocab_size()]


def _of_file(path: Path, texts: Iterable[str], most: int, on_progress: Progress) -> "tuple[Tokenizer, Vectors]":
    """The words of some texts that a file has, and for all others the mean of their vectors."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.WordLevel(unk_token=_UNKNOWN))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    # The trainer keeps the most frequent words, of equal ones the first in order.
    trainer = trainers.WordLevelTrainer(vocab_size=most + 1, special_tokens=[_UNKNOWN], show_progress=False)
    tokenizer.train_from_iterator(iter(texts), trainer)
    found = dict(glove_vectors(path, set(tokenizer.get_vocab()) - {_UNKNOWN}, on_progress))
    if not found:
        raise SourceError(f"{path} has none of the words of these texts", "Give word vectors of their language.")
    words = sorted(found)
    tokenizer.model = models.WordLevel({word: at for at, word in enumerate([_UNKNOWN, *words])}, unk_token=_UNKNOWN)
    vectors = np.stack([found[word] for word in words])
    return tokenizer, np.concatenate([vectors.mean(axis=0, keepdims=True), vectors])


def glove_vectors(path: Path, wanted: set[str], on_progress: Progress) -> Iterator[tuple[str, Vectors]]:
    """The vectors of those words of a file that are wanted, in its order; the file is streamed.

    A line is a word and its numbers, between single spaces. A first line with two fields, the head of word2vec's
    format, is passed over. Of a word that comes twice the first vector is taken.

    Raises:
        SourceError: The file cannot be read, or a line has too few numbers, or what stands there is no number.
    """
    rest = set(wanted)
    dimension = read = 0
    try:
        whole = path.stat().st_size
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                read += len(line)
                if number % _PROGRESS_EVERY == 0:
                    on_progress("reading word vectors", read, whole)
                # A word with spaces in it, of which some files have a few, is in no text.
                word, *numbers = line.rstrip().rsplit(b" ", dimension or -1)
                if number == 1 and len(numbers) == 1:
                    continue
                dimension = dimension or max(2, len(numbers))
                text = word.decode("utf-8", "replace")
                if text not in rest and len(numbers) == dimension:
                    continue
                try:
                    vector = np.array(numbers, dtype=np.float32)
                except ValueError:
                    vector = np.array([np.nan], np.float32)
                if len(vector) != dimension or not np.isfinite(vector).all():
                    raise SourceError(
                        f"line {number:,} of {path} is not a word and {dimension} numbers",
                        "Give a file in GloVe's text format, whole and unpacked.",
                    )
                rest.discard(text)
                yield text, vector
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror or error}", "Give a readable file.") from error
