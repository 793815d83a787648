"""Drafts over HTTP: places, papers, citing; and nothing of the server's disk."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.serve.test_hostile import HTML

TEX = (
    "\\title{Trees}\n\\section{Start}\n"
    "Term weighting 𝔸 is a strong baseline \\cite{?}. Attention suffices to translate \\citep{vaswani, ?}.\n"
    "\\bibliography{lit}\n"
)
BIB = "@misc{vaswani,\n  title = {Attention Is All You Need},\n  year = {2017}\n}\n"
DRAFT = {"name": "paper.tex", "text": TEX, "bibliography": BIB}


def post(client: httpx.Client, path: str, **more: object) -> Any:
    response = client.post(f"/api/v1/drafts{path}", json={**DRAFT, **more})
    assert response.status_code == 200, response.text
    return response.json()


def refused(client: httpx.Client, path: str, **more: object) -> str:
    response = client.post(f"/api/v1/drafts{path}", json={**DRAFT, **more})
    assert response.status_code == 422, response.text
    return "{error}. {remedy}".format(**response.json())


def test_places_and_what_is_cited(client: httpx.Client) -> None:
    found = post(client, "")
    assert (found["title"], found["marker"], found["bibliographies"]) == ("Trees", "\\cite{?}", ["lit.bib"])
    first, second = found["places"]
    assert TEX[first["start"] : first["end"]] == "\\cite{?}"
    assert (first["number"], first["line"], first["section"]) == (0, 3, "Start")
    assert first["text"] == "Term weighting 𝔸 is a strong baseline <REF>."
    assert TEX[second["start"] : second["end"]] == "\\citep{vaswani, ?}"
    assert [(one["key"], one["title"]) for one in found["cited"]] == [("vaswani", "Attention Is All You Need")]
    assert (found["entries"], found["unreadable"]) == (1, [])
    assert post(client, "", bibliography="")["cited"][0]["title"] is None


def test_other_formats_and_what_cannot_be_read(client: httpx.Client) -> None:
    assert post(client, "", name="a.md", text="Forests of trees [@?] vote.")["marker"] == "[@?]"
    plain = post(client, "", name="notes", text="Forests of trees <REF> vote.")
    assert (plain["marker"], len(plain["places"])) == ("<REF>", 1)
    assert post(client, "", text="")["places"] == []
    assert "d.rst is no draft that citerec reads" in refused(client, "", name="d.rst", text="Forests <REF> vote.")
    assert "paper.tex cannot be understood, line 2" in refused(client, "", text="a\n\\cite{?} {")
    (told,) = post(client, "", bibliography=BIB + "@misc{broken,\n  title={x}\n")["unreadable"]
    assert told.startswith("refs.bib:5: not BibTeX")


def test_papers_for_a_place(client: httpx.Client) -> None:
    for more in ({"place": 0}, {"text": "No place."}):
        other = post(client, "/recommend", words="ranking <REF> pages of the web by links", k=1, **more)
        assert other["hits"][0]["title"].startswith("The Anatomy of a Large-Scale Hypertextual Web Search Engine")
    known = post(client, "/recommend", words="attention suffices to translate", k=5)["hits"]
    assert {hit["title"]: hit["key"] for hit in known}["Attention Is All You Need"] == "vaswani"
    found = post(client, "/recommend", place=1, k=5)
    assert {hit["key"] for hit in found["hits"]} == {None}  # what the citation cites already is not offered again
    assert found["text"].endswith("<REF>.")
    assert all(
        hit["matches"] and (hit["support"] is None or hit["support"] in hit["abstract"]) for hit in found["hits"]
    )
    recent = post(client, "/recommend", place=1, k=5, filters={"year_from": 2015})
    assert all(hit["year"] >= 2015 for hit in recent["hits"])


def test_papers_of_the_bibliography_come_first_if_they_fit(client: httpx.Client) -> None:
    by_system = post(client, "/recommend", place=0, k=4, own_first=False)["hits"]
    assert [hit["rank"] for hit in by_system] == [1, 2, 3, 4]
    third = by_system[2]
    bib = f"{BIB}@article{{mine, title = {{{third['title']}}}, year = {{{third['year']}}}}}\n"
    found = post(client, "/recommend", place=0, k=4, bibliography=bib)["hits"]
    assert [hit["rank"] for hit in found] == [3, 1, 2, 4]
    assert (found[0]["key"], found[0]["cite_id"]) == ("mine", third["paper_id"])
    assert "vaswani" not in {hit["key"] for hit in found}  # it does not fit


def test_a_text_that_cites_by_keys(client: httpx.Client) -> None:
    attention = post(client, "/recommend", words="attention suffices to translate", k=1)["hits"][0]["paper_id"]
    made = post(client, "/say", place=0, papers=[900000158, attention], keys="{Auth}{shortyear}")
    assert made["keys"] == ["Brunsdon96", "vaswani"] == [paper["key"] for paper in made["papers"]]
    assert "\\cite{Brunsdon96}" in made["text"].replace("citep", "cite") and "[0]" not in made["text"]
    sentence = "Term weighting 𝔸 is a strong baseline \\cite{Brunsdon96,vaswani}."
    assert f"{sentence} {made['text']} Attention suffices" in made["draft"]
    assert made["bibliography"].startswith(BIB + "\n@") and made["bibliography"].count("@") == 2
    words = post(client, "/say", words="trees that vote", papers=[attention])
    assert (words["draft"], words["bibliography"], words["keys"]) == (None, BIB, ["vaswani"])
    assert "neither a place nor words" in refused(client, "/say", papers=[attention])


def test_citing_adds_entries_and_keeps_the_rest(client: httpx.Client) -> None:
    attention = post(client, "/recommend", words="attention suffices to translate", k=1)["hits"][0]["paper_id"]
    made = post(client, "/cite", place=0, papers=[900000158, attention], keys="{Auth}{shortyear}")
    assert made["keys"] == ["Brunsdon96", "vaswani"]
    assert made["text"] == TEX.replace("\\cite{?}", "\\cite{Brunsdon96,vaswani}")
    assert made["bibliography"].startswith(BIB + "\n@")
    assert made["bibliography"].count("@") == 2
    again = post(client, "/cite", text=made["text"], bibliography=made["bibliography"], place=0, papers=[900000158])
    assert again["keys"] == ["Brunsdon96"]
    assert "\\citep{vaswani,Brunsdon96}" in again["text"]
    assert again["bibliography"] == made["bibliography"]
    for path in ("/cite", "/say"):
        body = {**DRAFT, "place": 0, "papers": ["nobody"]}
        assert client.post(f"/api/v1/drafts{path}", json=body).status_code == 404
        assert "there is no place 9" in refused(client, path, place=9, papers=[900000158])
    assert "citation keys '{x}' is wrong" in refused(client, "/cite", place=0, papers=[900000158], keys="{x}")


@pytest.mark.parametrize(
    "name", ["paper.tex", "{folder}/paper.tex", "../paper.tex", "C:\\x\\paper.tex", "a\0.tex", ".."]
)
def test_nothing_of_the_disk_is_read(client: httpx.Client, tmp_path: Path, name: str) -> None:
    (tmp_path / "secret.tex").write_text("The secret of the forest <REF> is out.")
    (tmp_path / "refs.bib").write_text("@misc{secret, title={A secret}}")
    inputs = [f"{tmp_path}/secret", f"{'../' * 12}{tmp_path}/secret", "/etc/passwd", "/dev/zero", "a\0b", "paper"]
    text = "".join(f"\\input{{{one}}} \\include{{{one}}} " for one in inputs)
    text += f"Trees vote <REF>. \\bibliography{{{tmp_path}/refs}}"
    given = {"name": name.format(folder=tmp_path), "text": text, "bibliography": ""}
    assert len(post(client, "", **given)["places"]) == 1
    for found in (post(client, "", **given), post(client, "/recommend", place=0, **given)):
        assert "secret of" not in str(found)


def test_limits(client: httpx.Client) -> None:
    assert "text: string should have at most 300000 characters" in refused(client, "", text="a" * 300_001)
    assert "bibliography: string should have at most" in refused(client, "", bibliography="a" * 300_001)
    assert "201 places" in refused(client, "", text="A <REF>. " * 201)
    assert "5,001 keys" in refused(client, "", text=f"\\cite{{{','.join(map(str, range(5001)))}}}", name="paper.tex")
    assert "k: input should be less than or equal to 100" in refused(client, "/recommend", place=0, k=101)
    assert "send its text" in refused(client, "", name="refs.bib").lower()
    for text in (HTML, "\\title{" * 3000, "[" + "@" * 20_000, "<!--" * 5000, "~" * 50_000):
        for name in ("a.tex", "a.md", "a.txt"):
            assert client.post("/api/v1/drafts", json={"name": name, "text": text}).status_code in (200, 422)
