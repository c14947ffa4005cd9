"""The names for authors as type checkers and editors read them; `__init__.py` loads each at its first use."""

# isort: skip_file
from sabir.contract.dialect import Decoder, Dialect
from sabir.contract.provider import SABIR_API, Access, ApiKey, AsyncWireResponse, Connection, Credential, Profile
from sabir.contract.provider import Provider, TokenCount, WireHead, WireRequest, WireResponse
from sabir.contract.tables import Calls, IdentifierRule, Roles, Side, Tables
from sabir.contract.scope import DecodeScope, Entry, LossLog, RequestScope, Splice, Turn, TurnScope
from sabir.contract.framing import Framing, ServerEvent, ServerEventReader
from sabir.authoring.leaves import arguments_text, arguments_value, call_state, declare, error_text, hints_of, lose
from sabir.authoring.leaves import name_choice, neutral_fields, not_offered, read_vendor, refuse_setting, result_text
from sabir.authoring.leaves import result_value, stand_in, state_of, take_setting
from sabir.rendering.turns import TurnMaker
from sabir.rendering.pairing import pair, side_of
from sabir.vocabulary.media import DEFAULT_MIMES, SCHEMES, MediaRule, Modality, check_url, data_url_base64
from sabir.vocabulary.media import data_url_bytes, data_url_type, form_of, make_data_url, mime_type, read_data_url
from sabir.vocabulary.media import scheme_of, shorten, sniff_mime, spelled_for_url, split_provider_file, type_parameters
from sabir.vocabulary.hints import SHARED, Sections, with_hints
from sabir.authoring.bodies import Fields, fields, first_count, items, left_over, read_count, read_object, text
from sabir.authoring.bodies import usage_of, without
from sabir.reading.fold import Fold, ReplyBuilder, decode_call, is_empty
from sabir.authoring.frames import FRAMES, EventFrames
from sabir.authoring.stored import CHOICES, History, Leaf, data_url, expect, expect_name, file_url, listed, medium
from sabir.authoring.stored import read_hints, read_text
from sabir.authoring.failures import ErrorTable, Failure, by_codes, by_status, by_words
from sabir.authoring.access import read_endpoint
from sabir.authoring.transport import ClientConnection, Kept, Library, OwnConnection, kept, send
from sabir.authoring.inprocess import InProcessConnection, Served, WaitingCall, WaitingConnection
from sabir.base.values import DEEPEST, FrozenDict, JSONObjectDocumentField, JSONText, JSONValue, decode_json
from sabir.base.values import encode_json, freeze, object_view, parse_json
from sabir.base.models import AtRest, Frozen, assemble, build, describe, load_as
from sabir.base.losses import KINDS, LossKind, Strict, refuse
from sabir.base.errors import blaming, described, one_line, printable
from sabir.vocabulary.messages import RESERVED, OptionCall, RoleHint, new_ids
from sabir.vocabulary.parts import KnownPart, NonEmpty, Part, Text
from sabir.vocabulary.reply import BlockKind, FinishReason, block_delta
from sabir.vocabulary.settings import WIRE_SETTINGS, ReasoningEffort, refuse_misnamed
from sabir.vocabulary.constructors import Content, as_messages, name_kind
from sabir.options.option import OptionLike, as_options
from sabir.options.arguments import ArgumentsRefused, Binder, Bound
from sabir.options.signatures import Provided, first_paragraph, is_asynchronous, read_function, unwrap, values_of
from sabir.options.execution import check_runs, is_retryable, text_of
from sabir.options.context import at_depth, current_depth, deeper
from sabir.options.threads import called, start_thread
from sabir.calling.calls import CallArguments, Messages
from sabir.calling.exchange import Script
from sabir.calling.drive import Performer
from sabir.calling.fallback import counting
from sabir.calling.relay import Relay
from sabir.calling.stream import AsyncClosing, SyncClosing
from sabir.discovery.points import load_beside, load_point
from sabir.hooks.plugins import Hooks
from sabir.discovery.registry import split_model
from sabir.authoring.databases import REMEDY_OF_DAMAGE, describe_failure, hide_secrets, is_broken, make_private
from sabir.authoring.providers import PostingClient, PostingConnection, SDKProvider, packaged_models
from sabir.authoring.credentials import KeySource, find_credentials

__all__ = [  # noqa: RUF022
    "Access", "ApiKey", "ArgumentsRefused", "AsyncClosing", "AsyncWireResponse", "AtRest", "Binder", "BlockKind",
    "Bound", "CHOICES", "CallArguments", "Calls", "ClientConnection", "Connection", "Content", "Credential", "DEEPEST",
    "DEFAULT_MIMES", "DecodeScope", "Decoder", "Dialect", "Entry", "ErrorTable", "EventFrames", "FRAMES", "Failure",
    "Fields", "FinishReason", "Fold", "Framing", "Frozen", "FrozenDict", "History", "Hooks", "IdentifierRule",
    "InProcessConnection", "JSONObjectDocumentField", "JSONText", "JSONValue", "KINDS", "Kept", "KeySource",
    "KnownPart", "Leaf", "Library", "LossKind", "LossLog", "MediaRule", "Messages", "Modality", "NonEmpty",
    "OptionCall", "OptionLike", "OwnConnection", "Part", "Performer", "PostingClient", "PostingConnection", "Profile",
    "Provided", "Provider", "REMEDY_OF_DAMAGE", "RESERVED", "ReasoningEffort", "Relay", "ReplyBuilder", "RequestScope",
    "RoleHint", "Roles", "SABIR_API", "SCHEMES", "SDKProvider", "SHARED", "Script", "Sections", "Served",
    "ServerEvent", "ServerEventReader", "Side", "Splice", "Strict", "SyncClosing", "Tables", "Text", "TokenCount",
    "Turn", "TurnMaker", "TurnScope", "WIRE_SETTINGS", "WaitingCall", "WaitingConnection", "WireHead", "WireRequest",
    "WireResponse", "arguments_text", "arguments_value", "as_messages", "as_options", "assemble", "at_depth",
    "blaming", "block_delta", "build", "by_codes", "by_status", "by_words", "call_state", "called", "check_runs",
    "check_url", "counting", "current_depth", "data_url", "data_url_base64", "data_url_bytes", "data_url_type",
    "declare", "decode_call", "decode_json", "deeper", "describe", "describe_failure", "described", "encode_json",
    "error_text", "expect", "expect_name", "fields", "file_url", "find_credentials", "first_count", "first_paragraph",
    "form_of", "freeze", "hide_secrets", "hints_of", "is_asynchronous", "is_broken", "is_empty", "is_retryable",
    "items", "kept", "left_over", "listed", "load_as", "load_beside", "load_point", "lose", "make_data_url",
    "make_private", "medium", "mime_type", "name_choice", "name_kind", "neutral_fields", "new_ids", "not_offered",
    "object_view", "one_line", "packaged_models", "pair", "parse_json", "printable", "read_count", "read_data_url",
    "read_endpoint", "read_function", "read_hints", "read_object", "read_text", "read_vendor", "refuse",
    "refuse_misnamed", "refuse_setting", "result_text", "result_value", "scheme_of", "send", "shorten", "side_of",
    "sniff_mime", "spelled_for_url", "split_model", "split_provider_file", "stand_in", "start_thread", "state_of",
    "take_setting", "text", "text_of", "type_parameters", "unwrap", "usage_of", "values_of", "with_hints", "without",
]  # fmt: skip
