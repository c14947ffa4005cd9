"""The public names as type checkers and editors read them; `__init__.py` loads each at its first use."""

# isort: skip_file
from collections.abc import Callable, Mapping

from sabir import authoring as authoring
from sabir import errors as errors
from sabir.base.errors import OptionFailed, ProviderMissing, SabirError, SettingsInvalid
from sabir.base.failures import CallError, CredentialsMissing, Loss, RateLimited, RenderingRefused
from sabir.calling.adapter import ModelAdapter, adapter
from sabir.calling.calls import Adapter
from sabir.calling.fallback import FALLBACK_ON, FallbackAdapter, fallback, fewest_losses
from sabir.calling.pure import PureDialect, dialect
from sabir.calling.stream import ReplyStream, SyncReplyStream
from sabir.contract.dialect import DecodedHistory, Rendering
from sabir.contract.provider import ApiKey
from sabir.discovery import ProviderStatus, commands, models, provider, providers, register, unregister
from sabir.hooks.builders import MessageBuilder, OptionResultBuilder, Step, group_steps
from sabir.hooks.specs import hookimpl
from sabir.options.execution import ToolContext
from sabir.options.native import NativeOption, code_execution, mcp_server, web_search
from sabir.options.option import Option, answer, answer_sync, option, unanswered
from sabir.vocabulary.constructors import assistant, audio, document, image, system, user, video
from sabir.vocabulary.history import dumps, dumps_lines, load, loads, save, schema
from sabir.vocabulary.messages import RUNTIME, Message, OptionCallPayload, OptionResultPayload, Origin, PartsPayload
from sabir.vocabulary.messages import UnknownPayload
from sabir.vocabulary.native import NativeCallPart, NativeReference, NativeResultPart
from sabir.vocabulary.parts import Citation, MediaPart, OpaquePart, ReasoningPart, RefusalPart, TextPart, UnknownPart
from sabir.vocabulary.reply import AllFailed, Alternative, BlockDelta, BlockEnd, BlockStart, FailedMember, OutputInvalid
from sabir.vocabulary.reply import Reply, ReplyEnd, ReplyStart, StreamBroken, StreamEvent, Usage
from sabir.vocabulary.models import ModelInfo
from sabir.vocabulary.settings import Bounds, ResponseFormat, RetryPolicy, Settings, Target

def _lazy_module(
    package: str, module_of: Mapping[str, str], *submodules: str
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]: ...

__all__ = [  # noqa: RUF022
    "Adapter", "AllFailed", "Alternative", "ApiKey", "BlockDelta", "BlockEnd", "BlockStart", "Bounds", "CallError",
    "Citation", "CredentialsMissing", "DecodedHistory", "FALLBACK_ON", "FailedMember", "FallbackAdapter", "Loss",
    "MediaPart", "Message", "MessageBuilder", "ModelAdapter", "ModelInfo", "NativeCallPart", "NativeOption",
    "NativeReference", "NativeResultPart", "OpaquePart", "Option", "OptionCallPayload", "OptionFailed",
    "OptionResultBuilder", "OptionResultPayload", "Origin", "OutputInvalid", "PartsPayload", "ProviderMissing",
    "ProviderStatus", "PureDialect", "RUNTIME", "RateLimited", "ReasoningPart", "RefusalPart", "Rendering",
    "RenderingRefused", "Reply", "ReplyEnd", "ReplyStart", "ReplyStream", "ResponseFormat", "RetryPolicy", "SabirError",
    "Settings", "SettingsInvalid", "Step", "StreamBroken", "StreamEvent", "SyncReplyStream", "Target", "TextPart",
    "ToolContext", "UnknownPart", "UnknownPayload", "Usage", "adapter", "answer", "answer_sync", "assistant", "audio",
    "code_execution", "commands", "dialect", "document", "dumps", "dumps_lines", "fallback", "fewest_losses",
    "group_steps", "hookimpl", "image", "load", "loads", "mcp_server", "models", "option", "provider", "providers",
    "register", "save", "schema", "system", "unanswered", "unregister", "user", "video", "web_search",
]  # fmt: skip
