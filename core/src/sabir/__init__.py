"""Send conversations to language models: one set of message types for all providers, which are plugins.

    llm = sabir.adapter("provider:model")
    reply = llm.complete_sync([sabir.system("Be brief."), sabir.user("Hello!")])

These names are the public API, and docs/reference describes them. `import sabir` is fast: each name is loaded at its
first use, together with the module that defines the name. Type checkers and editors read the names in `__init__.pyi`.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module

_NAMES = {
    "base.errors": "OptionFailed ProviderMissing SabirError SettingsInvalid",
    "base.failures": "CallError CredentialsMissing Loss RateLimited RenderingRefused",
    "calling.adapter": "ModelAdapter adapter",
    "calling.calls": "Adapter",
    "calling.fallback": "FALLBACK_ON FallbackAdapter fallback fewest_losses",
    "calling.pure": "PureDialect dialect",
    "calling.stream": "ReplyStream SyncReplyStream",
    "contract.dialect": "DecodedHistory Rendering",
    "contract.provider": "ApiKey",
    "discovery": "ProviderStatus commands models provider providers register unregister",
    "hooks.builders": "MessageBuilder OptionResultBuilder Step group_steps",
    "hooks.specs": "hookimpl",
    "options.execution": "ToolContext",
    "options.native": "NativeOption code_execution mcp_server web_search",
    "options.option": "Option answer answer_sync option unanswered",
    "vocabulary.constructors": "assistant audio document image system user video",
    "vocabulary.history": "dumps dumps_lines load loads save schema",
    "vocabulary.messages": "RUNTIME Message OptionCallPayload OptionResultPayload Origin PartsPayload UnknownPayload",
    "vocabulary.native": "NativeCallPart NativeReference NativeResultPart",
    "vocabulary.parts": "Citation MediaPart OpaquePart ReasoningPart RefusalPart TextPart UnknownPart",
    "vocabulary.reply": (
        "AllFailed Alternative BlockDelta BlockEnd BlockStart FailedMember OutputInvalid Reply ReplyEnd "
        "ReplyStart StreamBroken StreamEvent Usage"
    ),
    "vocabulary.models": "ModelInfo",
    "vocabulary.settings": "Bounds ResponseFormat RetryPolicy Settings Target",
}
"""The public names by the module that defines them."""
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}


def _lazy_module(
    package: str, module_of: Mapping[str, str], *submodules: str
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` for a package that loads each name at its first use.

    `submodules` are the package's public modules.
    """
    loaded = vars(sys.modules[package])

    def load_name(name: str) -> object:
        if name in module_of:
            loaded[name] = member = getattr(import_module(f"sabir.{module_of[name]}"), name)
            return member
        try:
            return import_module(f"{package}.{name}")
        except ModuleNotFoundError as error:
            unknown = AttributeError(f"module {package!r} has no attribute {name!r}")
            raise unknown from None if error.name == f"{package}.{name}" else error

    def all_names() -> list[str]:
        special = {name for name in loaded if name.startswith("__")} - {"__getattr__", "__dir__"}
        return sorted({*module_of, *submodules, *special})

    return load_name, all_names, sorted(module_of, key=lambda name: (not name.isupper(), name))


__getattr__, __dir__, __all__ = _lazy_module(__name__, _MODULE_OF, "authoring", "errors")
