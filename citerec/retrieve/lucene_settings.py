"""How words are searched: the settings of the retriever `lucene`."""

from pydantic import Field

from citerec.settings import PartSettings


class Bm25(PartSettings):
    """BM25 as Lucene computes it. Defaults chosen on data/acm dev: docs/results.md."""

    k1: float = Field(default=1.2, ge=0, le=1000, description="how slowly repeats of a word saturate")
    b: float = Field(default=0.75, ge=0, le=1, description="how much long texts are held back")


class Weights(PartSettings):
    """What a word is worth by the field in which it stands; 0 leaves the field out.

    Defaults chosen on the dev contexts of data/acm and data/acl: docs/results.md.
    """

    text: float = Field(default=1.0, ge=0, le=1000, description="title and abstract as one field")
    title: float = Field(default=0.35, ge=0, le=1000, description="the title alone")
    abstract: float = Field(default=0.0, ge=0, le=1000, description="the abstract alone")
    citances: float = Field(default=1.8, ge=0, le=1000, description="what others wrote when they cited the paper")


class LuceneSettings(PartSettings):
    """BM25 over the fields of papers and over citing sentences."""

    bm25: Bm25 = Bm25()
    weights: Weights = Weights()
    citing_title: float = Field(
        default=0.0,
        ge=0,
        description="weight of the citing paper's title, where it is known, against 1 for the sentence",
    )
    neighbours: float = Field(
        default=0.25, ge=0, description="weight of the sentences before and after, against 1 for the sentence"
    )
    citance_decay: float = Field(
        default=0.3,
        ge=0,
        le=1,
        description="weight of each further citance of a paper, against its better one",
    )
    max_query_words: int = Field(default=1000, ge=1, description="longest sentence taken, in words")
