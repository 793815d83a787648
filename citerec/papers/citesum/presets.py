"""The settings of the metrics of CiteSum, and of SciTLDR, as the code of their authors has them."""

from citerec.write.metrics import Preset

_ROUGE = {"stemming": True, "rouge_l": "sentence"}
_OF_CITESUM = "Mao et al. 2022; github.com/morningmoni/CiteSum: run_seq2seq.py"
_OF_SCITLDR = "Cachola et al. 2020; github.com/allenai/scitldr: scripts/cal-rouge.py"
CITESUM = Preset("citesum", _OF_CITESUM, {**_ROUGE, "references": "first"}, ("rouge",))
SCITLDR = Preset("scitldr", _OF_SCITLDR, {**_ROUGE, "references": "best"}, ("rouge",))
