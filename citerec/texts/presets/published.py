"""The settings of CiteBench, CiteSum, SciTLDR and OARelatedWork, as the code of their authors has them."""

from citerec.texts.presets.base import Preset

CITEBENCH = Preset(
    "citebench",
    source="Funkquist et al. 2023; github.com/UKPLab/citebench: src/rel_work/evaluation.py, "
    "src/data_processing/convert_to_scicite.py, src/ds_stats/scicite.py",
    metrics=("rouge", "bertscore", "intent", "corwa"),
    options={
        "stemming": False,
        "rouge_l": "sentence",
        "references": "first",
        "bertscore_model": "distilbert-base-uncased",
        "bertscore_layer": 5,
        "bertscore_rescaled": False,
        "intent_sentences": "citebench",
        "discourse_mean": "datasets",
    },
)
CITESUM = Preset(
    "citesum",
    source="Mao et al. 2022; github.com/morningmoni/CiteSum: run_seq2seq.py",
    metrics=("rouge",),
    options={"stemming": True, "rouge_l": "sentence", "references": "first"},
)
SCITLDR = Preset(
    "scitldr",
    source="Cachola et al. 2020; github.com/allenai/scitldr: scripts/cal-rouge.py",
    metrics=("rouge",),
    options={"stemming": True, "rouge_l": "sentence", "references": "best"},
)
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
