"""HAtten (Gu, Gao and Hahnloser, ECIR 2022): an encoder of paragraphs over frozen word vectors."""
