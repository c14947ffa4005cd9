"""The errors of the package sabir, as one tree.

    SabirError
    ├── HistoryInvalid · SettingsInvalid · OptionInvalid · MediaRefused · WrongWord · BuilderError · NotJSON
    ├── OptionFailed                     raise it in an option's function to choose the error result
    ├── OutsideEvaluation · CallsTooDeep no option is running; calls are nested too deeply
    ├── PluginError
    │   ├── ProviderMissing · DialectMissing · ProviderBroken · PluginConflict
    ├── RenderingRefused                 `losses`: those that led to the refusal
    ├── OutputError                      `reply`: the reply that does not fit
    │   ├── OutputInvalid · OutputRefused · OutputTruncated
    └── CallError                        retryable, retry_after, request_id, status, provider
        ├── CredentialsMissing · AuthenticationFailed · PermissionDenied · ModelNotFound
        ├── InvalidRequest · ContextTooLong · RequestTooLarge · ContentFiltered
        ├── QuotaExceeded · RateLimited · Overloaded · Unavailable · ServerFailed
        ├── ConnectionFailed · CallTimedOut
        ├── ResponseInvalid
        │   └── StreamBroken             `partial`: the reply as far as it arrived
        └── AllFailed                    `errors`: the error of each member of a fallback

Each message is one line: the problem, and usually what was expected and the remedy. Control characters are replaced by
visible signs, so they cannot control a terminal. Some errors are also ValueErrors, so validators may raise them.
"""

# isort: skip_file
from sabir.base.errors import BuilderError, CallsTooDeep, DialectMissing, HistoryInvalid, MediaRefused, WrongWord
from sabir.base.errors import NotJSON, OptionFailed, OptionInvalid, OutsideEvaluation, PluginConflict, PluginError
from sabir.base.errors import ProviderBroken, ProviderMissing, SabirError, SettingsInvalid
from sabir.base.failures import AuthenticationFailed, CallError, CallTimedOut, ConnectionFailed, ContentFiltered
from sabir.base.failures import ContextTooLong, CredentialsMissing, InvalidRequest, ModelNotFound, Overloaded
from sabir.base.failures import PermissionDenied, QuotaExceeded, RateLimited, RenderingRefused, RequestTooLarge
from sabir.base.failures import ResponseInvalid, ServerFailed, Unavailable
from sabir.vocabulary.reply import AllFailed, OutputError, OutputInvalid, OutputRefused, OutputTruncated
from sabir.vocabulary.reply import StreamBroken

__all__ = [
    "AllFailed", "AuthenticationFailed", "BuilderError", "CallError", "CallTimedOut", "CallsTooDeep",
    "ConnectionFailed", "ContentFiltered", "ContextTooLong", "CredentialsMissing", "DialectMissing", "HistoryInvalid",
    "InvalidRequest", "MediaRefused", "ModelNotFound", "NotJSON", "OptionFailed", "OptionInvalid", "OutputError",
    "OutputInvalid", "OutputRefused", "OutputTruncated", "OutsideEvaluation", "Overloaded", "PermissionDenied",
    "PluginConflict", "PluginError", "ProviderBroken", "ProviderMissing", "QuotaExceeded", "RateLimited",
    "RenderingRefused", "RequestTooLarge", "ResponseInvalid", "SabirError", "ServerFailed", "SettingsInvalid",
    "StreamBroken", "Unavailable", "WrongWord",
]  # fmt: skip
