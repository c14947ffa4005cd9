"""Every error that sabir raises, as one tree.

    SabirError
    ├── HistoryInvalid · SettingsInvalid · OptionInvalid · MediaRefused · Misnamed · BuilderError · NotJSON
    ├── OptionFailed                     what an option's function raises to say its error result itself
    ├── OutsideEvaluation · CallsTooDeep no run to ask, too many within each other
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
        └── NoneAnswered                 carries what each member of a fallback said

Each message is one line: the offender, what was expected, the remedy. What it quotes steers no terminal: control
characters are shown, not obeyed. Those that are also ValueErrors can be raised by validators.
"""

from sabir.base.errors import (
    BuilderError,
    CallsTooDeep,
    DialectMissing,
    HistoryInvalid,
    MediaRefused,
    Misnamed,
    NotJSON,
    OptionFailed,
    OptionInvalid,
    OutsideEvaluation,
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
from sabir.base.losses import (
    RenderingRefused,
)
from sabir.vocabulary.reply import (
    NoneAnswered,
    OutputError,
    OutputInvalid,
    OutputRefused,
    OutputTruncated,
    StreamBroken,
)

__all__ = [
    "AuthenticationFailed",
    "BuilderError",
    "CallError",
    "CallTimedOut",
    "CallsTooDeep",
    "ConnectionFailed",
    "ContentFiltered",
    "ContextTooLong",
    "CredentialsMissing",
    "DialectMissing",
    "HistoryInvalid",
    "InvalidRequest",
    "MediaRefused",
    "Misnamed",
    "ModelNotFound",
    "NoneAnswered",
    "NotJSON",
    "OptionFailed",
    "OptionInvalid",
    "OutputError",
    "OutputInvalid",
    "OutputRefused",
    "OutputTruncated",
    "OutsideEvaluation",
    "Overloaded",
    "PermissionDenied",
    "PluginConflict",
    "PluginError",
    "ProviderBroken",
    "ProviderMissing",
    "QuotaExceeded",
    "RateLimited",
    "RenderingRefused",
    "RequestTooLarge",
    "ResponseInvalid",
    "SabirError",
    "ServerFailed",
    "SettingsInvalid",
    "StreamBroken",
    "Unavailable",
]
