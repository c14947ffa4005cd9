"""A package for a service that sabir-openai knows as a gateway: built, installed beside it, and uninstalled again."""

import json
from pathlib import Path

import pytest

from tests.third_party.stranger import CORE, ECHO, OPENAI, Stranger, run

PROJECT = """
[project]
name = "sabir-native"
version = "0.3"
requires-python = ">=3.11"
dependencies = ["sabir", "sabir-echo"]

[project.entry-points."sabir.providers"]
ollama = "sabir_native:ollama"
zenith = "sabir_native:zenith"

[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
"""
MODULE = """
from dataclasses import replace
from sabir_echo.plugin import Echo

class Native(Echo):
    dialects = ("native",)
    def __init__(self, name, adds_dialects):
        self.name, self.adds_dialects = name, adds_dialects
    def dialect(self, short_name):
        return replace(super().dialect("plain"), name=f"{self.name}.native")

ollama, zenith = Native("ollama", False), Native("zenith", True)
"""
PROGRAM = """
import json, sabir
def meaning(name):
    try:
        return sabir.adapter(f"{name}:m").dialect
    except sabir.SabirError as error:
        return type(error).__name__
names = ("ollama", "ollama.chat", "ollama.native", "zenith", "zenith.native")
listed = [[each.distribution, each.version, *each.names] for each in sabir.providers() if each.name in names]
print(json.dumps([[meaning(name) for name in names], listed]))
"""


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Stranger:
    """With all four packages."""
    folder = tmp_path_factory.mktemp("stranger")
    package = folder / "package"
    (package / "sabir_native").mkdir(parents=True)
    (package / "pyproject.toml").write_text(PROJECT, "utf-8")
    (package / "sabir_native" / "__init__.py").write_text(MODULE, "utf-8")
    stranger = Stranger(folder)
    stranger.install(CORE, ECHO, OPENAI, package)
    (folder / "copy").mkdir()
    return stranger


def remove(stranger: Stranger, package: str) -> None:
    run(["uv", "pip", "uninstall", "--quiet", "--python", stranger.python, package], stranger.folder)


def test_installing_a_package_changes_no_string_that_a_gateway_has(stranger: Stranger) -> None:
    """Both are listed with what means them; a string never moves from one package to the other without an error."""
    together = ["openai.chat", "openai.chat", "ollama.native", "ProviderMissing", "zenith.native"]
    row = next(Path(stranger.folder).glob("wheels/sabir_openai-*")).name.split("-")[1]
    native = [
        ["sabir-native", "0.3", "ollama.native"],
        ["sabir-openai", row, "ollama", "ollama.chat", "ollama.responses"],
    ]
    assert json.loads(stranger.ask("-c", PROGRAM)) == [together, [*native, ["sabir-native", "0.3", "zenith.native"]]]

    remove(stranger, "sabir-native")
    alone = ["openai.chat", "openai.chat", "DialectMissing", "ProviderMissing", "ProviderMissing"]
    assert json.loads(stranger.ask("-c", PROGRAM)) == [alone, native[1:]]
