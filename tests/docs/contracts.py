"""The reference of the contracts: the Protocols of sabir.contract, and the hooks of sabir.hooks, by member."""

import sabir
from sabir import authoring
from sabir.contract import provider
from sabir.hooks import specs as hookspecs
from sabir.hooks.plugins import KNOWN_HOOKS

from tests.docs.sources import (
    Entry,
    describe_class,
    describe_constant,
    documented_attributes,
    signature,
    tree_of,
    whole_text,
)
from tests.docs.surface import lines_of

PROTOCOLS = (
    "Provider", "Decoder", "Framing", "Connection", "WireHead", "WireResponse", "AsyncWireResponse", "WaitingCall",
)  # fmt: skip
VALUES = (
    "Dialect", "Tables", "Roles", "MediaRule", "Calls", "IdentifierRule", "Credential", "Profile", "Access",
    "WireRequest", "ModelInfo", "Target", "Turn", "Entry", "TurnScope", "RequestScope", "Splice",
    "DecodeScope", "LossLog", "ServerEvent", "TokenCount",
)  # fmt: skip
"""What the Protocols' members take and give; a dialect first."""


def named(name: str) -> type:
    """What a door calls so."""
    found: type = getattr(authoring if name in authoring.__all__ else sabir, name)
    return found


def protocols() -> str:
    """Every Protocol with its attributes and methods."""
    return "\n\n".join(_section(named(name)) for name in PROTOCOLS)


def values() -> str:
    """The values that the Protocols speak of, with their fields."""
    aliases = [line for name in ("SABIR_API", "ApiKey") for line in lines_of(describe_constant(name, provider))]
    return "\n".join([*aliases, *(line for name in VALUES for line in lines_of(_entry(named(name))))])


def hooks() -> str:
    """Every hook with its signature."""
    functions = {node.name: node for node in tree_of(hookspecs).body if hasattr(node, "args")}
    entries = [Entry(signature(functions[name]), whole_text(getattr(hookspecs, name))) for name in KNOWN_HOOKS]
    return "\n".join(line for entry in entries for line in lines_of(entry))


def _section(cls: type) -> str:
    entry = _entry(cls)
    return "\n".join([f"### {cls.__name__}", entry.summary, *(f"- {_item(member)}" for member in entry.members)])


def _item(member: Entry) -> str:
    return f"`{member.heading}`" + (f": {member.summary}" if member.summary else "")


def _entry(cls: type) -> Entry:
    described = describe_class(cls)
    members = dict.fromkeys((*documented_attributes(cls), *described.members))  # each once
    return Entry(cls.__name__, whole_text(cls), tuple(members))
