"""The study in containers: what compose.yaml starts is started here, with a PostgreSQL of the tests' own."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from tests.survey.postgres import drop_database, new_database
from tests.survey.serving import free_port, process_serving

pytestmark = pytest.mark.extras

ROOT = Path(__file__).resolve().parents[2]
VARIABLE = re.compile(r"\$\{(\w+):([-?])([^}]*)\}")
SECRETS = {"POSTGRES_PASSWORD": "secret", "BIASSAY_SURVEY_TOKEN": "a token of some length"}


def compose(**given: str) -> dict[str, Any]:
    """compose.yaml as Docker reads it, with these variables."""
    import yaml  # type: ignore[import-untyped]

    def value(found: re.Match[str]) -> str:
        name, kind, otherwise = found.groups()
        return given[name] if kind == "?" else given.get(name, otherwise)

    parsed = json.dumps(yaml.safe_load((ROOT / "compose.yaml").read_text()))
    services: dict[str, Any] = json.loads(VARIABLE.sub(value, parsed))["services"]
    return services


def test_secrets_have_no_default_and_ports_are_for_this_machine() -> None:
    found = VARIABLE.findall((ROOT / "compose.yaml").read_text())
    assert {name for name, kind, _ in found if kind == "?"} == set(SECRETS)
    services = compose(**SECRETS)
    assert [port for service in services.values() for port in service.get("ports", [])] == ["127.0.0.1:8000:8000"]
    assert services["web"]["depends_on"] == {"database": {"condition": "service_healthy"}}
    assert services["web"]["environment"]["PGPASSWORD"] == services["database"]["environment"]["POSTGRES_PASSWORD"]


def test_the_study_is_served_checked_and_exported(tmp_path: Path) -> None:
    web = compose(**SECRETS, SERVE_OPTIONS="--https --behind-proxy 172.30.77.1")["web"]
    port = free_port()
    database = new_database()
    environment = {**web["environment"], "BIASSAY_SURVEY_DATABASE": database}

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        own = {**os.environ, **environment}
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=own)

    def biassay(command: str) -> subprocess.CompletedProcess[str]:
        return run(sys.executable, "-m", "biassay", *shlex.split(command.replace("/out/", "")))

    written = (ROOT / "docs" / "survey.md").read_text()
    (new,) = re.findall(r"docker run .* biassay (survey new .+)", written)
    assert biassay(new).returncode == 0
    marker, python, *check = (part.replace("8000", str(port)) for part in web["healthcheck"]["test"])
    assert (marker, python) == ("CMD", "python")
    arguments = shlex.split(web["command"].replace("8000", str(port)))
    with process_serving(arguments, port, tmp_path, environment, tmp_path / "said.txt"):
        assert run(sys.executable, *check).returncode == 0
        with urlopen(f"http://127.0.0.1:{port}/researcher") as page:
            assert page.status == 200
        others = re.findall(r"docker compose run .* web (survey .+)", written)
        assert len(others) == 3
        for other in others:
            done = biassay(other)
            assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "answers" / "study.json").read_text())["name"] == "us-stereotypes"
    assert run(sys.executable, *check).returncode == 1
    drop_database(database)


def test_the_image_is_made_of_files_that_are_there_and_runs_as_nobody_special() -> None:
    lines = [line.split() for line in (ROOT / "Dockerfile").read_text().splitlines()]
    copied = [name for line in lines if line[:1] == ["COPY"] and "--from=build" not in line for name in line[1:-1]]
    sent = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    assert sorted(copied) == sorted(sent)
    assert all((ROOT / name).exists() for name in copied)
    assert [line[1] for line in lines if line[:1] == ["USER"]] == ["10001"]
