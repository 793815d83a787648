"""Every endpoint, over HTTP; the examples of the OpenAPI description work."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from citerec.errors import IndexUnusableError
from citerec.recommend import Recommender
from citerec.records import to_json
from citerec.serve.app import make_app
from citerec.serve.service import ServeSettings, Service
from tests.conftest import Citerec
from tests.e2e.test_cli import one_line
from tests.serve.conftest import SENTENCE, Running


def test_recommend_answers_as_the_library_does(client: httpx.Client, demo_index: Path) -> None:
    found = client.post("/api/v1/recommend", json={"text": SENTENCE, "k": 5}).json()
    with Recommender.open(demo_index) as recommender:
        expected = [to_json(hit) for hit in recommender.search(SENTENCE, 5, fold=True)]
    (answer,) = found["answers"]
    assert answer["hits"] == json.loads(json.dumps(expected))
    assert (found["index"], found["system"], found["unknown_cited"]) == ("demo", "bm25", [])
    text = "Forests of trees <REF> vote. Attention suffices to translate <REF>."
    first, second = client.post("/api/v1/recommend", json={"text": text, "k": 100}).json()["answers"]
    assert first["text"].count("<REF>") == second["text"].count("<REF>") == 1 and first["hits"] != second["hits"]


def test_filters_title_citing_and_explain(client: httpx.Client) -> None:
    asked: dict[str, Any] = {"text": SENTENCE, "k": 20}

    def hits(**more: object) -> list[Any]:
        return list(client.post("/api/v1/recommend", json={**asked, **more}).json()["answers"][0]["hits"])

    first, *others = [hit["paper_id"] for hit in hits()]
    found = hits(citing=first, title="Weights", explain=True, filters={"year_from": 1990, "year_to": 2010})
    assert found
    assert all(1990 <= hit["year"] <= 2010 and hit["paper_id"] != first and hit["matches"] for hit in found)
    found = hits(filters={"exclude": [first, *others], "fields": ["computer science"]})
    assert not {hit["paper_id"] for hit in found} & {first, *others}


def test_what_the_draft_cites(client: httpx.Client) -> None:
    for cited in ([900000158, "nobody"], {"brunsdon1996": 900000158, "x": "nobody"}):
        found = client.post("/api/v1/recommend", json={"text": SENTENCE, "cited": cited, "k": 50}).json()
        assert found["unknown_cited"] == ["nobody"]
        assert {hit["paper_id"]: hit.get("cited_before") for hit in found["answers"][0]["hits"]}[900000158] == 1


def test_generate(client: httpx.Client) -> None:
    found = client.post("/api/v1/generate", json={"text": SENTENCE, "k": 2}).json()
    assert found["text"]
    assert [paper["number"] for paper in found["papers"]] == [0, 1]
    assert found["sentence"] == SENTENCE.replace("<REF>", "[0, 1]")
    assert len(found["bibtex"]) == 2
    given = {"text": SENTENCE, "papers": [900000158], "bibtex": False, "index": "other"}
    found = client.post("/api/v1/generate", json=given).json()
    assert [paper["paper_id"] for paper in found["papers"]] == [900000158]
    assert (found["index"], found["system"], "bibtex" in found) == ("other", None, False)


def test_papers_by_words_and_by_filter_page_by_page(client: httpx.Client) -> None:
    def listed(**asked: object) -> list[Any]:
        offset, found = 0, []
        while offset is not None:
            page = client.get("/api/v1/papers", params={**asked, "offset": offset, "limit": 100}).json()  # type: ignore[dict-item]
            found += [paper["paper_id"] for paper in page["papers"]]
            offset = page["next_offset"]
        return found

    everything = listed()
    assert len(everything) == len(set(everything)) == 252
    recent = client.get("/api/v1/papers", params={"year_from": 2015, "limit": 100}).json()["papers"]
    assert recent and all(paper["year"] >= 2015 for paper in recent)
    assert 0 < len(listed(q="neural networks", fields="Computer Science", min_citations=100)) < 252
    (first,) = client.get("/api/v1/papers", params={"q": "weighted regression", "limit": 1}).json()["papers"]
    assert "Geographically Weighted" in first["title"]
    (known,) = client.get("/api/v1/papers", params={"q": "vaswani"}).json()["papers"]
    assert known["title"] == "Attention Is All You Need"
    paper = client.get(f"/api/v1/papers/{first['paper_id']}").json()
    assert paper["title"] == first["title"] and paper["bibtex"].startswith("@")
    assert client.get("/api/v1/papers/nobody").status_code == 404


def test_indexes_state_and_metrics(client: httpx.Client) -> None:
    found = client.get("/api/v1/indexes").json()["indexes"]
    assert [(index["name"], index["papers"]) for index in found] == [("demo", 252), ("other", 252)]
    assert client.get("/ready").json() == client.get("/health").json() == {"status": "ok"}
    client.get("/no/such/page")
    text = client.get("/metrics").text
    assert 'citerec_requests_total{route="/health",status="200"}' in text
    assert 'citerec_requests_total{route="other",status="404"}' in text
    assert 'citerec_request_seconds_bucket{le="0.1",route="/api/v1/indexes"}' in text
    assert "such" not in text


def test_every_error_is_json_with_a_remedy(client: httpx.Client) -> None:
    ask = "/api/v1/recommend"
    json_header = {"Content-Type": "application/json"}
    for status, response in [
        (400, client.post(ask, content=b"{", headers=json_header)),
        (404, client.get("/nowhere")),
        (404, client.post(ask, json={"text": SENTENCE, "index": "nowhere"})),
        (405, client.get(ask)),
        (413, client.post(ask, json={"text": "a" * 500_000})),
        (413, client.post(ask, content=(b" " * 1000 for _ in range(500)), headers=json_header)),
        (415, client.post(ask, content=b"{}", headers={"Content-Type": "text/plain"})),
        (422, client.post(ask, json={})),
        (422, client.post(ask, json={"text": "... <REF>"})),
        (422, client.post(ask, json={"text": "a " * 15_000})),
        (422, client.post(ask, json={"text": "<REF> a. " * 30})),
        (422, client.post(ask, json={"text": SENTENCE, "k": 101})),
        (422, client.post(ask, json={"text": SENTENCE, "filters": {"year_from": 2001, "year_to": 2000}})),
        (422, client.post(ask, json={"text": SENTENCE, "filters": {"fields": ["Alchemy"]}})),
        (422, client.post("/api/v1/generate", json={"text": "no place"})),
        (422, client.get("/api/v1/papers", params={"limit": 1000})),
        (400, client.get("/api/v1/indexes", headers={"Host": "127.0.0.1.evil.example:80"})),
    ]:
        assert response.status_code == status, response.text
        assert response.headers["Content-Type"] == "application/json"
        assert set(response.json()) == {"error", "remedy"}
        assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_the_page_and_headers_of_security(client: httpx.Client) -> None:
    page = client.get("/")
    assert page.headers["Content-Type"] == "text/html; charset=utf-8" and "citerec" in page.text
    assert "default-src 'self'" in page.headers["Content-Security-Policy"]
    for response in (page, client.get("/health"), client.get("/nowhere"), client.get("/api/v1/indexes")):
        assert "frame-ancestors 'none'" in response.headers["Content-Security-Policy"]
        assert response.headers["Referrer-Policy"] == "no-referrer"
        assert not {"server", "access-control-allow-origin"} & set(response.headers)
    assert client.options("/api/v1/recommend", headers={"Origin": "http://evil.example"}).status_code == 405


def test_the_examples_of_the_description_work(client: httpx.Client) -> None:
    whole = client.get("/api/v1/openapi.json").json()
    operations = [(path, *one) for path, methods in whole["paths"].items() for one in methods.items()]
    assert len(operations) >= 11
    for path, method, operation in operations:
        given: dict[str, dict[str, Any]] = {"path": {}, "query": {}}
        for parameter in operation.get("parameters", ()):
            schema = parameter["schema"]
            examples = [part for one in (schema, *schema.get("anyOf", ())) for part in one.get("examples", ())]
            if examples:
                given[parameter["in"]][parameter["name"]] = examples[0]
        body = None
        if "requestBody" in operation:
            (content,) = operation["requestBody"]["content"].values()
            schema = whole["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]
            (body,) = schema["examples"]
        assert operation["description"]
        response = client.request(method, path.format(**given["path"]), params=given["query"], json=body)
        assert response.status_code == 200, (path, response.text)


@pytest.mark.parametrize(
    ("error", "status"),
    [(RuntimeError("boom in /home/someone"), 500), (IndexUnusableError("/home/someone is broken", "Build it."), 503)],
)
def test_faults_say_nothing_of_the_inside(error: Exception, status: int, caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> Iterator[str]:
        raise error
        yield

    service = Service({}, None, (), "attributed", ServeSettings())
    service.indexes = broken()  # type: ignore[assignment]
    app = make_app(service)
    client = TestClient(app, "http://localhost", raise_server_exceptions=False)
    response = client.get("/api/v1/indexes")
    assert (response.status_code, set(response.json())) == (status, {"error", "remedy"})
    assert "someone" not in response.text
    assert status == 500 or "/home/someone is broken" in caplog.text


def test_mistakes_on_the_command_line(
    citerec_here: Citerec, demo_index: Path, server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(told: str, *arguments: object) -> None:
        one_line(citerec_here("serve", *arguments), 2, told)

    refused("there is no index", "nowhere", "--workers", 2)
    one_line(citerec_here("mcp", "--index", "nowhere"), 2, "nowhere")
    refused("there is no token", demo_index, "--host", "0.0.0.0")
    refused("Did you mean serve.queue", demo_index, "-c", "serve.quue=1")
    refused("queue", demo_index, "-c", "serve.queue=-1")
    refused("two indexes are called", demo_index, demo_index)
    refused("=", f"={demo_index}")
    refused("cannot listen", demo_index, "--port", server.address[1])
    refused("there is no system", demo_index, "--system", "nothing")
    refused("none", demo_index, "--token-file", "none")
    monkeypatch.setenv("CITEREC_TOKEN", "short")
    refused("fewer than 16", demo_index)
