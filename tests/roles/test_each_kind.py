"""What the kinds of messages do alike: whose they are, what they show, and that what is refused changes nothing."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from sabir_roles import ActionRequest, ActionResponse, AssistantResponse, Instruction, RoledMessage, System

from tests.roles.checks import refuses


class Row(NamedTuple):
    """How one kind is made, whose it is, and what its template shows."""

    make: Callable[..., RoledMessage]
    people: tuple[str, str, str]
    """Role, sender, recipient."""
    template: str
    shown: Any
    """A text, or what its JSON is."""


TEXT = "{{ x }}\n"
CALL = {"function": "look", "arguments": {"a": "{{ x }}"}}


def response(**how: Any) -> ActionResponse:
    """A response to a request of the default people."""
    return ActionResponse.create(ActionRequest.create("look", CALL["arguments"]), ["{{ x }}"], **how)  # type: ignore[arg-type]


KINDS = {
    "system": Row(lambda **how: System.create(TEXT, **how), ("system", "system", "assistant"), "system_message", TEXT),
    "instruction": Row(
        lambda **how: Instruction.create(TEXT, **how), ("user", "user", "assistant"), "instruction_message", TEXT
    ),
    "answer": Row(
        lambda **how: AssistantResponse.create(TEXT, **how),
        ("assistant", "assistant", "user"),
        "assistant_response",
        TEXT,
    ),
    "request": Row(
        lambda **how: ActionRequest.create("look", CALL["arguments"], **how),  # type: ignore[arg-type]
        ("action", "assistant", "action"),
        "action_request",
        CALL,
    ),
    "response": Row(response, ("action", "action", "assistant"), "action_response", {**CALL, "output": ["{{ x }}"]}),
}
each_kind = pytest.mark.parametrize("row", KINDS.values(), ids=KINDS)


@each_kind
def test_a_kind_has_its_own_people_unless_others_are_given(row: Row) -> None:
    """LA-19, LA-26, LA-42, LA-45: and a template of one's own takes the place of the package's (LA-21)."""
    made = row.make()
    assert (made.role, made.sender, made.recipient) == row.people
    assert made.chat_msg == {"role": row.people[0], "content": made.text}
    other = row.make(sender="me", recipient="you", template="{{ role }} {{ sender }}!")
    assert (other.sender, other.recipient, other.rendered) == ("me", "you", f"{row.people[0]} me!")


@each_kind
def test_the_default_template_shows_content_as_it_is(row: Row) -> None:
    """LA-56: a text whatever it looks like, else JSON."""
    made = row.make()
    assert made.template == f"{row.template}.jinja2"
    assert (made.text if isinstance(row.shown, str) else json.loads(made.text)) == row.shown


@pytest.mark.parametrize("kind", ["system", "answer", "request"])
def test_further_values_are_content(kind: str) -> None:
    """LA-23: falsy ones too, for a template to use; created or updated."""
    made = KINDS[kind].make(tone="calm", level=0, template="{{ tone }} {{ level }}")
    assert (made.content["tone"], made.rendered) == ("calm", "calm 0")
    made.update(tone="", mark=1)
    assert (made.content["tone"], made.content["mark"], made.rendered) == ("", 1, " 0")


@each_kind
@pytest.mark.parametrize("bad", [{"sender": ""}, {"recipient": 5}, {"template": "{{"}, {"tone": object()}])
def test_what_is_refused_changes_nothing(row: Row, bad: dict[str, Any]) -> None:
    """LA-06, LA-24, LA-43: neither created nor updated in part."""
    right: dict[str, Any] = {"sender": "x", "recipient": "y", "template": "z"}
    takes_more = row.template not in ("instruction_message", "action_response")
    if takes_more or "tone" not in bad:
        with refuses():
            row.make(**bad)
    made = row.make()
    with refuses(of=made):
        made.update(**{**right, **({"tone": "calm"} if takes_more else {}), **bad})
