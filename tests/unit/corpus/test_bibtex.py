import gzip
import re
import string
from pathlib import Path

import bibtexparser
import pytest
from bibtexparser.middlewares import LatexDecodingMiddleware, SeparateCoAuthors
from hypothesis import example, given, strategies as st

from citerec.corpus.base import entries_of
from citerec.corpus.bibtex import parse_bibtex, read_bibtex
from citerec.corpus.reading import BadRecord, unescaped
from citerec.records import Paper

LIBRARY = r"""@string{jml = "Journal of {ML}"}
@comment{nothing to see}
@article{goedel31,
  author = {Kurt G{\"o}del and {\AA}ngstr{\"o}m, Anders J. and de la Vall{\'e}e, Jr, Charles},
  title = "{\"U}ber {BERT} \& 50\% of na{\"\i}ve --- maths $x^2$",
  journal = jml, year = 1931, doi = {10.1000/xyz_1},
}
@InProceedings{child, author={Lin, Jimmy}, title={A child}, crossref={parent}}
@proceedings{parent, title={Proceedings of Everything}, year={2001}}
@misc{nothing, year = {1999}}
@book{twice, title={First}}
@book{twice, title={Second}}
"""


def read(tmp_path: Path, text: str | bytes) -> list[Paper | BadRecord]:
    path = tmp_path / "library.bib"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return [line.record for line in read_bibtex(path)]  # type: ignore[misc]


def paper_of(tmp_path: Path, text: str) -> Paper:
    (paper,) = read(tmp_path, text)
    assert isinstance(paper, Paper)
    return paper


def test_a_library_with_its_traps(tmp_path: Path) -> None:
    paper, child, _, bad, *twice = read(tmp_path, LIBRARY)
    assert isinstance(paper, Paper) and isinstance(child, Paper) and isinstance(bad, BadRecord)
    assert (paper.paper_id, paper.title) == ("goedel31", "Über BERT & 50% of naïve — maths $x^2$")
    assert paper.authors == ("Kurt Gödel", "Anders J. Ångström", "Charles de la Vallée Jr")
    assert (paper.venue, paper.year, dict(paper.external_ids)) == ("Journal of ML", 1931, {"DOI": "10.1000/xyz_1"})
    assert (child.year, child.venue) == (2001, "Proceedings of Everything")  # by its cross-reference
    assert "nothing to search" in bad.reason and bad.beginning.startswith("@misc{nothing")
    assert [one.title for one in twice if isinstance(one, Paper)] == ["First", "Second"]  # one key, both read
    caves, other = read(tmp_path, "@article{, title={On caves}, year=2008}\n@misc{b, title={On moraines}}\n")
    assert isinstance(caves, BadRecord) and isinstance(other, Paper) and other.year is other.venue is None
    names = r"@misc{a, title = {L}, author = {Jo\~{a}o Pe\~na and {\~N}u~Li and {The Group} and others}}"
    assert paper_of(tmp_path, names).authors == ("João Peña", "Ñu Li", "The Group")


DEEP = b"{" * 3000 + b"x" + b"}" * 3000
BEGIN, AFTER_END = "not BibTeX: an entry must begin with @article{", "fields after the end of an entry"
UNCLOSED = "Unexpected block start: `@book`. Was still looking for field-value closing `}`"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"@book{a, title={no end ", UNCLOSED),
        (b"@book{a, title={caf\xe9}}", "not UTF-8"),
        (b'@string{v = "caf\xe9"}\n@book{a, title={x}, journal = v}', "not UTF-8"),
        (b"@book{a, er\xa5s}", "`er?s`"),
        (b"@book{%s, title={x}}" % (b"k" * 513), "white space, control characters or over 512"),
        (b"@book{a, title={%s}}" % DEEP, "nested too"),
        (b"@book{a, title={x}, journal={%s}}" % DEEP, "nested too"),
        (b"article{a, title={Lost}}", BEGIN),
        (b"% Mine\n article{a,\n title={Lost}}", BEGIN),
        (b"@article\n{a, title={Lost}}", BEGIN),
        (b"@book{x, title={a}}, year={2001}}", AFTER_END),
        (b"@book{x, title={a} year={2001}}", "expected a comma after title of x"),
        (b"@book{x, title={a}, year {2001}}", "line 2: Expected a `=` after entry key, but found `{`."),
        (b'@string{v = "a" "b"}', "expected a comma after the macro v"),
    ],
)
def test_what_cannot_be_read_is_set_aside_and_no_other_entry_is_lost(tmp_path: Path, text: bytes, reason: str) -> None:
    found = read(tmp_path, b"@book{first, title={First}}\n%s\n@book{last, title={Last}}" % text)
    bad = [record.reason for record in found if isinstance(record, BadRecord)]
    assert reason in bad[0] and bad[0].encode()
    titles = [paper.title for paper in found if isinstance(paper, Paper)]
    assert (titles[0], titles[-1]) == ("First", "Last")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_an_entry_comes_back_byte_for_byte(tmp_path: Path, newline: str) -> None:
    entry = '@Article { key1 ,\n\ttitle  =   "An {Odd}\n   layout",   % kept\n  note={é ü}\n}'.replace("\n", newline)
    assert entries_of([paper_of(tmp_path, f"% my library{newline}{newline}{entry}{newline}")]) == [entry]


PARTS = ["@a{k, t={x}}", "@a(k, t={x})", "@a{", "b{k, t={x", '@a{k, t="', "@string{m=", "\n", " }", '"', ")"]


@given(st.text(alphabet='@{}",=#\\%abc \n', max_size=80) | st.lists(st.sampled_from(PARTS)).map("\n".join))
def test_no_text_breaks_the_reader(text: str) -> None:
    lines = list(parse_bibtex(text))
    assert all(isinstance(line.record, Paper | BadRecord) for line in lines)
    entry = re.compile(r"[ \t]*@(?!string)\w*[ \t]*[{(]")
    begun = {number for number, line in enumerate(text.split("\n"), 1) if entry.match(line)}
    assert begun <= {line.number for line in lines}


def test_macros_and_what_stands_between_entries(tmp_path: Path) -> None:
    """Macros are joined, and one that is defined again holds from there on."""
    text = (
        '@string{pre = "Proc. "}\n'
        '@inproceedings{a, title={C# x}, booktitle=pre # "SIGIR" # { 2}, url={1}, url={2}, '
        "year={in press}, date={2001}}\n"
        "My library (2001, revised): see @ home {below}.\n% a = b\n@comment{x{y, z = {1}}}\n"
        '@string{pre = "Two"}\n@book{b, title={B}, series=pre}\nend'
    )
    path = tmp_path / "library.bib.gz"
    path.write_bytes(gzip.compress(text.encode()))
    first, second = (line.record for line in read_bibtex(path))
    assert isinstance(first, Paper) and isinstance(second, Paper)
    assert (first.title, first.venue, first.year) == ("C# x", "Proc. SIGIR 2", 2001)
    assert (second.title, second.venue) == ("B", "Two")


def test_html_entities_are_decoded_and_the_entry_stays(tmp_path: Path) -> None:
    entry = (
        r"@article{a, title={P &lt; {Q} &amp; \&amp; R&eacute;my &foo; AT&T, $a & b$ &#27;&#x1b;}, "
        r"journal={Research &amp; {D}evelopment}, author={S&#246;ren M&uuml;ller and {A&amp;B}}, "
        r"doi={10.1/a&lt;b\_c--d}}"
    )
    paper = paper_of(tmp_path, entry)
    assert paper.title == "P < Q & & Rémy &foo; AT&T, $a & b$"
    assert (paper.venue, paper.authors) == ("Research & Development", ("Sören Müller", "A&B"))
    assert (dict(paper.external_ids), paper.bibtex) == ({"DOI": "10.1/a<b_c--d"}, entry)
    tags = r"@misc{a, title={{\textless}i{\textgreater}Vis{\textless}/i{\textgreater} and <sub>2</sub> &lt;b>}}"
    assert paper_of(tmp_path, tags).title == "Vis and 2 <b>"


SHOWN = st.text(alphabet=string.printable + "éñüßÅøıł题–—“”’Ω", max_size=30)


@given(SHOWN, st.lists(SHOWN, max_size=3), SHOWN, SHOWN)
@example("A } B", ["Simon and Schuster", "Davis, Jr., Sammy", "others", "and", "{"], "a { b", r"10.1/a}\b")
@example("-- \"quoted\" ``x'' ?`", ["~ \\ ^", "Foo and", "de la } X"], "50% of $x_1$ & #", "10.1/{x}")
def test_what_is_written_is_read_back_and_others_read_it(title: str, authors: list[str], venue: str, doi: str) -> None:
    title, venue, doi, *authors = (" ".join(text.split()) for text in ("T" + title, venue, doi, *authors))
    names, ids = tuple(filter(None, authors)), {"DOI": doi} if doi else {}
    written = Paper("1", title, year=1999, venue=venue or None, authors=names, external_ids=ids)
    (entry,) = entries_of([written])
    assert entry.count("{") == entry.count("}")  # BibTeX itself counts braces without regard to backslashes
    paper, following = (line.record for line in parse_bibtex(f"{entry}\n\n@book{{next, title={{Next}}}}"))
    assert isinstance(paper, Paper) and isinstance(following, Paper)
    for field in ("title", "authors", "venue", "year", "external_ids"):
        assert getattr(paper, field) == getattr(written, field)
    # bibtexparser's own reading: pylatexenc takes the name of ^ for another character.
    library = bibtexparser.parse_string(entry, append_middleware=[SeparateCoAuthors(), LatexDecodingMiddleware()])
    (found,) = library.entries
    assert not library.failed_blocks and len(found["author"] if names else ()) == len(names)
    if not set(title) & set("^\ue000"):
        assert unescaped(" ".join(found["title"].split())) == title


def test_a_preprint_is_written_and_read_with_its_archive(tmp_path: Path) -> None:
    (entry,) = entries_of([Paper("1", "T", venue="arXiv", external_ids={"ArXiv": "1706.03762"})])
    own = "@misc{a, title={T}, eprint={1706.03762}}"
    for text in (entry, own, own.replace("eprint=", "eprinttype={arxiv}, eprint=")):
        assert paper_of(tmp_path, text).external_ids == {"ArXiv": "1706.03762"}
    other = "@misc{a, title={T}, eprint={https://example.org}, eprinttype={url}}"
    assert not paper_of(tmp_path, other).external_ids


@pytest.mark.parametrize("before", ["x\\\n", "@article{b, title={y}}\\\n", "@string{s = {\\\n}}\n"])
def test_a_backslash_at_the_end_of_a_line_hides_no_entry(before: str) -> None:
    *_, last = parse_bibtex(before + "@article{a, title={x}}\n")
    assert isinstance(last.record, Paper) and last.record.title == "x"
    assert last.number == 1 + before.count("\n")
    entry = "@article{b, title = {y\\\n  z},\n  note = {\\\n}}"  # stays as it is
    (line,) = parse_bibtex(entry)
    assert isinstance(line.record, Paper) and line.record.bibtex == entry
