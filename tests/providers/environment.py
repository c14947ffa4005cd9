"""No variable of the machine decides a test of a provider. Each folder's conftest.py imports the fixture."""

import os

import pytest

PREFIXES = ("ANTHROPIC_", "AWS_", "AZURE_", "CLOUD", "GCLOUD_", "GEMINI_", "GOOGLE_", "OPENAI_")


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(PREFIXES) or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
