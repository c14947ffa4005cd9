"""Histories that other wires' services answered, shipped with the kit, for handing them over to any wire.

recorded/<dialect>.json     {"dialect", "cases": {case: {"provenance": …, "messages": […]}}}

They are the project's own recordings, decoded; `provenance` names the server that answered, so that nothing is wrongly
attributed to a vendor. Their origins name an unused endpoint, so that their bound state goes back to nobody.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from sabir import Message, loads

FOLDER = "recorded"
ENDPOINT = "https://recorded.invalid"
"""Where all of them were answered."""


@cache
def _documents() -> Mapping[str, Any]:
    folder = files("sabir_testing").joinpath(FOLDER)
    found = sorted((path for path in folder.iterdir() if path.name.endswith(".json")), key=lambda path: path.name)
    read = [json.loads(path.read_text("utf-8")) for path in found]
    return {document["dialect"]: document for document in read}


def source_dialects() -> tuple[str, ...]:
    """The dialects with recorded histories."""
    return tuple(_documents())


@cache
def recorded_histories() -> Mapping[str, Mapping[str, tuple[Message, ...]]]:
    """Dialect → case → the messages of what was asked and answered there."""
    return MappingProxyType({
        name: MappingProxyType({
            case: tuple(loads(json.dumps(recorded["messages"]))) for case, recorded in document["cases"].items()
        })
        for name, document in _documents().items()
    })  # fmt: skip


def provenance_of_history(dialect: str, case: str) -> Mapping[str, str]:
    """Who answered: server, version, model, date."""
    found: Mapping[str, str] = _documents()[dialect]["cases"][case]["provenance"]
    return found
