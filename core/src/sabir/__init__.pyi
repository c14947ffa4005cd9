"""The public names as type checkers and editors read them; `__init__.py` loads each at its first use."""

from sabir.base.errors import (
    BuilderError,
    DialectMissing,
    HistoryInvalid,
    MediaRefused,
    Misnamed,
    NotJSON,
    OptionFailed,
    OptionInvalid,
    PluginConflict,
    PluginError,
    ProviderBroken,
    ProviderMissing,
    SabirError,
    SettingsInvalid,
)
from sabir.base.failures import (
    AuthenticationFailed,
    CallError,
    CallTimedOut,
    ConnectionFailed,
    ContentFiltered,
    ContextTooLong,
    CredentialsMissing,
    InvalidRequest,
    ModelNotFound,
    Overloaded,
    PermissionDenied,
    QuotaExceeded,
    RateLimited,
    RequestTooLarge,
    ResponseInvalid,
    ServerFailed,
    Unavailable,
)
from sabir.base.losses import Loss, RenderingRefused
from sabir.calling.adapter import ModelAdapter, adapter
from sabir.calling.calls import Adapter
from sabir.calling.fallback import MOVES_ON, FallbackAdapter, fallback
from sabir.calling.pure import PureDialect, dialect
from sabir.calling.stream import ReplyStream, SyncReplyStream
from sabir.contract.protocols import SABIR_API, DecodedHistory, FetchedMedia, Fetcher, Rendering, TokenCount
from sabir.discovery.registry import ProviderStatus, commands, models, provider, providers, register, unregister
from sabir.hooks.builders import MessageBuilder, OptionResultBuilder, Step, group_steps
from sabir.hooks.specs import hookimpl
from sabir.options.answers import answer, answer_sync, unanswered
from sabir.options.option import Option, option
from sabir.vocabulary.constructors import assistant, audio, document, image, system, user, video
from sabir.vocabulary.history import dumps, dumps_lines, load, loads, save, schema
from sabir.vocabulary.messages import (
    RUNTIME,
    Message,
    OptionCallPayload,
    OptionResultPayload,
    Origin,
    PartsPayload,
    UnknownPayload,
)
from sabir.vocabulary.parts import Citation, MediaPart, OpaquePart, ReasoningPart, RefusalPart, TextPart, UnknownPart
from sabir.vocabulary.reply import (
    Alternative,
    BlockDelta,
    BlockEnd,
    BlockStart,
    NoneAnswered,
    OutputError,
    OutputInvalid,
    OutputRefused,
    OutputTruncated,
    Passed,
    Reply,
    ReplyEnd,
    ReplyStart,
    StreamBroken,
    StreamEvent,
    Usage,
)
from sabir.vocabulary.settings import Bounds, ResponseFormat, RetryPolicy, Settings
from sabir.vocabulary.target import ModelInfo, Target

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
