"""A failure that was recorded or sent says what it was."""

import pickle

import pytest
from sabir import OptionFailed
from sabir.errors import RateLimited
from sabir_runtime import PolicyFailed
from sabir_runtime.failures import Failure


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


def test_a_failure_crosses_processes_with_its_causes() -> None:
    """As sabir's errors do."""
    error = LookupError("no page")
    error.__cause__ = OSError("disk gone")
    again = pickle.loads(pickle.dumps(PolicyFailed.of(error)))

    assert isinstance(again, LookupError)
    assert isinstance(again, PolicyFailed)
    assert (str(again), str(again.__cause__), again.error_type) == ("no page", "disk gone", "LookupError")


def test_causes_of_causes_end() -> None:
    """Also where they go round."""
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one

    assert str(PolicyFailed.of(one)) == "one"


def test_what_names_no_class_that_is_known_everywhere_is_a_failure_and_no_more() -> None:
    """From afar may come any name, of a function or of what would end the process; none is looked for elsewhere."""
    for known_as in ("print", "KeyboardInterrupt", "SystemExit", "MemoryError", "ExceptionGroup", "os.PathLike", "Own"):
        assert type(Failure(type="Own", message="x", known_as=known_as).error()) is PolicyFailed
