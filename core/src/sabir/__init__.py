"""One typed message vocabulary; every provider a plugin.

    llm = sabir.adapter("provider:model")
    reply = llm.complete_sync([sabir.system("Be brief."), sabir.user("Hello!")])

The names of this module are the public surface; the reference is in docs/reference. Each is loaded at its first use,
with the module that defines it: `import sabir` loads none of them, and a program pays for those that it names. Type
checkers and editors read them in `__init__.pyi`.
"""

from importlib import import_module

_NAMES = {
    "base.errors": (
        "BuilderError DialectMissing HistoryInvalid MediaRefused Misnamed NotJSON OptionFailed OptionInvalid "
        "PluginConflict PluginError ProviderBroken ProviderMissing SabirError SettingsInvalid"
    ),
    "base.failures": (
        "AuthenticationFailed CallError CallTimedOut ConnectionFailed ContentFiltered ContextTooLong "
        "CredentialsMissing InvalidRequest ModelNotFound Overloaded PermissionDenied QuotaExceeded "
        "RateLimited RequestTooLarge ResponseInvalid ServerFailed Unavailable"
    ),
    "base.losses": "RenderingRefused Loss",
    "calling.adapter": "ModelAdapter adapter",
    "calling.calls": "Adapter",
    "calling.fallback": "MOVES_ON FallbackAdapter fallback",
    "calling.pure": "PureDialect dialect",
    "calling.stream": "ReplyStream SyncReplyStream",
    "contract.protocols": "SABIR_API FetchedMedia Fetcher TokenCount DecodedHistory Rendering",
    "discovery.registry": "ProviderStatus commands models provider providers register unregister",
    "hooks.builders": "MessageBuilder OptionResultBuilder Step group_steps",
    "hooks.specs": "hookimpl",
    "options.answers": "answer answer_sync unanswered",
    "options.option": "Option option",
    "vocabulary.constructors": "assistant audio document image system user video",
    "vocabulary.history": "dumps dumps_lines load loads save schema",
    "vocabulary.messages": "RUNTIME Message OptionCallPayload OptionResultPayload Origin PartsPayload UnknownPayload",
    "vocabulary.parts": "Citation MediaPart OpaquePart ReasoningPart RefusalPart TextPart UnknownPart",
    "vocabulary.reply": (
        "NoneAnswered OutputError OutputInvalid OutputRefused OutputTruncated StreamBroken BlockDelta "
        "BlockEnd BlockStart ReplyEnd ReplyStart StreamEvent Alternative Passed Reply Usage"
    ),
    "vocabulary.settings": "Bounds ResponseFormat RetryPolicy Settings",
    "vocabulary.target": "ModelInfo Target",
}
"""The public names by the module that defines them."""
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}


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
