"""The names for authors as type checkers and editors read them; `__init__.py` loads each at its first use."""

# isort: skip_file
from sabir.authoring.credentials import FoundCredential, KeySource, Values
from sabir.authoring.efforts import fit_effort
from sabir.authoring.clients import explaining_environment_errors
from sabir.authoring.failures import ErrorRule, ErrorTable, Failure, Raised
from sabir.authoring.storage import DatabaseFailure, PackageGrade, StoredNames
from sabir.authoring.providers import GeneratedSDKConnection, InProcessConnection, InProcessResponse, SDKProvider
from sabir.authoring.providers import SyncOnlyCall, SyncOnlyConnection, UserSDKConnection
from sabir.authoring.rows import Row, RowEntry, RowProvider
from sabir.authoring.schemas import SchemaRule, fit_schema
from sabir.authoring.stored import JSON_OBJECT, Fields, History, PartReader, first_whole_number, list_or_empty
from sabir.authoring.stored import object_or_empty, read_count, text_or_empty, unknown_fields, without_fields
from sabir.authoring.event_frames import EventFrames, JSONLines
from sabir.authoring.transport import CapturedRequest, ClientConnection, Library, OwnClientConnection
from sabir.base.errors import did_you_mean, one_line, printable
from sabir.base.failures import LossKind, Strict
from sabir.base.files import create_private_file, replace_file
from sabir.base.models import Frozen, StoredModel, describe_validation_error, load_stored
from sabir.base.surface import show_arguments
from sabir.base.values import FrozenDict, JSONObjectDocumentField, JSONText, JSONValue, count_values, decode_json
from sabir.base.values import encode_json, has_more_values
from sabir.calling.calls import CallArguments, Messages
from sabir.calling.drive import Performer
from sabir.calling.exchange import Action, Emit, Outcome, Script
from sabir.calling.operations import OperationClient, operation_client
from sabir.calling.stream import AsyncClosing, Relay, SyncClosing
from sabir.calling.wrapped import WrappedAdapter
from sabir.contract.batch import BatchAnswer, BatchOrder, BatchPage, BatchPhase, BatchRequest, BatchResults
from sabir.contract.batch import BatchStatus
from sabir.contract.dialect import Decoder, Dialect, Framing, ServerEvent, ServerEventReader
from sabir.contract.native import NativeTool
from sabir.contract.embeddings import EmbeddingCall, EmbeddingKind, EmbeddingVectors
from sabir.contract.operation import Decoded, Operation, OperationRequest, OperationResult
from sabir.contract.provider import SABIR_API, Access, AsyncWireResponse, Connection, Credential, Profile, Provider
from sabir.contract.provider import TokenCount, WireHead, WireRequest, WireResponse
from sabir.contract.scope import DecodeScope, Insertion, RequestScope
from sabir.contract.turns import Calls, Entry, IdentifierRule, LossLog, Roles, Side, Tables, Turn, TurnScope
from sabir.discovery import load_entry_point, split_model
from sabir.hooks.announcing import announce_work, continue_work, work_headers
from sabir.hooks.plugins import installed_hooks
from sabir.hooks.work import AgentWork
from sabir.options.execution import CallDepth, RaisedError, call_function, run_in_thread, set_during
from sabir.options.option import OptionLike
from sabir.options.signatures import ArgumentsRefused, BoundArguments, Signature
from sabir.reading.fold import Fold, ReplyBuilder
from sabir.reading.incoming import decode_answer
from sabir.rendering.pairing import pair_messages, side_of
from sabir.rendering.turns import TurnMaker
from sabir.vocabulary.constructors import as_messages, describe_kind
from sabir.vocabulary.fields import NonEmpty, Text
from sabir.vocabulary.media import DataURL, MediaRule, MediaURL, Modality
from sabir.vocabulary.messages import OptionCall, RoleHint
from sabir.vocabulary.models import ReasoningEffort, packaged_models
from sabir.vocabulary.parts import KnownPart, Part, Piece
from sabir.vocabulary.reply import BlockKind, FinishReason
from sabir.vocabulary.settings import WIRE_SETTINGS

__all__ = [  # noqa: RUF022
    "Access", "Action", "AgentWork", "ArgumentsRefused", "AsyncClosing", "AsyncWireResponse", "BatchAnswer",
    "BatchOrder", "BatchPage", "BatchPhase", "BatchRequest", "BatchResults", "BatchStatus", "BlockKind",
    "BoundArguments", "CallArguments", "CallDepth", "Calls", "CapturedRequest", "ClientConnection", "Connection",
    "Credential", "DataURL", "DatabaseFailure", "DecodeScope", "Decoded", "Decoder", "Dialect", "EmbeddingCall",
    "EmbeddingKind", "EmbeddingVectors", "Emit", "Entry", "ErrorRule", "ErrorTable", "EventFrames", "Failure",
    "Fields", "FinishReason", "Fold", "FoundCredential", "Framing", "Frozen", "FrozenDict", "GeneratedSDKConnection",
    "History", "IdentifierRule", "InProcessConnection", "InProcessResponse", "Insertion", "JSONLines",
    "JSONObjectDocumentField", "JSONText", "JSONValue", "JSON_OBJECT", "KeySource", "KnownPart", "Library", "LossKind",
    "LossLog", "MediaRule", "MediaURL", "Messages", "Modality", "NativeTool", "NonEmpty", "Operation",
    "OperationClient", "OperationRequest", "OperationResult", "OptionCall", "OptionLike", "Outcome",
    "OwnClientConnection", "PackageGrade", "Part", "PartReader", "Performer", "Piece", "Profile", "Provider", "Raised",
    "RaisedError", "ReasoningEffort", "Relay", "ReplyBuilder", "RequestScope", "RoleHint", "Roles", "Row", "RowEntry",
    "RowProvider", "SABIR_API", "SDKProvider", "SchemaRule", "Script", "ServerEvent", "ServerEventReader", "Side",
    "Signature", "StoredModel", "StoredNames", "Strict", "SyncClosing", "SyncOnlyCall", "SyncOnlyConnection", "Tables",
    "Text", "TokenCount", "Turn", "TurnMaker", "TurnScope", "UserSDKConnection", "Values", "WIRE_SETTINGS", "WireHead",
    "WireRequest", "WireResponse", "WrappedAdapter", "announce_work", "as_messages", "call_function", "continue_work",
    "count_values", "create_private_file", "decode_answer", "decode_json", "describe_kind",
    "describe_validation_error", "did_you_mean", "encode_json", "explaining_environment_errors", "first_whole_number",
    "fit_effort", "fit_schema", "has_more_values", "installed_hooks", "list_or_empty", "load_entry_point",
    "load_stored", "object_or_empty", "one_line", "operation_client", "packaged_models", "pair_messages", "printable",
    "read_count", "replace_file", "run_in_thread", "set_during", "show_arguments", "side_of", "split_model",
    "text_or_empty", "unknown_fields", "without_fields", "work_headers",
]  # fmt: skip
