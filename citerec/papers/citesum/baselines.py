"""The extractive baselines of CiteSum (Mao et al. 2022, section 3.1)."""

import functools
import re

from citerec.papers.common.extractive import all_sentences, oracle_writer
from citerec.write.writers.extractive import ExtractiveWriter, contribution_each, extractive

_PHRASES = [re.compile(r"propose|introduce|in this paper", re.IGNORECASE)]

EXT_LEAD = extractive(ExtractiveWriter("ext-lead", functools.partial(all_sentences, each=1)))
EXT_HEURISTIC = extractive(ExtractiveWriter("ext-heuristic", functools.partial(contribution_each, cues=_PHRASES)))
EXT_ORACLE = oracle_writer("ext-oracle", (2, 1), most=1)
EXT_ORACLE_ROUGE1 = oracle_writer("ext-oracle-rouge1", (1, 2), most=1, stemming=True)
