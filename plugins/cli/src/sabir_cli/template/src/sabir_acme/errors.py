"""What Acme's failures are for a caller: its code decides, else the HTTP status.

    {"error": {"code": "too_long", "message": "…"}}        the body of a status ≥ 400, or an event of a stream

Change: the codes, by the page on which the vendor lists them. Where words or statuses say more than the codes, rules
`ErrorRule.by_words` and `.by_status` stand before or after: the first that matches counts.
"""

from sabir import RateLimited
from sabir.authoring import ErrorRule, ErrorTable
from sabir.errors import ContentFiltered, ContextTooLong, Overloaded, QuotaExceeded

CODES = {
    "too_long": ContextTooLong,
    "forbidden_topic": ContentFiltered,
    "no_credit": QuotaExceeded,
    "slow_down": RateLimited,
    "overloaded": Overloaded,
}
ERRORS = ErrorTable(rules=(ErrorRule.by_codes(CODES),))
