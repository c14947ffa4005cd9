"""What must not stay in a recording: taken out before it is written, and looked for afterwards.

scrubber   takes out what is known to be secret, by its name or by its place        spellings   each way to write it
leaks      finds what looks like a secret, in what was written
"""

from sabir_testing.scrubbing.leaks import Allowed, Leak
from sabir_testing.scrubbing.scrubber import (
    HOST,
    KEPT_QUERY,
    KEPT_REQUEST_HEADERS,
    KEPT_RESPONSE_HEADERS,
    PLACEHOLDER,
    SECRET_FIELDS,
    Scrubbing,
)

__all__ = [
    "HOST", "KEPT_QUERY", "KEPT_REQUEST_HEADERS", "KEPT_RESPONSE_HEADERS", "PLACEHOLDER", "SECRET_FIELDS", "Allowed",
    "Leak", "Scrubbing",
]  # fmt: skip
