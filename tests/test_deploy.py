"""The files in `deploy/` are well-formed, name settings and metrics that there are, and agree with each other."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

import rankloop
from rankloop.cli import app
from rankloop.serving.http.app import exposition
from tests.serving.service import create, rounds, running

DEPLOY = Path(__file__).parents[1] / "deploy"
YAML = sorted(path for path in DEPLOY.rglob("*.y*ml") if "templates" not in path.parts)
TEMPLATES = sorted((DEPLOY / "helm" / "rankloop" / "templates").iterdir())


@pytest.fixture(scope="module")
def variables() -> set[str]:
    serve = typer.main.get_command(app).commands["serve"]  # type: ignore[attr-defined]
    found = {param.envvar for param in serve.params if isinstance(param.envvar, str)}
    return {*found, "RANKLOOP_SERVE_LIMIT"}


@pytest.fixture(scope="module")
def metrics() -> str:
    async def story() -> str:
        async with running() as engine:
            await create(engine)
            await rounds(engine, 30)
            return exposition(engine).decode()

    return asyncio.run(story())


def _variables_in(text: str) -> set[str]:
    return set(re.findall(r"\bRANKLOOP_[A-Z_]*[A-Z]\b", text))


@pytest.mark.parametrize("path", YAML, ids=lambda path: str(path.relative_to(DEPLOY)))
def test_it_is_yaml(path: Path) -> None:
    assert yaml.safe_load(path.read_text())


def rendered(text: str, values: dict[str, Any]) -> Any:
    """A template with its values put in, as far as ours go: values, `quote`, one `range` and one `toYaml`."""

    def value(match: re.Match[str]) -> str:
        path, quote = match[1], match[2]
        found: Any = {"Values": values, "Release": {"Name": "test"}}
        for part in path.strip(".").split("."):
            found = found[part]
        return json.dumps(str(found)) if quote else str(found)

    def each(match: re.Match[str]) -> str:
        return "".join(
            match[1].replace("{{ $name }}", name).replace("{{ $value | quote }}", json.dumps(str(one)))
            for name, one in values["settings"].items()
        )

    text = re.sub(
        r" *\{\{- range \$name, \$value := \.Values\.settings \}\}\n(.*?) *\{\{- end \}\}\n",
        each,
        text,
        flags=re.S,
    )
    text = re.sub(
        r"\{\{- toYaml \.Values\.resources \| nindent 12 \}\}", json.dumps(values["resources"]), text
    )
    text = re.sub(r"\{\{ (\.[A-Za-z.]+)( \| quote)? \}\}", value, text)
    assert "{{" not in text
    return yaml.safe_load(text)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_the_chart_renders_to_yaml(path: Path, variables: set[str]) -> None:
    values = yaml.safe_load((DEPLOY / "helm" / "rankloop" / "values.yaml").read_text())
    made = rendered(path.read_text(), values)
    assert made["metadata"]["name"] == "test"
    if made["kind"] == "Deployment":
        (container,) = made["spec"]["template"]["spec"]["containers"]
        assert {one["name"] for one in container["env"]} <= variables
        assert container["ports"][0]["containerPort"] == values["port"]


def test_versions_agree() -> None:
    chart = yaml.safe_load((DEPLOY / "helm" / "rankloop" / "Chart.yaml").read_text())
    values = yaml.safe_load((DEPLOY / "helm" / "rankloop" / "values.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == values["image"]["tag"] == rankloop.__version__


def test_only_variables_that_there_are(variables: set[str]) -> None:
    variables = {*variables, "RANKLOOP_CONFIG"}
    for name in ("Containerfile", "systemd/rankloop.service"):
        found = _variables_in((DEPLOY / name).read_text())
        assert found
        assert found <= variables, name


def test_compose_mounts_what_is_there() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    assert (DEPLOY / compose["services"]["rankloop"]["build"]["dockerfile"].removeprefix("deploy/")).exists()
    for service in compose["services"].values():
        assert set(service.get("secrets", ())) <= set(compose["secrets"])
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert (DEPLOY / source).exists() if source.startswith(".") else source in compose["volumes"]


def test_metrics_that_are_watched_are_there(metrics: str) -> None:
    known = set(re.findall(r"^(rankloop_\w+?)(?:\{| )", metrics, re.M))
    kinds = set(re.findall(r'kind="(\w+)"', metrics))
    board = json.loads((DEPLOY / "grafana" / "boards" / "rankloop.json").read_text())
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    rules = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())
    asked += [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    asked.append(board["templating"]["list"][0]["query"])
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    for expression in asked:
        assert set(re.findall(r"\brankloop_\w+", expression)) <= known, expression
        assert set(re.findall(r'kind="(\w+)"', expression)) <= kinds, expression


def test_the_unit_is_one() -> None:
    unit = DEPLOY / "systemd" / "rankloop.service"
    text = unit.read_text()
    assert {"[Unit]", "[Service]", "[Install]"} <= set(text.splitlines())
    for line in text.splitlines():
        assert not line or line.startswith(("#", "[")) or re.match(r"[A-Z][A-Za-z]+=", line), line
    if shutil.which("systemd-analyze") is not None:
        told = subprocess.run(
            ["systemd-analyze", "verify", "--recursive-errors=no", str(unit)],
            capture_output=True,
            text=True,
            check=False,
        ).stderr
        wrong = [line for line in told.splitlines() if "rankloop.service" in line]
        # The program itself is not installed where the tests run.
        assert [line for line in wrong if "is not executable" not in line] == []
