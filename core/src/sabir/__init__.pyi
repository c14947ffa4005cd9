"""The public names as type checkers and editors read them; `__init__.py` loads each at its first use."""

from sabir.adapter import Adapter, ModelAdapter, adapter
from sabir.answers import answer, answer_sync, unanswered
from sabir.builders import MessageBuilder, OptionResultBuilder
from sabir.constructors import assistant, audio, document, image, system, user, video
from sabir.contracts import SABIR_API, FetchedMedia, Fetcher, TokenCount
from sabir.decoded import DecodedHistory
from sabir.errors import (
    AuthenticationFailed,
    BuilderError,
    CallError,
    CallTimedOut,
    ConnectionFailed,
    ContentFiltered,
    ContextTooLong,
    CredentialsMissing,
    DialectMissing,
    HistoryInvalid,
    InvalidRequest,
    MediaRefused,
    Misnamed,
    ModelNotFound,
    NoneAnswered,
    NotJSON,
    OptionFailed,
    OptionInvalid,
    OutputError,
    OutputInvalid,
    OutputRefused,
    OutputTruncated,
    Overloaded,
    PermissionDenied,
    PluginConflict,
    PluginError,
    ProviderBroken,
    ProviderMissing,
    QuotaExceeded,
    RateLimited,
    RenderingRefused,
    RequestTooLarge,
    ResponseInvalid,
    SabirError,
    ServerFailed,
    SettingsInvalid,
    StreamBroken,
    Unavailable,
)
from sabir.events import BlockDelta, BlockEnd, BlockStart, ReplyEnd, ReplyStart, StreamEvent
from sabir.fallback import MOVES_ON, FallbackAdapter, fallback
from sabir.history import dumps, dumps_lines, load, loads, save, schema
from sabir.hookspecs import hookimpl
from sabir.losses import Loss
from sabir.messages import (
    RUNTIME,
    Message,
    OptionCallPayload,
    OptionResultPayload,
    Origin,
    PartsPayload,
    UnknownPayload,
)
from sabir.options import Option, option
from sabir.parts import Citation, MediaPart, OpaquePart, ReasoningPart, RefusalPart, TextPart, UnknownPart
from sabir.pure import PureDialect, dialect
from sabir.registry import ProviderStatus, commands, models, provider, providers, register, unregister
from sabir.rendering import Rendering
from sabir.reply import Alternative, Passed, Reply, Usage
from sabir.scope import ModelInfo, Target
from sabir.settings import Bounds, ResponseFormat, RetryPolicy, Settings
from sabir.steps import Step, group_steps
from sabir.stream import ReplyStream, SyncReplyStream

__all__ = [
    "MOVES_ON", "RUNTIME", "SABIR_API", "Adapter", "Alternative", "AuthenticationFailed", "BlockDelta", "BlockEnd",
    "BlockStart", "Bounds", "BuilderError", "CallError", "CallTimedOut", "Citation", "ConnectionFailed",
    "ContentFiltered", "ContextTooLong", "CredentialsMissing", "DecodedHistory", "DialectMissing", "FallbackAdapter",
    "FetchedMedia", "Fetcher", "HistoryInvalid", "InvalidRequest", "Loss", "MediaPart", "MediaRefused", "Message",
    "MessageBuilder", "Misnamed", "ModelAdapter", "ModelInfo", "ModelNotFound", "NoneAnswered", "NotJSON",
    "OpaquePart", "Option", "OptionCallPayload", "OptionFailed", "OptionInvalid", "OptionResultBuilder",
    "OptionResultPayload", "Origin", "OutputError", "OutputInvalid", "OutputRefused", "OutputTruncated", "Overloaded",
    "PartsPayload", "Passed", "PermissionDenied", "PluginConflict", "PluginError", "ProviderBroken",
    "ProviderMissing", "ProviderStatus", "PureDialect", "QuotaExceeded", "RateLimited", "ReasoningPart",
    "RefusalPart", "Rendering", "RenderingRefused", "Reply", "ReplyEnd", "ReplyStart", "ReplyStream",
    "RequestTooLarge", "ResponseFormat", "ResponseInvalid", "RetryPolicy", "SabirError", "ServerFailed", "Settings",
    "SettingsInvalid", "Step", "StreamBroken", "StreamEvent", "SyncReplyStream", "Target", "TextPart", "TokenCount",
    "Unavailable", "UnknownPart", "UnknownPayload", "Usage", "adapter", "answer", "answer_sync", "assistant",
    "audio", "commands", "dialect", "document", "dumps", "dumps_lines", "fallback", "group_steps", "hookimpl",
    "image", "load", "loads", "models", "option", "provider", "providers", "register", "save", "schema", "system",
    "unanswered", "unregister", "user", "video",
]  # fmt: skip
