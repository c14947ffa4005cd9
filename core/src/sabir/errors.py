"""Every error that sabir raises, as one tree.

    SabirError
    ├── HistoryInvalid · SettingsInvalid · OptionInvalid · MediaRefused · WrongWord · BuilderError · NotJSON
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
        └── AllFailed                    carries the error of each member of a fallback

Each message is one line: the offender, what was expected, the remedy. Control characters in quoted text are replaced by
visible signs, so that no terminal obeys them. Errors that are also ValueErrors can be raised by validators.
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
