"""Every error that sabir raises, as one tree.

    SabirError
    ├── HistoryInvalid · SettingsInvalid · OptionInvalid · MediaRefused · Misnamed · BuilderError · NotJSON
    ├── OptionFailed                     raised by an option's function to choose its error result itself
    ├── OutsideEvaluation · CallsTooDeep no run whose context is asked for; evaluations nested too deep
    ├── PluginError
    │   ├── ProviderMissing · DialectMissing · ProviderBroken · PluginConflict
    ├── RenderingRefused                 strict: carries the losses
    ├── OutputError                      carry the reply
    │   ├── OutputInvalid · OutputRefused · OutputTruncated
    └── CallError                        retryable, retry_after, request_id, status, provider
        ├── CredentialsMissing · AuthenticationFailed · PermissionDenied · ModelNotFound
        ├── InvalidRequest · ContextTooLong · RequestTooLarge · ContentFiltered
        ├── QuotaExceeded · RateLimited · Overloaded · Unavailable · ServerFailed
        ├── ConnectionFailed · CallTimedOut
        ├── ResponseInvalid
        │   └── StreamBroken             carries the partial reply
        └── NoneAnswered                 carries the error of each member of a fallback

Each message is one line: the offender, what was expected, the remedy. Control characters in quoted text are replaced by
visible signs, so that no terminal obeys them. Errors that are also ValueErrors can be raised by validators.
"""

# ruff: noqa: I001, PLC0414, PLE0605 — a name imported as itself is exported
from sabir.base.errors import (
    BuilderError as BuilderError,
    CallsTooDeep as CallsTooDeep,
    DialectMissing as DialectMissing,
    HistoryInvalid as HistoryInvalid,
    MediaRefused as MediaRefused,
    Misnamed as Misnamed,
    NotJSON as NotJSON,
    OptionFailed as OptionFailed,
    OptionInvalid as OptionInvalid,
    OutsideEvaluation as OutsideEvaluation,
    PluginConflict as PluginConflict,
    PluginError as PluginError,
    ProviderBroken as ProviderBroken,
    ProviderMissing as ProviderMissing,
    SabirError as SabirError,
    SettingsInvalid as SettingsInvalid,
)
from sabir.base.failures import (
    AuthenticationFailed as AuthenticationFailed,
    CallError as CallError,
    CallTimedOut as CallTimedOut,
    ConnectionFailed as ConnectionFailed,
    ContentFiltered as ContentFiltered,
    ContextTooLong as ContextTooLong,
    CredentialsMissing as CredentialsMissing,
    InvalidRequest as InvalidRequest,
    ModelNotFound as ModelNotFound,
    Overloaded as Overloaded,
    PermissionDenied as PermissionDenied,
    QuotaExceeded as QuotaExceeded,
    RateLimited as RateLimited,
    RequestTooLarge as RequestTooLarge,
    ResponseInvalid as ResponseInvalid,
    ServerFailed as ServerFailed,
    Unavailable as Unavailable,
)
from sabir.base.failures import RenderingRefused as RenderingRefused
from sabir.vocabulary.reply import (
    NoneAnswered as NoneAnswered,
    OutputError as OutputError,
    OutputInvalid as OutputInvalid,
    OutputRefused as OutputRefused,
    OutputTruncated as OutputTruncated,
    StreamBroken as StreamBroken,
)

__all__ = sorted(name for name in dir() if name[0].isupper())
