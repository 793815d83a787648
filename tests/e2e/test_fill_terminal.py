"""`citerec fill` in a terminal, as a person meets it: keys, what stays in sight, and what is undone."""

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

COMMAND = str(Path(sys.executable).with_name("citerec"))
DRAFT = r"""Recurrent networks with gated memory cells learn dependencies across long sequences \cite{?}.
Attention alone, without recurrence, suffices to translate sentences \citep{?}.
\bibliography{refs}
"""
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>]")


class Terminal:
    """A command in a terminal of 80 by 24; `seen` is all that it has written so far."""

    def __init__(self, folder: Path, *arguments: object) -> None:
        self._master, slave = pty.openpty()
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
        self.process = subprocess.Popen(
            [COMMAND, *map(str, arguments)], cwd=folder, env=environment, stdin=slave, stdout=slave, stderr=slave
        )
        os.close(slave)
        self.seen = ""

    def wait(self, is_there: Callable[[str], bool]) -> str:
        """What is written until something is there."""
        seen, ends = "", time.monotonic() + 60
        while not is_there(seen):
            assert time.monotonic() < ends, seen
            if select.select([self._master], [], [], 0.2)[0]:
                try:
                    raw = os.read(self._master, 65536)
                except OSError:  # it has ended
                    break
                seen += _ESCAPES.sub("", raw.decode("utf-8", "replace"))
        self.seen += seen
        return seen

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def close(self) -> int:
        code = self.process.wait(30)
        os.close(self._master)
        return code


@pytest.mark.skipif(sys.platform == "win32", reason="there is no pty")
def test_papers_are_chosen_opened_undone_and_cited(tmp_path: Path, demo_index: Path) -> None:
    (tmp_path / "paper.tex").write_text(DRAFT)
    terminal = Terminal(tmp_path, "fill", "paper.tex", "--index", demo_index)
    first = terminal.wait(lambda seen: "q stop" in seen)
    assert "Recurrent networks" in first and "Hochreiter & Schmidhuber 1997 · Long Short-Term Memory" in first
    assert "Neural Computation" not in first
    terminal.press("\x1b[C")  # to the right: it opens
    assert "Neural Computation" in terminal.wait(lambda seen: "Gradients" in seen)
    terminal.press("\r")  # and is cited
    terminal.wait(lambda seen: "Attention alone" in seen)
    draft = tmp_path / "paper.tex"
    assert r"sequences \cite{hochreiter1997long}" in draft.read_text()
    terminal.press("u")
    terminal.wait(lambda seen: "Recurrent networks" in seen)
    assert draft.read_text() == DRAFT
    assert (tmp_path / "refs.bib").read_text() == ""
    terminal.press("s")
    terminal.wait(lambda seen: "Attention alone" in seen)
    terminal.press("b")
    terminal.wait(lambda seen: "Recurrent networks" in seen)
    terminal.press("  \r")  # the first two
    terminal.wait(lambda seen: "Attention alone" in seen)
    assert re.search(r"sequences \\cite\{hochreiter1997long,\w+\}", draft.read_text())
    terminal.press("q")
    assert "1 of 2 places filled, 1 left; 2 new entries" in terminal.wait(lambda seen: "refs.bib." in seen)
    assert terminal.close() == 0


def test_suggestions_are_taken_back_and_numbers_have_two_digits(tmp_path: Path, demo_index: Path) -> None:
    other = "Lehmann et al. studied how to design an efficient truthful mechanism for combinatorial auctions."
    text = DRAFT.replace(r" \cite{?}.", f". {other}").replace(r" \citep{?}", "")
    (draft := tmp_path / "paper.tex").write_text(text)
    terminal = Terminal(tmp_path, "fill", "paper.tex", "--suggest", "-k", 12, "--index", demo_index)
    terminal.wait(lambda seen: "q stop" in seen)
    draft.write_text(text := text.replace("efficient truthful", "efficient, truthful"))  # an editor saves it meanwhile
    terminal.wait(lambda seen: "efficient, truthful" in seen and "q stop" in seen)
    terminal.press("12")
    time.sleep(0.5)
    assert draft.read_text() == text  # the twelfth is chosen, and not cited yet
    terminal.press("\r")
    terminal.wait(lambda _: r"\cite" in draft.read_text())
    (cited,) = re.findall(r"\\cite\{(\w+)\}", draft.read_text())
    terminal.press("u")
    terminal.wait(lambda _: r"\cite" not in draft.read_text())
    assert draft.read_text() == text and cited not in (tmp_path / "refs.bib").read_text()
    terminal.press("q")
    assert "0 suggested sentences cite" in terminal.wait(lambda seen: "refs.bib." in seen)
    assert terminal.close() == 0


def test_what_a_citation_cites_already_is_not_offered(tmp_path: Path, demo_index: Path) -> None:
    draft, bib = tmp_path / "a.tex", tmp_path / "refs.bib"
    bib.write_text(
        "@misc{hoch97, title={Long Short-Term Memory}, author={Sepp Hochreiter and J. Schmidhuber}, year=1997}\n"
    )
    draft.write_text(DRAFT.replace(r"\cite{?}", r"\cite{hoch97,?}").splitlines()[0] + "\n\\bibliography{refs}\n")
    subprocess.run([COMMAND, "fill", draft, "--yes=any", "--index", demo_index], check=True, capture_output=True)
    assert re.search(r"\\cite\{hoch97,(?!hoch97)\w+\}", draft.read_text())


@pytest.mark.skipif(sys.platform == "win32", reason="there is no pty")
def test_what_is_saved_meanwhile_is_seen(tmp_path: Path) -> None:
    (draft := tmp_path / "a.tex").write_text(DRAFT)
    entry = "@article{{{0}, title={{{1}}}, author={{Lee, Ann}}, year=2001}}\n"
    (bib := tmp_path / "refs.bib").write_text(entry.format("lee", "Gated memory cells of recurrent networks"))
    subprocess.run(
        [COMMAND, "index", "build", "refs.bib", "--out", "mine"], cwd=tmp_path, check=True, capture_output=True
    )
    terminal = Terminal(tmp_path, "fill", "a.tex", "--index", "mine")
    terminal.wait(lambda seen: "q stop" in seen)
    bib.write_text(bib.read_text() + entry.format("new", "Dependencies across long sequences"))
    terminal.wait(lambda seen: "[new]" in seen)
    draft.write_text("\n" + DRAFT)
    terminal.wait(lambda seen: "a.tex:2" in seen)
    terminal.press("12")
    terminal.wait(lambda seen: "Attention alone" in seen)
    assert re.search(r"\\cite\{(lee|new)\}", draft.read_text())
    terminal.press("q")
    assert terminal.close() == 0
