"""The workflow of live checks: each row names a provider and its key, and a row without a secret is skipped by name."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import sabir
import yaml

from tests.architecture.project import ROOT

LIVE = yaml.safe_load((ROOT / ".github" / "workflows" / "live.yml").read_text("utf-8"))["jobs"]["check"]
ROWS = LIVE["strategy"]["matrix"]["include"]
STEP = LIVE["steps"][-1]
NOT_LIVE = {"azure", "bedrock", "vertex", "lmstudio", "ollama"}
"""Providers with a key that need more than a key: an account's own endpoint, a cloud's project, or a server."""


def step(tmp_path: Path, row: dict[str, Any], **secrets: str) -> str:
    """What the step prints for a row of the matrix; `uv` is replaced by a program that prints its arguments."""
    uv = tmp_path / "uv"
    uv.write_text('#!/bin/sh\necho "uv $*"\nprintenv OPENAI_API_KEY\n', "utf-8")
    uv.chmod(0o755)
    values = {"SECRET": row["secret"], "PROVIDER": row["provider"], "VARIABLE": row.get("variable", "")}
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "KEY": "", "MODEL": row.get("model", ""), **values, **secrets}
    return subprocess.run(["bash", "-e", "-c", STEP["run"]], env=env, capture_output=True, text=True, check=True).stdout


def test_each_row_names_a_provider_and_a_variable_of_its_key() -> None:
    variables = {status.name: status.key_variables for status in sabir.providers()}

    assert [row for row in ROWS if row["secret"] not in variables[row["provider"].partition(".")[0]]] == []
    assert all(("model" in row) != ("variable" in row) for row in ROWS)
    assert all(sabir.adapter(f"{row['provider']}:m", api_key="test").target for row in ROWS)


def test_every_provider_with_a_key_has_a_row() -> None:
    remote = {status.name for status in sabir.providers() if status.key_variables}

    assert remote - {row["provider"].partition(".")[0] for row in ROWS} == NOT_LIVE & remote


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["provider"])
def test_a_row_without_its_secret_is_skipped_by_name(tmp_path: Path, row: dict[str, Any]) -> None:
    assert step(tmp_path, row) == f"skipped: no {row['secret']}\n"


def test_a_gateway_without_a_model_is_skipped_by_name(tmp_path: Path) -> None:
    row = next(row for row in ROWS if row["provider"] == "groq")

    assert step(tmp_path, row, KEY="secret") == "skipped: no LIVE_MODEL_GROQ\n"


def test_a_row_with_its_secret_runs_the_check_with_the_key(tmp_path: Path) -> None:
    printed = step(tmp_path, ROWS[0], KEY="secret").splitlines()

    assert printed == ["uv run --no-default-groups --group packages sabir check openai:gpt-5 --yes", "secret"]
    assert set(STEP["env"]) == {"KEY", "MODEL", "PROVIDER", "SECRET", "VARIABLE"}
