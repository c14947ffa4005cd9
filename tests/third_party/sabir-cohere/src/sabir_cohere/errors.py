"""Cohere's errors: what each status and each text is for a caller. https://docs.cohere.com/reference/errors

The vendor has no codes. Errors of the HTTP client need no table of this wire: `ErrorTable` knows them.
"""

from sabir.authoring import ErrorRule, ErrorTable
from sabir.errors import ConnectionFailed, ContentFiltered, ContextTooLong, InvalidRequest, QuotaExceeded

_WORDS = ErrorRule.by_words(
    (r"max tokens must be", InvalidRequest),
    (r"too many tokens", ContextTooLong),
    (r"limited to [\d,]+ api calls / month", QuotaExceeded),
    at=(400, 422, 429),
)
ERRORS = ErrorTable(rules=(_WORDS, ErrorRule.by_status({498: ContentFiltered, 499: ConnectionFailed})))
"""The two statuses are of this vendor alone: a text holds a token that is not allowed; the request was cancelled."""
