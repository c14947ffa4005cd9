"""The error table: Acme's error codes → sabir's error classes. An unknown code gets the class of the HTTP status.

    {"error": {"code": "too_long", "message": "…"}}        the body of a status ≥ 400, or an event of a stream

Change: the codes, from the vendor's list. If texts or statuses tell more than the codes, add rules with
`ErrorRule.by_words` and `ErrorRule.by_status`. The first rule that matches counts.
"""

from sabir.authoring import ErrorRule, ErrorTable
from sabir.errors import ContentFiltered, ContextTooLong, Overloaded, QuotaExceeded, RateLimited

CODES = {
    "too_long": ContextTooLong,
    "forbidden_topic": ContentFiltered,
    "no_credit": QuotaExceeded,
    "slow_down": RateLimited,
    "overloaded": Overloaded,
}
ERRORS = ErrorTable(rules=(ErrorRule.by_codes(CODES),))
