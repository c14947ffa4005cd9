"""What comes through JSON as another value is told from what does not."""

from collections import deque
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as some
from pydantic import BaseModel, Field, PrivateAttr, SecretStr
from sabir import ToolContext
from sabir_runtime import BaseContext, Batch, PolicyInvalid
from sabir_runtime.signatures import difference, read_policy, secret_in

from tests.runtime.support import Names


class Kept(BaseModel):
    shown: int = 0
    left_out: int = Field(default=0, exclude=True)
    _noted: int = PrivateAttr(default=0)


async def tell(ctx: BaseContext, observations: Batch, options: Names = None, *, any: Any = None) -> Batch:
    return []


@given(
    some.recursive(
        some.none() | some.booleans() | some.integers() | some.floats() | some.text() | some.dates() | some.binary(),
        lambda inner: (
            some.lists(inner) | some.tuples(inner) | some.frozensets(some.integers() | some.text())
            | some.dictionaries(some.text() | some.integers(), inner)
        ),
        max_leaves=6,
    )
)  # fmt: skip
def test_what_is_encoded_is_read_again_as_it_was(value: Any) -> None:
    """RN-29: for every value, refused or the same, types included."""
    signature = read_policy(tell)
    try:
        text = signature.encode({"any": value})
    except PolicyInvalid:
        return
    assert repr(signature.decode(text)) == repr({"any": value})


def test_equal_values_of_other_types_differ() -> None:
    """`1 == True == 1.0`, and the members of a set are not told apart by equality."""
    assert difference([1], [True]) == "[0] has the type int, but would be read back as bool"
    assert difference({1, 2}, {1.0, 2}) == "{…} has the type int, but would be read back as float"
    assert difference(float("nan"), float("nan")) == ""


def test_what_equal_values_lose_is_a_difference() -> None:
    """A time zone with summer time, of which JSON has an offset; how long a deque may be; an iterator is read once."""
    there = datetime(2026, 3, 28, 12, tzinfo=ZoneInfo("Europe/Berlin"))
    zone = "is in the time zone Europe/Berlin, but would be read back with a fixed offset or without a time zone"

    assert difference(there, there.astimezone(timezone(timedelta(hours=1)))) == f"the value {zone}"
    assert difference([there.timetz()], [there.time()]) == f"[0] {zone}"
    assert difference(there.astimezone(UTC), there.astimezone(UTC)) == ""
    shorter = "is a deque with maxlen=3, but would be read back as a deque with maxlen=None"
    assert difference(deque([1], 3), deque([1])) == f"the value {shorter}"
    assert difference(iter([1]), iter([1])) == "the value is an iterator, which can be read only once"


async def meet(ctx: BaseContext, observations: Batch, options: Names = None, *, when: datetime) -> Batch:
    return []


async def tell_all(
    ctx: BaseContext, observations: Batch, options: Names = None, *, context: ToolContext, **others: Any
) -> Batch:
    return []


NO_OBJECT = "the arguments are not a JSON object"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[]", NO_OBJECT), ("{", NO_OBJECT), ('{"x": NaN}', NO_OBJECT), ('{"x": 1e999}', NO_OBJECT),
        ('{"x": ' + "[" * 100_000 + "]" * 100_000 + "}", NO_OBJECT),
        ('{"x": "\\ud800"}', "argument 'x': .* is not a JSON value: lone surrogate"),
        ('{"x": ' + "[" * 101 + "]" * 101 + "}", "it is nested deeper than 100 levels"),
        *((f'{{"{name}": 1}}', f"argument '{name}': the library fills in this parameter; rename your argument")
          for name in ("self", "ctx", "observations", "options", "context")),
    ],
)  # fmt: skip
def test_a_text_that_holds_no_arguments_is_refused_in_plain_words(text: str, told: str) -> None:
    with pytest.raises(PolicyInvalid, match=told):
        read_policy(tell_all).decode(text)


def test_a_secret_is_found_wherever_it_is() -> None:
    assert secret_in({"a": ("b", [SecretStr("x")])}) == "['a'][1][0]"
    assert secret_in(SecretStr("x")) == ""
    assert secret_in({"a": ("b", [1, None])}) is None
