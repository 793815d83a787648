"""Twenty drafts for the yardstick: formats, several files, and what trips a reader. Their sentences are our own."""

from typing import NamedTuple

BIB = b"""@inproceedings{vaswani, title = {Attention Is All You Need}, author = {Vaswani, Ashish and Shazeer, Noam},
  booktitle = {NeurIPS}, year = {2017}}
@article{codd, title = {A Relational Model of Data for Large Shared Data Banks}, author = {Codd, E. F.}, year = 1971,
  journal = {Communications of the ACM}}
@article{twice, title = {A Relational Model of Data for Large Shared Data Banks}, author = {Codd, E. F.}, year = 1970}
@misc{nobody, title = {Nothing That Anybody Wrote}, author = {Nobody, N.}, year = 2099}
@article{broken, title = {Open brace, year = 2001}
"""

TEX = r"""\documentclass{article}
\title{How machines read and search}
\begin{document}
Attention alone suffices to translate well \cite{?}. Data are kept in relations \citep{codd}.
Deep networks learn representations of images \citep{vaswani, ?}. % not here: \cite{?}
A ranking of documents follows from the probability of relevance \citet{TODO}.
\bibliography{refs}
\end{document}
"""

MD = """---
title: How machines read
---
Attention alone suffices to translate well [@?]. Data are kept in relations [@codd; @?].

```
no place: [@?]
```

Species evolve under selection <REF>. As @vaswani say, attention is enough.
"""


class Draft(NamedTuple):
    """A draft: its files by name, of which the first is opened, and its bibliography."""

    files: dict[str, bytes]
    bib: bytes = BIB


def drafts() -> dict[str, Draft]:
    """The drafts by name."""
    tex, md = TEX.encode(), MD.encode()
    body = TEX.partition("\\begin{document}")[2].partition("\\end")[0].replace("\\bibliography{refs}", "").encode()
    main = rb"\documentclass{book}\begin{document}\input{one}\include{parts/two}\bibliography{refs}\end{document}"
    macros = b"@string{a0 = {x}}\n" + b"".join(
        b"@string{a%d = %s}\n" % (level, b" # ".join([b"a%d" % (level - 1)] * 4)) for level in range(1, 6)
    )
    return {
        "latex": Draft({"draft.tex": tex}),
        "latex-several-files": Draft({"draft.tex": main, "one.tex": body, "parts/two.tex": body}),
        "latex-file-missing": Draft({"draft.tex": main, "one.tex": body}),
        "latex-windows": Draft({"draft.tex": tex.replace(b"\n", b"\r\n")}, BIB.replace(b"\n", b"\r\n")),
        "latex-latin-1": Draft({"draft.tex": TEX.replace("Data are", "Möller says: data are").encode("latin-1")}),
        "latex-bom": Draft({"draft.tex": b"\xef\xbb\xbf" + tex}),
        "latex-unclosed": Draft({"draft.tex": tex.replace(b"\\citep{codd}", b"\\citep{codd")}),
        "latex-comments-only": Draft({"draft.tex": b"% \\cite{?}\n% nothing else\n"}),
        "latex-marker-in-math": Draft({"draft.tex": tex.replace(b"Data", b"$a <REF> b$ and \\verb|<REF>|. Data")}),
        "latex-one-line": Draft({"draft.tex": tex.replace(b"\n", b" ").replace(b"% not here: \\cite{?} ", b"")}),
        "latex-long": Draft({"draft.tex": tex.replace(b"Data are", b"Words are many. " * 2000 + b"Data are")}),
        "latex-empty": Draft({"draft.tex": b""}),
        "markdown": Draft({"draft.md": md}),
        "markdown-quarto": Draft({"draft.qmd": md.replace(b"```\n", b"```{python}\n", 1)}),
        "markdown-html": Draft({"draft.md": md.replace(b"Species", b"<!-- [@?] --><b>Species</b>")}),
        "markdown-no-places": Draft({"draft.md": b"# Title\n\nThere is nothing to cite here.\n"}),
        "text": Draft({"draft.txt": b"Attention alone suffices to translate well <REF>. Species evolve <REF>.\n"}),
        "text-no-words": Draft({"draft.txt": b"<REF>\n\n<REF> <REF>\n"}),
        "bib-empty": Draft({"draft.tex": tex}, b""),
        "bib-macros": Draft({"draft.tex": tex}, macros + BIB.replace(b"{NeurIPS}", b"a5")),
    }
