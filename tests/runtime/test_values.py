"""What comes through JSON as another value is told from what does not."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as some
from pydantic import BaseModel, Field, PrivateAttr, SecretStr
from sabir import Message
from sabir_runtime import BaseContext, PolicyInvalid
from sabir_runtime.signatures import read_policy
from sabir_runtime.values import difference, secret_in


class Kept(BaseModel):
    """A model of which a dump leaves something out."""

    shown: int = 0
    left_out: int = Field(default=0, exclude=True)
    _noted: int = PrivateAttr(default=0)


async def tell(
    ctx: BaseContext, observations: list[Message], options: list[str] | None = None, *, any: Any = None
) -> list[Message]:
    """Take anything."""
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


def test_what_a_dump_leaves_out_is_a_difference() -> None:
    """Fields that are excluded, and private attributes."""
    noted = Kept()
    noted._noted = 3

    assert difference(Kept(), Kept()) == ""
    assert difference({"a": [Kept(left_out=1)]}, {"a": [Kept()]}) == "['a'][0].left_out becomes another int"
    assert difference(noted, Kept()) == "_noted becomes another int"


def test_equal_values_of_other_types_differ() -> None:
    """`1 == True == 1.0`, and the members of a set are not told apart by equality."""
    assert difference([1], [True]) == "[0], of type int, becomes one of type bool"
    assert difference({1, 2}, {1.0, 2}) == "{…}, of type int, becomes one of type float"
    assert difference(float("nan"), float("nan")) == ""


def test_a_secret_is_found_wherever_it_is() -> None:
    """As a key too; what is none is none."""
    assert secret_in({"a": ("b", [SecretStr("x")])}) == "['a'][1][0]"
    assert secret_in(SecretStr("x")) == ""
    assert secret_in({"a": ("b", [1, None])}) is None
