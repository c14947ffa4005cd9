"""One typed message vocabulary; every provider a plugin.

    llm = sabir.adapter("provider:model")
    reply = llm.complete_sync([sabir.system("Be brief."), sabir.user("Hello!")])

The names of this module are the public surface; the reference is in docs/reference. Each is loaded at its first use,
with the module that defines it: `import sabir` loads none of them, and a program pays for those that it names. Type
checkers and editors read them in `__init__.pyi`.
"""

import sys
from importlib import import_module
from types import ModuleType

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
    "messages": "RUNTIME Message OptionCallPayload OptionResultPayload Origin PartsPayload UnknownPayload",
    "options": "Option option",
    "parts": "Citation MediaPart OpaquePart ReasoningPart RefusalPart TextPart UnknownPart",
    "pure": "PureDialect dialect",
    "registry": "ProviderStatus commands models provider providers register unregister",
    "rendering": "Rendering",
    "reply": "Alternative Passed Reply Usage",
    "scope": "ModelInfo Target",
    "settings": "Bounds ResponseFormat RetryPolicy Settings",
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


def __getattr__(name: str) -> object:
    """A public name, loaded with its module; or a module of the package."""
    if name in _MODULE_OF:
        found: object = getattr(import_module(f"sabir.{_MODULE_OF[name]}"), name)
        globals()[name] = found
        return found
    try:
        return import_module(f"sabir.{name}")
    except ModuleNotFoundError as error:
        raise AttributeError(f"module 'sabir' has no attribute {name!r}") from error


def __dir__() -> list[str]:
    """What is loaded, and every public name."""
    return sorted({*globals(), *_MODULE_OF})


__all__ = sorted(_MODULE_OF, key=lambda name: (not name.isupper(), name))  # noqa: PLE0605
sys.modules[__name__].__class__ = _Package
