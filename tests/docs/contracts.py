"""The reference of the contracts: the Protocols of sabir.contract, and the hooks of sabir.hooks, by member."""

from collections.abc import Mapping

from sabir.contract import protocols as contracts
from sabir.contract import scope
from sabir.contract.framing import ServerEvent
from sabir.hooks import specs as hookspecs
from sabir.hooks.plugins import KNOWN_HOOKS
from sabir.vocabulary.media import MediaRule
from sabir.vocabulary.settings import SettingsReader
from sabir.vocabulary.target import ModelInfo, Target

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
    "Provider", "Dialect", "Decoder", "Connection", "WireHead", "WireResponse", "AsyncWireResponse", "Fetcher",
)  # fmt: skip
VALUES: Mapping[str, type] = {
    "Access": contracts.Access,
    "WireRequest": contracts.WireRequest,
    "Tables": scope.Tables,
    "MediaRule": MediaRule,
    "IdentifierRule": scope.IdentifierRule,
    "ModelInfo": ModelInfo,
    "Target": Target,
    "Turn": scope.Turn,
    "Entry": scope.Entry,
    "TurnScope": scope.TurnScope,
    "RequestScope": scope.RequestScope,
    "SettingsReader": SettingsReader,
    "Splice": scope.Splice,
    "DecodeScope": scope.DecodeScope,
    "LossLog": scope.LossLog,
    "ServerEvent": ServerEvent,
    "TokenCount": contracts.TokenCount,
    "FetchedMedia": contracts.FetchedMedia,
}
"""What the Protocols' members take and give."""


def protocols() -> str:
    """Every Protocol with its attributes and methods."""
    return "\n\n".join(_section(getattr(contracts, name)) for name in PROTOCOLS)


def values() -> str:
    """The values that the Protocols speak of, with their fields."""
    aliases = [line for name in ("SABIR_API", "ApiKey") for line in lines_of(describe_constant(name, contracts))]
    return "\n".join([*aliases, *(line for cls in VALUES.values() for line in lines_of(_entry(cls)))])


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
