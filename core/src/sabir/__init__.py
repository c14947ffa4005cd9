"""One typed message vocabulary; every provider a plugin.

    llm = sabir.adapter("provider:model")
    reply = llm.complete_sync([sabir.system("Be brief."), sabir.user("Hello!")])

The names of this module are the public surface; the reference is in docs/reference. Each is loaded at its first use,
with the module that defines it: `import sabir` loads none of them, and a program pays for those that it names.
"""
# ruff: noqa: I001 - isort would write one statement for each name that is handed on

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what type checkers and editors read; what runs is below
    from sabir.adapter import Adapter as Adapter, ModelAdapter as ModelAdapter, adapter as adapter
    from sabir.answers import answer as answer, answer_sync as answer_sync, unanswered as unanswered
    from sabir.builders import MessageBuilder as MessageBuilder, OptionResultBuilder as OptionResultBuilder
    from sabir.constructors import (
        assistant as assistant,
        audio as audio,
        document as document,
        image as image,
        system as system,
        user as user,
        video as video,
    )
    from sabir.contracts import (
        SABIR_API as SABIR_API,
        FetchedMedia as FetchedMedia,
        Fetcher as Fetcher,
        TokenCount as TokenCount,
    )
    from sabir.decoded import DecodedHistory as DecodedHistory
    from sabir.errors import (
        AuthenticationFailed as AuthenticationFailed,
        BuilderError as BuilderError,
        CallError as CallError,
        CallTimedOut as CallTimedOut,
        ConnectionFailed as ConnectionFailed,
        ContentFiltered as ContentFiltered,
        ContextTooLong as ContextTooLong,
        CredentialsMissing as CredentialsMissing,
        DialectMissing as DialectMissing,
        HistoryInvalid as HistoryInvalid,
        InvalidRequest as InvalidRequest,
        MediaRefused as MediaRefused,
        Misnamed as Misnamed,
        ModelNotFound as ModelNotFound,
        NoneAnswered as NoneAnswered,
        NotJSON as NotJSON,
        OptionFailed as OptionFailed,
        OptionInvalid as OptionInvalid,
        OutputError as OutputError,
        OutputInvalid as OutputInvalid,
        OutputRefused as OutputRefused,
        OutputTruncated as OutputTruncated,
        Overloaded as Overloaded,
        PermissionDenied as PermissionDenied,
        PluginConflict as PluginConflict,
        PluginError as PluginError,
        ProviderBroken as ProviderBroken,
        ProviderMissing as ProviderMissing,
        QuotaExceeded as QuotaExceeded,
        RateLimited as RateLimited,
        RenderingRefused as RenderingRefused,
        RequestTooLarge as RequestTooLarge,
        ResponseInvalid as ResponseInvalid,
        SabirError as SabirError,
        ServerFailed as ServerFailed,
        SettingsInvalid as SettingsInvalid,
        StreamBroken as StreamBroken,
        Unavailable as Unavailable,
    )
    from sabir.events import (
        BlockDelta as BlockDelta,
        BlockEnd as BlockEnd,
        BlockStart as BlockStart,
        ReplyEnd as ReplyEnd,
        ReplyStart as ReplyStart,
        StreamEvent as StreamEvent,
    )
    from sabir.fallback import MOVES_ON as MOVES_ON, FallbackAdapter as FallbackAdapter, fallback as fallback
    from sabir.history import (
        dumps as dumps,
        dumps_lines as dumps_lines,
        load as load,
        loads as loads,
        save as save,
        schema as schema,
    )
    from sabir.hookspecs import hookimpl as hookimpl
    from sabir.losses import Loss as Loss
    from sabir.messages import (
        RUNTIME as RUNTIME,
        Message as Message,
        OptionCallPayload as OptionCallPayload,
        OptionResultPayload as OptionResultPayload,
        Origin as Origin,
        PartsPayload as PartsPayload,
    )
    from sabir.options import Option as Option, option as option
    from sabir.parts import (
        Citation as Citation,
        MediaPart as MediaPart,
        OpaquePart as OpaquePart,
        ReasoningPart as ReasoningPart,
        RefusalPart as RefusalPart,
        TextPart as TextPart,
        UnknownPart as UnknownPart,
    )
    from sabir.pure import PureDialect as PureDialect, dialect as dialect
    from sabir.registry import (
        ProviderStatus as ProviderStatus,
        commands as commands,
        models as models,
        provider as provider,
        providers as providers,
        register as register,
        unregister as unregister,
    )
    from sabir.rendering import Rendering as Rendering
    from sabir.reply import Alternative as Alternative, Passed as Passed, Reply as Reply, Usage as Usage
    from sabir.scope import ModelInfo as ModelInfo, Target as Target
    from sabir.settings import ResponseFormat as ResponseFormat, RetryPolicy as RetryPolicy, Settings as Settings
    from sabir.steps import Step as Step, group_steps as group_steps
    from sabir.stream import ReplyStream as ReplyStream, SyncReplyStream as SyncReplyStream

_NAMES = {
    "adapter": "Adapter ModelAdapter adapter",
    "answers": "answer answer_sync unanswered",
    "builders": "MessageBuilder OptionResultBuilder",
    "constructors": "assistant audio document image system user video",
    "contracts": "SABIR_API FetchedMedia Fetcher TokenCount",
    "decoded": "DecodedHistory",
    "errors": (
        "AuthenticationFailed BuilderError CallError CallTimedOut ConnectionFailed ContentFiltered "
        "ContextTooLong CredentialsMissing DialectMissing HistoryInvalid InvalidRequest MediaRefused Misnamed "
        "ModelNotFound NoneAnswered NotJSON OptionFailed OptionInvalid OutputError OutputInvalid "
        "OutputRefused OutputTruncated Overloaded PermissionDenied PluginConflict PluginError ProviderBroken "
        "ProviderMissing QuotaExceeded RateLimited RenderingRefused RequestTooLarge ResponseInvalid "
        "SabirError ServerFailed SettingsInvalid StreamBroken Unavailable"
    ),
    "events": "BlockDelta BlockEnd BlockStart ReplyEnd ReplyStart StreamEvent",
    "fallback": "MOVES_ON FallbackAdapter fallback",
    "history": "dumps dumps_lines load loads save schema",
    "hookspecs": "hookimpl",
    "losses": "Loss",
    "messages": "RUNTIME Message OptionCallPayload OptionResultPayload Origin PartsPayload",
    "options": "Option option",
    "parts": "Citation MediaPart OpaquePart ReasoningPart RefusalPart TextPart UnknownPart",
    "pure": "PureDialect dialect",
    "registry": "ProviderStatus commands models provider providers register unregister",
    "rendering": "Rendering",
    "reply": "Alternative Passed Reply Usage",
    "scope": "ModelInfo Target",
    "settings": "ResponseFormat RetryPolicy Settings",
    "steps": "Step group_steps",
    "stream": "ReplyStream SyncReplyStream",
}
"""The public names by the module that defines them."""
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}


class _Package(ModuleType):
    """This package. `sabir.adapter` is the function, also once the module of that name is loaded."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _MODULE_OF and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


if not TYPE_CHECKING:  # a checker that saw these would take any name for one of sabir's
    __all__ = sorted(_MODULE_OF, key=lambda name: (not name.isupper(), name))  # noqa: PLE0605
    sys.modules[__name__].__class__ = _Package

    def __getattr__(name):
        if name in _MODULE_OF:
            found = getattr(import_module(f"sabir.{_MODULE_OF[name]}"), name)
            globals()[name] = found
            return found
        try:
            return import_module(f"sabir.{name}")
        except ModuleNotFoundError as error:
            raise AttributeError(f"module 'sabir' has no attribute {name!r}") from error

    def __dir__():
        return sorted({*globals(), *__all__})
