"""The signature of a request.

    x-lantern-date: Fri, 27 Nov 2026 18:30:00 GMT
    authorization: Lantern <key_id>:<HMAC-SHA256 of "<key_id>\\n<date>\\n<body>" with the secret, in hexadecimal digits>

The service refuses a date that is more than five minutes old, so each attempt is signed when it is sent.
"""

import hashlib
import hmac
from collections.abc import Callable
from email.utils import formatdate
from typing import Any

DATE = "x-lantern-date"


def signature(key_id: str, secret: str, date: str, body: bytes) -> str:
    """Return the signature of a body that is sent at this date, as hexadecimal digits."""
    signed = f"{key_id}\n{date}\n".encode() + body
    return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def signer(key_id: str, secret: str) -> Callable[[Any], Any]:
    """Return a function that signs a request of httpx2. Pass it as `auth=` to a client of your own."""

    def sign(request: Any) -> Any:
        date = formatdate(usegmt=True)
        request.headers[DATE] = date
        request.headers["Authorization"] = f"Lantern {key_id}:{signature(key_id, secret, date, request.content)}"
        return request

    return sign
