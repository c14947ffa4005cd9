"""Every provider plugin has the same anatomy: to have read one is to find one's way in all."""

import re

import pytest

from tests.architecture.project import PROVIDERS, Package

REQUIRED = {
    "plugin": "the entry point, a few lines",
    "dialect": "the tables: roles, media support, id and name rules, order rules",
}
OPTIONAL = {
    "provider": "endpoint, credentials, lazily made SDK client, open",
    "encode": "turns → wire",
    "request": "settings and options → wire",
    "decode": "wire → reply",
    "history": "stored request → messages, options, settings",
    "stream": "wire event → core events",
    "errors": "error table",
    "settings": "vendor-only settings, strict",
}
DATA = {"models.toml": "model capabilities as data, by prefix", "py.typed": "its annotations count"}
ARGUED: dict[str, dict[str, str]] = {
    "sabir_anthropic": {
        "limits.py": "the maximum that the wire wants of every answer, and from which on it must be streamed",
    },
    "sabir_google": {
        "arguments.py": "calls whose arguments come in pieces, each at its path, streamed and whole",
        "services.py": "what one of the vendor's two services takes and the other does not",
    },
    "sabir_openai": {
        "gateways.toml": "compatible endpoints as rows of data",
        "media.py": "media as both dialects write them",
        "schema.py": "schemas made strict where they can be, for both dialects",
        "usage.py": "the figures that both dialects and all compatible endpoints give",
    },
    "sabir_local": {
        "engine.py": "what the child process runs: the model server itself",
        "server.py": "the embedded model server, which other providers have behind a URL",
        "template.jinja": "the chat template that makes the model choose options",
        "weights.py": "where the weights are found",
    },
}
"""Module → file that the anatomy has no place for → why it is there all the same."""

each_provider = pytest.mark.parametrize("package", PROVIDERS, ids=str)


def role(stem: str) -> str:
    """The file's part in the anatomy: `chat_encode` is the `encode` of one dialect of several."""
    return re.sub(r"^[a-z_]+_", "", stem)


@each_provider
def test_a_provider_has_an_entry_point_and_a_dialect(package: Package) -> None:
    """The two files that no provider can be without."""
    roles = {role(path.stem) for path in package.modules()}

    assert REQUIRED.keys() <= roles


@each_provider
def test_a_providers_files_are_those_of_the_anatomy(package: Package) -> None:
    """A file under another name is a part that the next reader has to discover."""
    known = REQUIRED.keys() | OPTIONAL.keys()
    argued = ARGUED.get(package.module, {})
    strange = [
        path.relative_to(package.source).as_posix()
        for path in sorted(package.source.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
        if path.name not in DATA.keys() | argued.keys() | {"__init__.py"}
        if not (path.suffix == ".py" and path.parent == package.source and role(path.stem) in known)
    ]

    assert strange == []


def test_every_argued_exception_exists() -> None:
    """An exception for a file that is gone would hide the next one of its name."""
    sources = {package.module: package.source for package in PROVIDERS}
    gone = [
        (module, name) for module, names in ARGUED.items() for name in names if not (sources[module] / name).is_file()
    ]

    assert gone == []
