"""A failure that was recorded or sent says what it was."""

import pytest
from sabir import OptionFailed
from sabir.errors import RateLimited
from sabir_runtime import PolicyFailed


class Unsure(Exception):
    """Cannot say whether it may pass."""

    @property
    def retryable(self) -> bool:
        raise LookupError("unknown")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (LookupError("no disk"), ("LookupError", "no disk", False)),
        (LookupError(), ("LookupError", "LookupError", False)),
        (RateLimited("slow down", provider="acme"), ("RateLimited", "slow down", True)),
        (OptionFailed("quota", "try tomorrow", retryable=True), ("quota", "try tomorrow", True)),
        (PolicyFailed("LookupError", "no disk"), ("LookupError", "no disk", False)),
        (Unsure("slow down"), ("Unsure", "slow down", False)),
    ],
    ids=["exception", "silent", "provider", "own words", "from afar", "unsure"],
)
def test_a_failure_keeps_class_words_and_whether_to_try_again(
    error: Exception, expected: tuple[str, str, bool]
) -> None:
    """RN-31: also over two hops."""
    failed = PolicyFailed.of(error)

    assert (failed.error_type, failed.error_message, failed.retryable) == expected
