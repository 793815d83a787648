"""The settings of the metrics of CiteSum, and of SciTLDR, as the code of their authors has them."""

from citerec.write.metrics import Preset

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
