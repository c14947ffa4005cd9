"""Vendor hints: kept with their medium or option, taken by the wire that has a model of them, told of elsewhere."""

import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Literal

import pytest
import sabir
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field
from sabir.contract.dialect import Dialect, Rendering
from sabir.contract.scope import RequestScope
from sabir.contract.turns import Calls, LossLog, Side, Tables, Turn, TurnScope
from sabir.errors import BuilderError, OptionInvalid, SettingsInvalid
from sabir.options.option import Option
from sabir.rendering.renderer import Renderer
from sabir.vocabulary.media import MediaRule
from sabir.vocabulary.messages import Message
from sabir.vocabulary.parts import MediaPart
from sabir_testing.histories.invented_dialects import toy, toy_target

URL = "https://e.org/a.png"


class Shown(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    detail: Literal["low", "high"] | None = None
    crop: tuple[int, ...] | list[int] | None = None


class Offered(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    deferred: bool | None = None


def seen(piece: MediaPart | Option, scope: TurnScope | RequestScope) -> dict[str, Any]:
    """What a leaf function sees: all sections at all, and its own."""
    assert set(piece.vendor) <= {"toy"}
    return dict(scope.target.hints_of(piece))


def encode_turn(turn: Turn, scope: TurnScope, losses: LossLog) -> list[Any]:
    media = [piece for entry in turn.entries for piece in entry.pieces if isinstance(piece, MediaPart)]
    return [{"turn": len(turn.entries), "media": [seen(piece, scope) for piece in media]}]


def encode_request(scope: RequestScope) -> Mapping[str, Any]:
    return {"options": [seen(option, scope) for option in scope.options]}


def hinted(name: str, media: Mapping[Any, MediaRule], **calls: Any) -> Dialect:
    """A wire whose items and options say the hints that its functions saw, and whether there were others."""
    tables = Tables(media=media, calls=Calls(**calls))
    return toy(name, tables, encode_turn=encode_turn, encode_request=encode_request)


def rows(side: Side, hints: type[BaseModel] | None) -> dict[Any, MediaRule]:
    return {(side, "image"): MediaRule(url="", data="", hints=hints), (side, "audio"): MediaRule(url="")}


WIRE = hinted("toy.hinted", rows("user", Shown) | rows("results", Shown), hints=Offered)
SILENT = hinted("toy.silent", rows("user", None))
"""As a dialect that was written before there were hints."""


class Narrowed(Shown):
    crop: list[int] | None = Field(default=None, exclude=True)


ELSEWHERE = hinted("toy.elsewhere", rows("user", Narrowed))
"""As a further dialect of one provider."""


def rendered(*messages: Message, options: list[Option] | None = None, wire: Dialect = WIRE) -> Rendering:
    return Renderer(wire, toy_target(wire)).render(messages, options or ())


def shown(vendor: Any, wire: Dialect = WIRE, url: str = URL) -> tuple[Any, list[tuple[str, str]]]:
    rendering = rendered(sabir.user(sabir.image(url, vendor=vendor)), wire=wire)
    [media] = [item["media"] for item in json.loads(rendering.body_bytes)["turns"]]
    assert {loss.kind for loss in rendering.losses} <= {"dropped"}
    return media[0], [(loss.path, loss.reason) for loss in rendering.losses]


def offered(vendor: Any, wire: Dialect = WIRE) -> tuple[Any, list[tuple[str, str, str]]]:
    rendering = rendered(sabir.user("?"), options=[Option.from_schema("f", "", {}, vendor=vendor)], wire=wire)
    [option] = json.loads(rendering.body_bytes)["options"]
    return option, [(loss.message_id, loss.path, loss.reason) for loss in rendering.losses]


def test_every_way_to_a_medium_or_an_option_takes_hints() -> None:
    vendor = {"toy": {"detail": "low"}, "*": {"detail": "high"}}
    builder = sabir.MessageBuilder()

    def f() -> None:
        """Nothing."""

    made = [
        *(make(URL, vendor=vendor) for make in (sabir.image, sabir.audio, sabir.video, sabir.document)),
        builder.add_image("a", URL, vendor=vendor),
        builder.add_document("a", URL, vendor=vendor),
        Option.from_function(f, vendor=vendor),
        Option.from_model(Offered, vendor=vendor),
        option := Option.from_schema("f", "", {}, vendor=vendor),
        sabir.option(vendor=vendor)(f),
    ]
    plain, hinted = sabir.user(sabir.image(URL)), sabir.user(made[0])
    [loaded] = sabir.loads(sabir.dumps([hinted]))

    assert [each.vendor for each in made] == [vendor] * len(made)
    assert [each.vendor for each in builder.to_message().parts if isinstance(each, MediaPart)] == [vendor] * 2
    assert (sabir.image(URL, vendor={}), sabir.image(URL).vendor) == (sabir.image(URL), {})
    assert loaded == hinted
    assert not loaded.same_content(plain)
    assert Option.model_validate_json(option.model_dump_json()) == option
    assert {option, Option.from_schema("f", "", {})} == {option, Option.from_schema("f", "", {}, vendor={})}
    assert option != Option.from_schema("f", "", {})


@pytest.mark.parametrize("vendor", [{"toy": 3}, {"toy": None}, {"toy": ["low"]}, {"*": "low"}])
def test_a_section_that_is_no_mapping_is_refused(vendor: Any) -> None:
    words = rf"vendor\['{next(iter(vendor)).replace('*', '.')}'\] must be a mapping of that provider's own settings$"
    stored = sabir.dumps([sabir.user(sabir.image(URL))]).replace('"url"', f'"vendor":{json.dumps(vendor)},"url"')

    with pytest.raises(BuilderError, match=words):
        sabir.image(URL, vendor=vendor)
    with pytest.raises(OptionInvalid, match=words):
        Option.from_schema("f", "", {}, vendor=vendor)
    with pytest.raises(sabir.errors.SabirError, match="must be a mapping of that provider's own settings"):
        sabir.loads(stored)


@pytest.mark.parametrize(
    ("vendor", "taken", "lost"),
    [
        ({"toy": {"detail": "low"}}, {"detail": "low"}, []),
        ({"toy": {"detail": None}}, {"detail": None}, []),
        ({"toy": {"detail": "low"}, "acme": {"x": 1}}, {"detail": "low"}, []),
        ({"toy": {}, "acme": {"x": 1}, "*": {"y": 1}}, {}, []),
        ({"acme": {}}, {}, []),
        ({"*": {"detail": "low"}}, {"detail": "low"}, []),
        ({"*": {"detail": "low", "crop": [1]}, "toy": {"detail": "high"}}, {"crop": [1], "detail": "high"}, []),
        ({"*": {"x": 1, "detail": "low"}}, {"detail": "low"}, [".*.x"]),
        ({"*": {"detail": "ultra", "crop": [1]}}, {"crop": [1]}, [".*.detail"]),
        ({"acme": {"x": 1}, "other": {"y": 1}}, {}, [""]),
        ({"acme": {"x": 1}, "*": {"detail": "low"}}, {"detail": "low"}, [""]),
    ],
)
def test_a_target_takes_its_own_section_over_that_for_all(vendor: Any, taken: Any, lost: list[str]) -> None:
    """What is not taken is lost, but for what stands beside the target's own section: that was written for it."""
    assert (found := shown(vendor))[0] == taken
    assert [path for path, _ in found[1]] == [f"parts[0].vendor{path}" for path in lost]


def test_losses_of_hints_say_whom_they_are_for_and_who_takes_none() -> None:
    away = ("parts[0].vendor", "its vendor hints are for acme, other, not for toy")
    none = ("parts[0].vendor.toy", "toy.silent in user messages accepts no vendor hints (image)")

    assert shown({"acme": {"x": 1}, "other": {"y": 1}})[1] == [away]
    assert shown({"*": {"x": 1}})[1] == [
        ("parts[0].vendor.*.x", "toy.hinted in user messages does not accept this vendor hint 'x' (image)")
    ]
    assert shown({"toy": {"detail": "low"}}, SILENT) == ({}, [none])
    assert shown({"toy": {}, "acme": {"x": 1}}, SILENT) == ({}, [])

    video = rendered(sabir.user(sabir.video(URL, vendor={"toy": {"a": 1}, "*": {"b": 1}})))
    assert [(loss.kind, loss.path) for loss in video.losses] == [("downgraded", "parts[0]")]


def test_a_field_that_the_model_excludes_is_lost_from_either_section() -> None:
    lost = "toy.elsewhere in user messages does not accept this vendor hint 'crop' (image)"
    section = {"detail": "low", "crop": [1]}

    for name in ("toy", "*"):
        assert shown({name: section}, ELSEWHERE) == ({"detail": "low"}, [(f"parts[0].vendor.{name}.crop", lost)])
    with pytest.raises(SettingsInvalid, match="crop: "):
        shown({"toy": {"crop": "round"}}, ELSEWHERE)


def test_hints_of_options_are_taken_alike() -> None:
    assert offered({"toy": {"deferred": True}}) == ({"deferred": True}, [])
    assert offered({"*": {"deferred": True, "x": 1}}) == (
        {"deferred": True},
        [("", "options[0].vendor.*.x", "toy.hinted does not accept this vendor hint 'x' (option)")],
    )
    assert offered({"acme": {"x": 1}}) == (
        {},
        [("", "options[0].vendor", "its vendor hints are for acme, not for toy")],
    )
    assert offered({"toy": {"deferred": True}}, SILENT)[1] == [
        ("", "options[0].vendor.toy", "toy.silent accepts no vendor hints (option)")
    ]


def test_an_own_section_that_the_model_refuses_is_an_error() -> None:
    message = sabir.user("?", sabir.image(URL, vendor={"toy": {"detial": "low"}, "*": {"crop": [1]}}))
    where = rf"^vendor\['toy'\] of parts\[1\] of message {message.id} for toy.hinted in user messages \(image\): "
    option = Option.from_schema("f", "", {}, vendor={"toy": {"deferred": "yes"}})

    with pytest.raises(SettingsInvalid, match=where + r"detial: .*; its fields are crop, detail$"):
        rendered(message)
    with pytest.raises(
        SettingsInvalid, match=r"options\[0\], 'f', for toy.hinted \(option\): deferred: .*its fields are deferred$"
    ):
        rendered(sabir.user("?"), options=[option])


def test_options_of_other_hints_have_another_head() -> None:
    renderer = Renderer(WIRE, toy_target(WIRE))
    plain, hinted = (Option.from_schema("f", "", {}, vendor=each) for each in (None, {"toy": {"deferred": True}}))

    bodies = [renderer.render([sabir.user("?")], [each]).body_bytes for each in (plain, hinted, plain)]

    assert [json.loads(body)["options"] for body in bodies] == [[{}], [{"deferred": True}], [{}]]


values: st.SearchStrategy[Any] = st.sampled_from(["low", "ultra", [1], None, {"a": 1}])
sections = st.dictionaries(st.sampled_from(["detail", "crop", "deferred", "x"]), values, max_size=3)
own = st.sampled_from([{}, {"detail": "low"}, {"crop": [1], "detail": None}])
vendors = st.builds(
    lambda others, mine: {**others, **mine},
    st.dictionaries(st.sampled_from(["*", "acme", "other"]), sections, max_size=3),
    st.just({}) | own.map(lambda section: {"toy": section}),
)


@given(vendor=vendors, wire=st.sampled_from([WIRE, SILENT]))
def test_every_section_is_in_what_the_leaf_saw_or_in_the_losses(vendor: Any, wire: Dialect) -> None:
    """Law 2: field by field, but for what stands beside the target's own section."""
    taken, losses = shown(vendor, wire)
    lost = {path for path, _ in losses}

    for name, value in vendor.get("toy", {}).items():
        assert taken.get(name, "?") == value or "parts[0].vendor.toy" in lost
    if "toy" not in vendor:
        for name, value in vendor.get("*", {}).items():
            assert (taken.get(name, "?") == value) is (f"parts[0].vendor.*.{name}" not in lost)
        assert any(vendor.get(name) for name in ("acme", "other")) is ("parts[0].vendor" in lost)
    assert len(lost) == len(losses)


@given(before=st.lists(vendors, min_size=1, max_size=3), after=st.lists(vendors, max_size=2))
def test_a_closed_prefix_with_hints_never_changes(before: list[Any], after: list[Any]) -> None:
    """Laws 4 and 5: what was said renders to the same bytes and losses however the conversation goes on."""
    history: list[Message] = []
    kept = Renderer(WIRE, toy_target(WIRE))
    bodies: list[bytes] = []
    for vendor in (*before, *after):
        history += [sabir.user("?", sabir.image(URL, vendor=vendor)), sabir.assistant("!")]
        grown, fresh = kept.render(history), kept.new().render(history)
        assert (grown.body_bytes, grown.losses) == (fresh.body_bytes, fresh.losses)
        bodies.append(grown.body_bytes.removesuffix(b"]}"))
    assert all(later.startswith(earlier) for earlier, later in pairwise(bodies))
