"""Opens taggers."""

from pathlib import Path

from citerec.discourse.base import Tagger, TaggerManifest
from citerec.discourse.classifier import ClassifierTagger
from citerec.discourse.linear import LinearTagger
from citerec.models.find import find_model
from citerec.models.loading import read_model_manifest


def open_tagger(path_or_name: str | Path, *, device: str | None = None) -> Tagger:
    """Opens a tagger from `citerec train tagger`, or a sequence classifier of transformers, by folder or hub name.

    Raises:
        ModelError: There is none, or it is damaged, or of another version.
    """
    found = find_model(str(path_or_name))
    manifest = read_model_manifest(Path(found), TaggerManifest, "a tagger", "Train one: citerec train tagger …")
    if manifest and manifest.model == "linear":
        return LinearTagger.open(Path(found), manifest)
    return ClassifierTagger.open(found, manifest, device=device)
