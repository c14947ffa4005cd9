"""Stored requests: a dialect may read none; what the readers share is tested with each dialect's own."""

import pytest
from sabir.authoring.stored import ReadsNoRequests
from sabir.contract.scope import DecodeScope
from sabir.errors import HistoryInvalid
from sabir.vocabulary.target import Target

SCOPE = DecodeScope(Target(provider="acme", dialect="acme.wire", model="m"))


def test_a_dialect_that_reads_no_stored_requests_says_so() -> None:
    """By its name, and with what to keep instead."""
    with pytest.raises(HistoryInvalid, match=r"^acme\.wire reads no stored requests; keep histories"):
        ReadsNoRequests().decode_history(b"{}", SCOPE)
