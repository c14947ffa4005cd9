"""What is put in as the messages' bytes are joined: markers that the kept prefix does not hold, and closing items."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from sabir.contract.dialect import Rendering
from sabir.contract.scope import Insertion, RequestScope
from sabir.contract.turns import Roles, Tables
from sabir.rendering.renderer import Renderer
from sabir.vocabulary.messages import Message
from sabir.vocabulary.settings import Settings, Target
from sabir_testing.histories import invented_dialects
from sabir_testing.histories.invented_dialects import toy
from sabir_testing.histories.samples import message_by

from tests.laws.histories import histories


def encode_request(scope: RequestScope) -> Mapping[str, Any]:
    """Vendor settings say where items are marked, and what closes the request."""
    for place in scope.vendor.get("mark", ()):
        scope.insertions.append(Insertion(place, b"}", b',"marked":true', f"settings.vendor.toy.mark.{place}"))
    scope.closing.extend(scope.vendor.get("closing", ()))
    scope.headers.update(scope.vendor.get("headers", {}))
    return invented_dialects.encode_request(scope)


WIRE = toy("toy.marking", Tables(), encode_request=encode_request)


def renderer() -> Renderer:
    return Renderer(WIRE, Target(provider="toy", dialect=WIRE.name, model="m-1"))


def render(history: Sequence[Message], made: Renderer | None = None, **vendor: Any) -> Rendering:
    return (made or renderer()).render(history, settings=Settings(vendor={"toy": vendor}))


def items(rendering: Rendering) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(rendering.body_bytes)["turns"]
    return found


TALK = [message_by("user", "a"), message_by("llm", "b"), message_by("user", "c")]


@pytest.mark.parametrize(
    ("places", "marked"),
    [
        (["closed"], [False, True, False]),
        (["end"], [False, False, True]),
        (["closed", "end"], [False, True, True]),
        (["closed", "end"], [True]),  # asked for once, for all requests: nothing is closed in the first of them
    ],
)
def test_a_marker_goes_to_the_end_of_the_closed_prefix_or_of_all(places: list[str], marked: list[bool]) -> None:
    talk = TALK[: len(marked)]
    bare, rendering = items(render(talk)), render(talk, mark=places)
    shown = items(rendering)

    assert [item.pop("marked", False) for item in shown] == marked
    assert shown == bare
    assert not rendering.losses


@pytest.mark.parametrize(
    ("places", "lost"), [(["end"], []), (["closed", "end"], ["end"]), (["closed", "closed"], ["closed"])]
)
def test_a_place_is_marked_once(places: list[str], lost: list[str]) -> None:
    rendering = render([*TALK[:2], message_by("user", "")], mark=places)

    assert [item.get("marked", False) for item in items(rendering)] == [False, True]
    assert [loss.path for loss in rendering.losses[1:]] == [f"settings.vendor.toy.mark.{place}" for place in lost]


@given(history=histories)
def test_markers_leave_the_kept_prefix_as_it_is(history: list[Message]) -> None:
    """Law 4: what a closed prefix rendered to never changes, markers excluded; law 5: kept and fresh are equal."""
    asked = [message_by("user", "?"), *history]
    kept = renderer()

    for vendor in ({"mark": ["closed"]}, {"mark": ["end"]}, {}, {"closing": [{"side": "user"}]}):
        assert render(asked, kept, **vendor).body_bytes == render(asked, **vendor).body_bytes


def test_closing_items_stand_after_all_turns_and_in_no_later_request() -> None:
    made = renderer()
    ended = items(render(TALK[:2], made, closing=[{"side": "user", "pieces": []}]))
    later = items(render(TALK, made))

    assert [item["side"] for item in ended] == ["user", "assistant", "user"]
    assert later == items(render(TALK))


def test_closing_items_alone_are_a_request_where_system_text_is_hoisted() -> None:
    hoisting = toy("toy.hoisting", Tables(Roles(leading_system="hoisted")), encode_request=encode_request)
    made = Renderer(hoisting, Target(provider="toy", dialect="toy.hoisting", model="m-1"))

    assert items(render([message_by("system", "Sing.")], made, closing=[{"side": "user"}])) == [{"side": "user"}]


def test_a_dialect_may_need_headers_and_the_users_come_on_top() -> None:
    vendor = {"toy": {"headers": {"toy-beta": "a", "toy-version": "1"}}}
    settings = Settings(vendor=vendor, extra_headers={"toy-version": "2"})

    rendering = renderer().render(TALK, settings=settings)

    assert dict(rendering.headers) == {"toy-beta": "a", "toy-version": "2"}
    assert rendering.unchecked
