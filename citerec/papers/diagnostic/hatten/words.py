"""Word vectors for HAtten: from a file in GloVe's text format, or the token embeddings of an encoder."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from citerec.errors import SourceError
from citerec.files.hashing import file_digest
from citerec.files.progress import Progress
from citerec.models.encoder import Reading
from citerec.models.find import find_model, model_identity
from citerec.models.loading import open_sentence_transformer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

_UNKNOWN = "[UNK]"
_PROGRESS_EVERY = 10_000


class Words(NamedTuple):
    """A tokenizer, and the vector of each of its words, (words, dimension); their mean square is 1."""

    tokenizer: "Tokenizer"
    vectors: "NDArray[np.float32]"


def identity_of_words(name: str) -> str:
    """What tells whether the word vectors of a name are still the same: the digest of a file, or a `model_identity`.

    Raises:
        SourceError: The file cannot be read.
        ModelError: There is no such model.
    """
    if not Path(name).is_file():
        return model_identity(find_model(name))
    try:
        return file_digest(Path(name))
    except OSError as error:
        raise SourceError(f"cannot read {name}: {error.strerror}", "Give a readable file.") from error


def read_words(name: str, texts: Iterable[str], most: int, on_progress: Progress) -> Words:
    """The word vectors of a name.

    Args:
        name: A file in GloVe's text format; else an encoder by folder or name, whose token embeddings are taken.
        texts: The texts whose words are wanted; only read for a file, where all other words are left out.
        most: The largest number of words taken from a file, the most frequent of the texts.
        on_progress: Called as the work goes on.

    Raises:
        SourceError: The file cannot be read, is not in this format, or has no word of the texts.
        ModelError: There is no such model, or it cannot be loaded.
    """
    if Path(name).is_file():
        return _words_of_file(Path(name), texts, most, on_progress)
    return _words_of_encoder(name)


def _words_of_encoder(name: str) -> Words:
    from tokenizers import Tokenizer

    model = open_sentence_transformer(name, "cpu")
    reading = Reading.of(name, model)
    transformer: Any = model[0]
    embeddings = transformer.auto_model.get_input_embeddings().weight
    tokenizer = Tokenizer.from_str(reading.tokenizer)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return Words(tokenizer, _scaled(embeddings.detach().numpy().copy()))


def _words_of_file(path: Path, texts: Iterable[str], most: int, on_progress: Progress) -> Words:
    """The words of some texts that a file has, and for all others the mean of their vectors."""
    import numpy as np
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    def tokenizer_of(words: dict[str, int]) -> Tokenizer:
        tokenizer = Tokenizer(models.WordLevel(words, unk_token=_UNKNOWN))
        tokenizer.normalizer = normalizers.Lowercase()
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        return tokenizer

    counted = tokenizer_of({_UNKNOWN: 0})
    # The trainer keeps the most frequent words, of equal ones the first in order.
    trainer = trainers.WordLevelTrainer(vocab_size=most + 1, special_tokens=[_UNKNOWN], show_progress=False)
    counted.train_from_iterator(iter(texts), trainer)
    wanted = set(counted.get_vocab()) - {_UNKNOWN}
    found = dict(glove_vectors(path, wanted, on_progress))
    if not found:
        raise SourceError(f"{path} has none of the words of these texts", "Give word vectors of their language.")
    words = sorted(found)
    vectors = np.stack([found[word] for word in words])
    vectors = np.concatenate([vectors.mean(axis=0, keepdims=True), vectors])
    return Words(tokenizer_of({word: number for number, word in enumerate([_UNKNOWN, *words])}), _scaled(vectors))


def glove_vectors(path: Path, wanted: set[str], on_progress: Progress) -> "Iterator[tuple[str, NDArray[np.float32]]]":
    """The vectors of those words of a file that are wanted, in its order; the file is streamed.

    A line is a word and its numbers, between single spaces. A first line with two whole numbers, the head of word2vec's
    format, is passed over. Of a word that comes twice the first vector is taken.

    Raises:
        SourceError: The file cannot be read, or a line has too few numbers, or what stands there is no number.
    """
    import numpy as np

    rest = set(wanted)
    dimension = 0
    try:
        whole, read = path.stat().st_size, 0
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                read += len(line)
                if number % _PROGRESS_EVERY == 0:
                    on_progress("reading word vectors", read, whole)
                fields = line.rstrip().split(b" ") if not dimension else line.rstrip().rsplit(b" ", dimension)
                if number == 1 and len(fields) == 2 and all(field.isdigit() for field in fields):
                    continue
                dimension = dimension or len(fields) - 1
                if dimension < 2 or len(fields) != dimension + 1:
                    raise _broken(path, number, f"{len(fields) - 1} numbers in place of {dimension or 'several'}")
                # A word with spaces in it, of which some files have a few, is in no text.
                word = fields[0].decode("utf-8", "replace")
                if word not in rest:
                    continue
                try:
                    vector = np.array(fields[1:], dtype=np.float32)
                except ValueError:
                    raise _broken(path, number, "something that is no number") from None
                if not np.isfinite(vector).all():
                    raise _broken(path, number, "a number that is not finite")
                rest.discard(word)
                yield word, vector
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror or error}", "Give a readable file.") from error


def _broken(path: Path, number: int, what: str) -> SourceError:
    return SourceError(
        f"line {number:,} of {path} is not a word and its vector: it has {what}",
        "Give a file in GloVe's text format, whole and unpacked.",
    )


def _scaled(vectors: "NDArray[np.float32]") -> "NDArray[np.float32]":
    """Vectors times one number, for a mean square of 1: positions, which are added to them, have 1/2."""
    import numpy as np

    scaled: NDArray[np.float32] = (vectors / max(float(np.sqrt(np.mean(vectors**2))), 1e-12)).astype(np.float32)
    return scaled
