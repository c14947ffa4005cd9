"""A failure that was recorded or sent says what it was."""

import pickle
from collections.abc import Iterator

import pytest
from sabir import OptionFailed
from sabir.errors import RateLimited
from sabir_runtime import PolicyFailed
from sabir_runtime.failures import MOST_CHARACTERS, MOST_FAILURES, StoredFailure, failure_of


class Unsure(Exception):
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
    failed = PolicyFailed.from_exception(error)

    assert (failed.error_type, failed.error_message, failed.retryable) == expected


def test_causes_of_causes_end() -> None:
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one

    assert str(PolicyFailed.from_exception(one)) == "one"


@pytest.mark.parametrize("is_shared", [True, False])
def test_a_tree_of_failures_is_bounded_and_what_is_left_out_is_counted(is_shared: bool) -> None:
    """Where members are shared it would have 2^16 leaves, else 5,000 with a long text each."""
    group = ExceptionGroup("g", [ValueError("x" * 10_000)] * (2 if is_shared else 5_000))
    for _ in range(15 if is_shared else 0):
        group = ExceptionGroup("g", [group, group])
    told = failure_of(group)

    assert len(list(all_of(told))) == MOST_FAILURES
    assert len(told.model_dump_json()) < 20 * MOST_CHARACTERS
    assert is_shared or told.message == f"g … and {5_000 - MOST_FAILURES + 1} more"


def all_of(failure: StoredFailure) -> Iterator[StoredFailure]:
    """It, its causes and its members."""
    yield failure
    for each in (*failure.members, *filter(None, [failure.cause])):
        yield from all_of(each)


def test_what_cannot_tell_of_itself_is_told_all_the_same() -> None:
    class Silent(SystemExit):
        def __repr__(self) -> str:
            raise ValueError("no text")

        __str__ = __repr__

    assert str(PolicyFailed.from_exception(Silent())) == "Silent: the policy raised Silent"
    assert str(PolicyFailed.from_exception(type("", (Exception,), {})("no disk"))) == "Exception: no disk"


def test_an_error_of_pythons_own_keeps_its_plain_arguments_and_attributes() -> None:
    key, file = (
        PolicyFailed.from_exception(KeyError("a")),
        PolicyFailed.from_exception(FileNotFoundError(2, "No such file", "town.txt")),
    )
    again = PolicyFailed.from_exception(pickle.loads(pickle.dumps(file)))
    with pytest.raises(SyntaxError) as syntax:
        compile("a b", "town.py", "exec")

    assert key.args == ("a",)
    assert isinstance(again, FileNotFoundError)
    assert (again.errno, again.strerror, again.filename) == (2, "No such file", "town.txt")
    assert PolicyFailed.from_exception(syntax.value).msg == syntax.value.msg  # type: ignore[attr-defined]
    for kept_nowhere in (KeyError(("a",)), KeyError(float("nan")), KeyError("\ud800"), KeyError("a" * 10_001)):
        assert PolicyFailed.from_exception(kept_nowhere).args == (
            PolicyFailed.from_exception(kept_nowhere).error_message,
        )
    assert PolicyFailed.from_exception(OptionFailed("quota", "try tomorrow")).args == ("try tomorrow",)


def test_what_names_no_class_that_is_known_everywhere_is_a_failure_and_no_more() -> None:
    """From afar may come any name, of a function or of what would end the process; none is looked for elsewhere."""
    for known_as in ("print", "KeyboardInterrupt", "SystemExit", "MemoryError", "ExceptionGroup", "os.PathLike", "Own"):
        assert type(StoredFailure(type="Own", message="x", known_as=known_as).error()) is PolicyFailed
