"""What the tests of this package share: managers, refusals that change nothing, JSON in between, random content."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest
from hypothesis import strategies as st
from sabir_roles import ActionRequest, MessageManager, RoledMessage, RoleError
from sabir_roles.templates import HEADINGS


def asked_and_answered() -> MessageManager:
    """System, question, call, result, answer, question."""
    manager = MessageManager()
    manager.add_message(system="Be brief.")
    manager.add_message(instruction="Umbrella in Paris?")
    request = manager.add_message(action_function="weather", action_arguments={"city": "Paris"})
    assert isinstance(request, ActionRequest)
    manager.add_message(action_request=request, action_output="rain")
    manager.add_message(assistant_response="Take one.")
    manager.add_message(instruction="And tomorrow?")
    return manager


def made_by(monkeypatch: pytest.MonkeyPatch) -> list[RoledMessage]:
    """The working copies of which messages are made from now on."""
    made: list[RoledMessage] = []
    make = RoledMessage._build

    def count(copy: RoledMessage) -> Any:
        made.append(copy)
        return make(copy)

    monkeypatch.setattr(RoledMessage, "_build", count)
    return made


Kind = TypeVar("Kind", bound=RoledMessage)


@contextmanager
def refuses(*words: str, of: RoledMessage | None = None, error: type[RoleError] = RoleError) -> Iterator[None]:
    """The block raises a ValueError of one line that holds each of the words, and a message that is given stays."""
    before = None if of is None else of.to_dict()
    with pytest.raises(error) as caught:
        yield
    said = str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert "\n" not in said
    assert [word for word in words if word not in said] == [], said
    assert (None if of is None else of.to_dict()) == before


def through_json(message: Kind) -> Kind:
    """The message that comes back from its JSON text."""
    loaded = RoledMessage.from_dict(json.loads(json.dumps(message.to_dict())))
    assert isinstance(loaded, type(message))
    return loaded


def made_of(copy: RoledMessage) -> Any:  # a Message, whatever its payload
    message = copy.to_message()
    assert message is not None
    return message


ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""Where a line may end."""
MARKERS = (
    "{{ instruction }}",
    "{% raw %}",
    "{% endif %}",
    "{# #}",
    "{{ ''.__class__ }}",
    "\x00",
    "\x1b[2J",
    "\\",
    " ",
    "\t",
)

texts = st.lists(
    st.one_of(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
        st.sampled_from([*ENDS, "\r\n", *MARKERS]),
        st.sampled_from(["## ", *(f"## {name}" for name in HEADINGS), *(f"\n## {name}\n" for name in HEADINGS)]),
    ),
    max_size=8,
).map("".join)
"""Texts that are likely to look like a template, or like a part of what one renders."""
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
