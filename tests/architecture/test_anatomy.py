"""Every provider plugin has the same anatomy: to have read one is to find one's way in all."""

import re
from collections.abc import Iterator

from tests.architecture.project import PROVIDERS, Package, shown
from tests.rules import check_each

REQUIRED = {
    "plugin": "the entry point, a few lines",
    "dialect": "the tables: roles, media support, id and name rules, order rules",
}
OPTIONAL = {
    "provider": "endpoint, credentials, lazily made SDK client, open",
    "encode": "turns → wire",
    "request": "settings and options → wire",
    "decode": "wire → reply",
    "native": "the vendor's own tools: their declarations, calls and results",
    "embeddings": "the operation for embeddings: calls → wire → vectors",
    "history": "stored request → messages, options, settings",
    "stream": "wire event → core events",
    "errors": "error table",
    "settings": "vendor-only settings, strict",
    "batches": "many requests at once → wire, their results → answers",
    "cache": "prompt caches: fields, markers, handles",
}
DATA = {"models.toml": "model capabilities as data, by prefix", "py.typed": "its annotations count"}
FOLDERS = {"gateways": "rows of other vendors' endpoints that speak its dialects, a TOML file each"}
ARGUED: dict[str, dict[str, str]] = {
    "sabir_anthropic": {
        "schema.py": "schemas of replies and parameters, narrowed to what the vendor takes",
    },
    "sabir_google": {
        "streamed_calls.py": "calls whose arguments arrive in pieces, each with its path",
    },
    "sabir_openai": {
        "chat_stream_parts.py": "parts of a streamed message while their pieces arrive",
        "responses_stream_items.py": "an output item, joined from the events of a stream that contain its texts",
        "schema.py": "schemas made strict where they can be, for both dialects",
    },
    "sabir_local": {
        "command.py": "`sabir local`: which models are here, and what brings them",
        "server_program.py": "the program of the child process: the model server itself",
        "fetch.py": "brings the embedded model, which other providers have on their own machines",
        "models.py": "which file serves a name",
        "server.py": "the embedded model server, which other providers have behind a URL",
        "template.jinja": "the chat template that makes the model choose options",
    },
}
"""Module → file that the anatomy has no place for → why it is there all the same."""


def role(stem: str) -> str:
    """The file's part in the anatomy: `chat_encode` is the `encode` of one dialect of several."""
    return re.sub(r"^[a-z_]+_", "", stem)


def missing_files(package: Package) -> Iterator[str]:
    """What no provider can be without, and this one is."""
    roles = {role(path.stem) for path in package.modules()}
    for name in REQUIRED.keys() - roles:
        yield f"{shown(package.source)}: has no {name}.py ({REQUIRED[name]})"


def test_a_provider_has_an_entry_point_and_a_dialect() -> None:
    """The two files that no provider can be without."""
    check_each(PROVIDERS, missing_files, "write it as the other providers have it")


def strange_files(package: Package) -> Iterator[str]:
    """Files that the anatomy has no place for, and that nothing argues for."""
    known = REQUIRED.keys() | OPTIONAL.keys()
    argued = ARGUED.get(package.module, {})
    for path in sorted(package.source.rglob("*")):
        if not path.is_file() or "__pycache__" in path.parts:
            continue
        if path.name in DATA.keys() | argued.keys() | {"__init__.py"}:
            continue
        if path.suffix == ".toml" and path.parent.name in FOLDERS:
            continue
        if not (path.suffix == ".py" and path.parent == package.source and role(path.stem) in known):
            yield f"{shown(path)}: is no part of the anatomy"


def test_a_providers_files_are_those_of_the_anatomy() -> None:
    """A file under another name is a part that the next reader has to discover."""
    check_each(PROVIDERS, strange_files, "name it as its part is named, or argue for it in ARGUED")


def test_every_argued_exception_exists() -> None:
    """An exception for a file that is gone would hide the next one of its name."""
    sources = {package.module: package.source for package in PROVIDERS}
    gone = [
        (module, name) for module, names in ARGUED.items() for name in names if not (sources[module] / name).is_file()
    ]

    assert gone == []
