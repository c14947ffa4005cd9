"""The names for authors as type checkers and editors read them; `__init__.py` loads each at its first use."""

# isort: skip_file
from sabir.authoring.credentials import KeySource
from sabir.authoring.efforts import fit_effort
from sabir.authoring.environment import environment_checked
from sabir.authoring.failures import DatabaseFailure, ErrorRule, ErrorTable, Failure
from sabir.authoring.names import StoredNames
from sabir.authoring.providers import InProcessConnection, PostingClient, PostingConnection, SDKProvider, Served
from sabir.authoring.providers import WaitingCall, WaitingConnection, packaged_models
from sabir.authoring.rows import Row, RowEntry, RowProvider
from sabir.authoring.schemas import SchemaRule, fit_schema
from sabir.authoring.stored import JSON_OBJECT, Fields, History, Leaf, fields, first_count, items, left_over, read_count
from sabir.authoring.stored import text, without
from sabir.authoring.transport import ClientConnection, EventFrames, Kept, Library, OwnConnection
from sabir.base.errors import one_line, printable
from sabir.base.failures import LossKind, Strict
from sabir.base.models import AtRest, Frozen, describe, load_as
from sabir.base.values import FrozenDict, JSONObjectDocumentField, JSONText, JSONValue, count_values, decode_json
from sabir.base.values import encode_json, has_more_values
from sabir.calling.calls import CallArguments, Messages
from sabir.calling.drive import Performer
from sabir.calling.exchange import Script
from sabir.calling.stream import AsyncClosing, Relay, SyncClosing
from sabir.calling.wrapped import WrappedAdapter
from sabir.contract.dialect import Decoder, Dialect, Framing, ServerEvent, ServerEventReader
from sabir.contract.provider import SABIR_API, Access, AsyncWireResponse, Connection, Credential, Profile, Provider
from sabir.contract.provider import TokenCount, WireHead, WireRequest, WireResponse
from sabir.contract.scope import DecodeScope, RequestScope, Splice
from sabir.contract.turns import Calls, Entry, IdentifierRule, LossLog, Roles, Side, Tables, Turn, TurnScope
from sabir.discovery import load_point, split_model
from sabir.hooks.plugins import installed_hooks
from sabir.options.execution import Depth, RaisedError, called, start_thread
from sabir.options.option import OptionLike
from sabir.options.signatures import ArgumentsRefused, Bound, Signature
from sabir.reading.fold import Fold, ReplyBuilder
from sabir.rendering.pairing import pair, side_of
from sabir.rendering.turns import TurnMaker
from sabir.vocabulary.constructors import as_messages, name_kind
from sabir.vocabulary.media import DataURL, MediaRule, MediaURL, Modality
from sabir.vocabulary.messages import OptionCall, RoleHint
from sabir.vocabulary.models import ReasoningEffort
from sabir.vocabulary.parts import KnownPart, NonEmpty, Part, Text
from sabir.vocabulary.reply import BlockKind, FinishReason
from sabir.vocabulary.settings import WIRE_SETTINGS

__all__ = [  # noqa: RUF022
    "Access", "ArgumentsRefused", "AsyncClosing", "AsyncWireResponse", "AtRest", "BlockKind", "Bound",
    "CallArguments", "Calls", "ClientConnection", "Connection", "Credential", "DataURL", "DatabaseFailure",
    "DecodeScope", "Decoder", "Depth", "Dialect", "Entry", "ErrorRule", "ErrorTable", "EventFrames", "Failure",
    "Fields", "FinishReason", "Fold", "Framing", "Frozen", "FrozenDict", "History", "IdentifierRule",
    "InProcessConnection", "JSONObjectDocumentField", "JSONText", "JSONValue", "JSON_OBJECT", "Kept", "KeySource",
    "KnownPart", "Leaf", "Library", "LossKind", "LossLog", "MediaRule", "MediaURL", "Messages", "Modality",
    "NonEmpty", "OptionCall", "OptionLike", "OwnConnection", "Part", "Performer", "PostingClient",
    "PostingConnection", "Profile", "Provider", "RaisedError", "ReasoningEffort", "Relay", "ReplyBuilder",
    "RequestScope", "RoleHint", "Roles", "Row", "RowEntry", "RowProvider", "SABIR_API", "SDKProvider", "SchemaRule",
    "Script", "Served", "ServerEvent", "ServerEventReader", "Side", "Signature", "Splice", "StoredNames", "Strict",
    "SyncClosing", "Tables", "Text", "TokenCount", "Turn", "TurnMaker", "TurnScope", "WIRE_SETTINGS", "WaitingCall",
    "WaitingConnection", "WireHead", "WireRequest", "WireResponse", "WrappedAdapter", "as_messages", "called",
    "count_values", "decode_json", "describe", "encode_json", "environment_checked", "fields", "first_count",
    "fit_effort", "fit_schema", "has_more_values", "installed_hooks", "items", "left_over", "load_as", "load_point",
    "name_kind", "one_line", "packaged_models", "pair", "printable", "read_count", "side_of", "split_model",
    "start_thread", "text", "without",
]  # fmt: skip
