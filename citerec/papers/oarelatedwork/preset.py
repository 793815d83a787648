"""The settings of OARelatedWork's metrics, as the code of its authors has them."""

from citerec.write.citation import Preset

OARELATEDWORK = Preset(
    "oarelatedwork",
    source="Docekal et al. 2024, section 4, and the code of its authors",
    metrics=("rouge", "blockmatch-rouge2", "bertscore", "blockmatch-bertscore", "citations"),
    options={
        "stemming": True,
        "rouge_l": "summary",
        "references": "first",
        "bertscore_model": "microsoft/deberta-xlarge-mnli",
        "bertscore_layer": 40,
        "bertscore_rescaled": True,
        "cited_works": "named",
    },
)
