"""The settings of CiteBench's metrics, as the code of its authors has them."""

from citerec.write.citation import Preset

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
