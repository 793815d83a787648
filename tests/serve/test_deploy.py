"""The files of deploy/: valid by the schemas of Compose and Kubernetes, and true to what citerec serves."""

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from citerec import Index
from tests.conftest import DEMO, ROOT
from tests.serve.conftest import JSON, SENTENCE, TOKEN, Start

pytestmark = pytest.mark.slow

DEPLOY = ROOT / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
PROMETHEUS = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())
KUBERNETES = [
    document
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    for document in yaml.safe_load_all(path.read_text())
]
PORT = 8765  # of citerec serve, by default


def test_compose_is_valid() -> None:
    schema = json.loads((files("check_jsonschema") / "builtin_schemas" / "vendor" / "compose-spec.json").read_text())
    validator = jsonschema.validators.validator_for(schema)(schema)
    validator.validate(COMPOSE)
    assert list(validator.iter_errors({**COMPOSE, "services": {"citerec": {"healthcheck": {"tests": []}}}}))


@pytest.mark.parametrize("document", KUBERNETES, ids=lambda one: f"{one['kind']}-{one['metadata']['name']}")
def test_kubernetes_is_valid(document: Any) -> None:
    kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)


def test_citerec_serves_what_the_files_ask_for(start: Start, nx_server: str, tmp_path: Path) -> None:
    """A server as Compose starts it, with its records in a database; each check and each scrape of the files."""
    index = Index.build(DEMO, tmp_path / "main", store=f"{nx_server}/citerec_deploy").path
    (tmp_path / "token").write_text(TOKEN + "\n")
    here = {"/indexes/main": str(index), "/run/secrets/token": str(tmp_path / "token")}
    service = COMPOSE["services"]["citerec"]
    pods = [one["spec"]["template"]["spec"] for one in KUBERNETES if one["kind"] == "Deployment"]
    (container,) = (one for pod in pods for one in pod["containers"] if one["name"] == "citerec")
    with start(*(here.get(word, word) for word in service["command"][1:])) as running, running.client() as client:
        for name in ("startupProbe", "livenessProbe", "readinessProbe"):  # a kubelet calls a pod by its address
            path = container[name]["httpGet"]["path"]
            assert client.get(path, headers={"Host": f"10.1.2.3:{PORT}"}).status_code == 200
        for check in (" ".join(service["healthcheck"]["test"]), (DEPLOY / "Dockerfile").read_text()):
            asked = re.search(rf"http://127\.0\.0\.1:{PORT}(/\w+)", check)
            assert asked and client.get(asked[1]).status_code == 200
        (job,) = PROMETHEUS["scrape_configs"]
        path, host = job.get("metrics_path", "/metrics"), {"Host": f"citerec:{PORT}"}
        assert client.get(path, headers=host).status_code == 401
        token = Path(here[job["authorization"]["credentials_file"]]).read_text().strip()
        metrics = client.get(path, headers={**host, "Authorization": f"Bearer {token}"})
        assert 'citerec_index_papers{index="main"} 252' in metrics.text
        headers = {**JSON, "Authorization": f"Bearer {token}"}
        answer = client.post("/api/v1/recommend", json={"text": SENTENCE, "k": 2}, headers=headers)
        assert len(answer.json()["answers"][0]["hits"]) == 2
