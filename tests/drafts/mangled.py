"""Drafts with mistakes of every kind."""

from hypothesis import strategies as st

LATEX = r"""\documentclass{article} % \cite{?} in the preamble
\usepackage[numbers]{natbib}
\title{Terms \emph{Weighted}}
\begin{document}
\maketitle
\begin{abstract}
We weigh terms \cite{TODO}.
\end{abstract}
\section{Introduction \label{intro}}
Retrieval has a long history~\citep[see][p.~3]{salton,rocchio}, and $k_1 < 2$ is usual <REF>. % <REF> is a comment
Na\"ive \textbf{models of language}\footnote{Smoothing helps \cite{?}. It is old.} do well \cite{ponte,?}.

As \verb|\cite{?}| shows, \todo{add a citation for this} this holds. \todo{rewrite} 100\% of it.
\begin{equation} x = \cite{?} \end{equation}
\begin{figure}\includegraphics{a}\caption{A plot of weights \cite{??}.}\end{figure}
\begin{verbatim} \cite{?} \end{verbatim}
\begin{itemize} \item First \citet{}. \item Second. \end{itemize}
\end{document}
\cite{?}
"""

MARKDOWN = """---
title: "Terms, weighted"
---
# Ranking [@?]
Retrieval is old [see @salton, p. 3; @rocchio], and so is smoothing [@?].
Mail me@there.org, `[@?]`, $x [@?]$ <!-- [@?] --> and @TODO says so.

```python
cite("[@?]")
```
Both @ponte and others <REF> agree [@croft; @?].
"""

TYPST = """#set document(title: "On lakes")
#import "x.typ": y
= Ice <ice>
Lakes freeze @roe01, as $x @y$ and `@code` and https://a.org/b show. // @comment
See @ice. Ponds #cite(<lee02>, form: "prose") say so @?, too <REF>.

== Snow
#cite(<?>, form: "prose") measured @?[p. 3].
#bibliography("lakes.bib")
"""
ORG = """#+title: On lakes
#+bibliography: lakes.bib
* Ice
Lakes freeze [cite:@roe01], ~@code~ and [cite/t:see @lee02; @?] say, [citation needed].
# [cite:@comment]
#+begin_src org
[cite:@?]
#+end_src

** Snow
So it is [cite:@?, p. 3].
"""

_SIGNS = ["", "{", "}", "\\", "%", "$", "\r", "\\begin{x}", "\\end{y}", "\\cite{", "[@", "<REF>", "ü", "\0", "\ufeff"]

_DRAFTS = [
    *(("draft.tex", LATEX), ("draft.md", MARKDOWN), ("draft.txt", LATEX)),
    *(("draft.typ", TYPST), ("draft.org", ORG)),
]


@st.composite
def mangled(draw: st.DrawFn) -> tuple[str, str]:
    """The name and the text of a draft in which some signs were replaced."""
    name, text = draw(st.sampled_from(_DRAFTS))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(text)))
        until = draw(st.integers(at, min(len(text), at + 40)))
        text = text[:at] + draw(st.sampled_from(_SIGNS)) + text[until:]
    return name, text
