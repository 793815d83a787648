"""HAtten (Gu, Gao and Hahnloser, ECIR 2022): an encoder of topics and papers by paragraphs, over frozen word vectors."""
