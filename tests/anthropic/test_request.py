"""What settings, options and cache breakpoints become on the wire of Messages."""

import json
from typing import Any

import pytest
import sabir
from sabir.contract.dialect import Rendering
from sabir.errors import SettingsInvalid
from sabir.vocabulary.settings import FEATURES, WIRE_SETTINGS
from sabir_anthropic.plugin import anthropic as provider
from sabir_anthropic.request import MODEL_QUIRKS

from tests.providers import wires
from tests.providers.wires import call, lost, result, said

ASKED = sabir.user("Umbrella?")

NEWEST, OLDER, OLDEST = "claude-opus-5-5", "claude-haiku-4-5", "claude-3-haiku-20240307"
WEATHER = sabir.Option.from_schema("weather", "Weather.", {"type": "object", "properties": {}})
EPHEMERAL = {"cache_control": {"type": "ephemeral"}}


def render(*messages: Any, model: str = NEWEST, **given: Any) -> Rendering:
    given = {"vendor": {}, "max_output_tokens": None, **given}
    return wires.render("anthropic.messages", *(messages or [ASKED]), model=model, **given)


def body(*messages: Any, **given: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(render(*messages, **given).body_bytes)
    return found


def losses(*messages: Any, **given: Any) -> list[tuple[str, str]]:
    """Of a request without a maximum, all but that one was made up."""
    found = [(loss.kind, loss.path.removeprefix("settings.")) for loss in render(*messages, **given).losses]
    return [loss for loss in found if loss != ("synthesized", "max_output_tokens")]


@pytest.mark.parametrize(
    ("model", "limit"), [(NEWEST, 128_000), (OLDER, 64_000), (OLDEST, 4096), ("of-tomorrow", 4096)]
)
def test_the_limit_is_what_the_model_can_answer_with(model: str, limit: int) -> None:
    """The wire wants one: the setting, what is known of the model, or what every model can."""
    assert body(model=model)["max_tokens"] == limit
    assert body(model=model, max_output_tokens=7)["max_tokens"] == 7


def test_every_row_of_models_refuses_by_known_words() -> None:
    known = {*WIRE_SETTINGS, *FEATURES, *MODEL_QUIRKS}

    assert [(info.prefix, set(info.rejects) - known) for info in provider.models() if set(info.rejects) - known] == []
    assert all(info.output_tokens and info.modalities for info in provider.models())


def test_a_budget_leaves_room_for_the_answer() -> None:
    assert body(model=OLDER, reasoning_effort="high", max_output_tokens=8000)["thinking"]["budget_tokens"] == 4000
    assert losses(model=OLDER, reasoning_effort="high", max_output_tokens=8000) == [("downgraded", "reasoning_effort")]
    assert body(model=OLDER, reasoning_effort="low", max_output_tokens=1500)["thinking"]["budget_tokens"] == 1024
    assert "thinking" not in body(model=OLDER, reasoning_effort="low", max_output_tokens=1024)
    assert losses(model=OLDER, reasoning_effort="low", max_output_tokens=1024) == [("dropped", "reasoning_effort")]


def test_vendor_settings_of_thinking_come_first() -> None:
    shown = {"type": "adaptive", "display": "summarized"}
    found = body(reasoning_effort="max", vendor={"thinking": shown})
    assert (found["thinking"], found["output_config"]) == (shown, {"effort": "max"})
    assert losses(reasoning_effort="max", vendor={"thinking": shown}) == []

    budget = {"type": "enabled", "budget_tokens": 2000}
    assert body(model=OLDER, reasoning_effort="low", vendor={"thinking": budget})["thinking"] == budget
    assert losses(model=OLDER, reasoning_effort="low", vendor={"thinking": budget}) == [("dropped", "reasoning_effort")]
    twice = {"reasoning_effort": "low", "vendor": {"output_config": {"effort": "max"}}}
    assert losses(**twice) == [("dropped", "reasoning_effort")]


def test_a_union_at_the_top_of_parameters_is_a_loss() -> None:
    schema = {"type": "object", "properties": {"a": {}}, "oneOf": [{"required": ["a"]}]}
    option = sabir.Option.from_schema("o", "", schema)

    sent = {"type": "object", "properties": {"a": {}}, "required": ["a"]}
    assert body(options=[option])["tools"][0]["input_schema"] == sent
    assert losses(options=[option]) == [("downgraded", "options[0].parameters.oneOf")]


def test_what_a_reply_cannot_be_held_to_is_told_in_words() -> None:
    schema = {
        "type": "object", "title": "T", "$schema": "x",
        "properties": {
            "n": {"type": "integer", "minimum": 1, "description": "How many."},
            "s": {"type": "string", "format": "color"},
            "l": {"type": "array", "items": {"type": "string", "pattern": "a"}, "minItems": 2},
            "u": {"oneOf": [
                {"type": "object", "properties": {"a": {"const": 1}}, "additionalProperties": {"type": "string"}},
                {"$ref": "#/$defs/D"},
            ]},
        },
        "$defs": {"D": {"type": "object", "properties": {}, "required": []}},
    }  # fmt: skip
    losses = [(loss.kind, loss.path) for loss in render(response_format=schema, max_output_tokens=9).losses]
    found = body(response_format=schema)["output_config"]["format"]["schema"]

    assert found["properties"]["n"] == {"type": "integer", "description": "How many. (minimum: 1)"}
    assert found["properties"]["s"] == {"type": "string", "description": '(format: "color")'}
    assert found["properties"]["l"]["items"]["description"] == '(pattern: "a")'
    assert found["properties"]["u"]["anyOf"][0] == {
        "type": "object", "properties": {"a": {"const": 1}}, "additionalProperties": False
    }  # fmt: skip
    assert found["$defs"]["D"]["additionalProperties"] is False
    assert "$schema" not in found
    assert losses == [(kind, f"settings.response_format.schema.{path}") for kind, path in (
        ("rewritten", "$schema"),
        ("downgraded", "properties.n.minimum"),
        ("downgraded", "properties.s.format"),
        ("downgraded", "properties.l.items.pattern"),
        ("downgraded", "properties.l.minItems"),
        ("rewritten", "properties.u.oneOf"),
        ("downgraded", "properties.u.anyOf[0].additionalProperties"),
    )]  # fmt: skip


def test_cache_breakpoints_are_put_in_at_the_join() -> None:
    talk = [sabir.system("Be brief."), ASKED, said("Yes."), sabir.user("Why?")]
    places = [{"at": "options", "ttl": "1h"}, "system", "closed", "end"]
    bare, found = body(*talk, options=[WEATHER]), body(*talk, options=[WEATHER], vendor={"cache_breakpoints": places})

    marked = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    assert found["tools"][-1] == {**bare["tools"][-1], **marked}
    assert found["system"] == [{**bare["system"][0], **EPHEMERAL}]
    assert found["messages"][1]["content"] == [{"type": "text", "text": "Yes.", **EPHEMERAL}]
    assert found["messages"][2]["content"] == [{"type": "text", "text": "Why?", **EPHEMERAL}]
    assert found["messages"][0] == bare["messages"][0]
    assert losses(*talk, options=[WEATHER], vendor={"cache_breakpoints": places}) == []


@pytest.mark.parametrize(
    "vendor",
    [
        {"cache_breakpoints": [{"at": "end", "ttl": "1h"}, {"at": "system", "ttl": "5m"}]},
        {"cache_breakpoints": ["system"], "cache_control": {"type": "ephemeral", "ttl": "1h"}},
    ],
)
def test_an_hours_marker_does_not_follow_one_of_five_minutes(vendor: Any) -> None:
    """The vendor refuses it in the order in which it reads, whatever the order of the setting."""
    found = body(sabir.system("Be brief."), ASKED, vendor=vendor)

    assert b'"1h"' not in json.dumps(found).encode()
    assert json.dumps(found).count("cache_control") == 2
    told = losses(sabir.system("Be brief."), ASKED, vendor=vendor)
    assert told == [("downgraded", "vendor.anthropic.cache_breakpoints")]


@pytest.mark.parametrize(
    ("places", "ttl", "is_sent"),
    [
        (["options", "system", "closed"], "5m", True),
        (["options", "system", "closed", {"at": "end", "ttl": "5m"}], "5m", False),
        ([{"at": "end", "ttl": "5m"}], "5m", True),
        (["end"], "1h", False),
    ],
)
def test_caching_by_itself_yields_to_a_breakpoint_at_the_end(places: list[Any], ttl: str, is_sent: bool) -> None:
    """Both mark one block: the vendor refuses two markers that differ there, and a fifth."""
    talk = [sabir.system("Be brief."), ASKED, said("Yes."), sabir.user("Why?")]
    given: dict[str, Any] = {"type": "ephemeral", "ttl": ttl}
    vendor = {"cache_breakpoints": places, "cache_control": given}

    assert body(*talk, options=[WEATHER], vendor=vendor).get("cache_control") == (given if is_sent else None)
    assert losses(*talk, options=[WEATHER], vendor=vendor) == (
        [] if is_sent else [("dropped", "vendor.anthropic.cache_control")]
    )


def test_a_declaration_that_is_loaded_later_is_not_marked() -> None:
    """The vendor refuses it; the last one before it is marked, if there is one."""
    later = {"name": "atlas", "input_schema": {"type": "object"}, "defer_loading": True}
    vendor = {"tools": [later], "cache_breakpoints": ["options"]}

    (weather,) = body(options=[WEATHER])["tools"]
    assert body(options=[WEATHER], vendor=vendor)["tools"] == [{**weather, **EPHEMERAL}, later]
    assert body(vendor=vendor)["tools"] == [later]
    assert losses(vendor=vendor) == [("dropped", "vendor.anthropic.cache_breakpoints")]


RESULT = {"type": "tool_result", "tool_use_id": "call_1", "content": [{"type": "text", "text": "x"}]}
PDF = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjQ="}}
CITED = {"citations": {"enabled": True}}


@pytest.mark.parametrize(
    ("last", "block"),
    [
        ([call(), result(parts=(sabir.user("x").parts[0],))], RESULT),
        ([sabir.user(sabir.document(b"%PDF-1.4", vendor={"anthropic": CITED}))], {**PDF, **CITED}),
    ],
)
def test_a_breakpoint_at_the_end_marks_a_block_and_nothing_within_it(last: list[Any], block: dict[str, Any]) -> None:
    sent = body(ASKED, *last, vendor={"cache_breakpoints": ["end"]})["messages"][-1]["content"]

    assert sent[-1] == {**block, **EPHEMERAL}


def test_a_breakpoint_without_a_place_is_a_loss() -> None:
    told = losses(vendor={"cache_breakpoints": ["options", "system", "closed"]})
    assert told == [("dropped", "vendor.anthropic.cache_breakpoints")] * 2
    with pytest.raises(SettingsInvalid, match="cache_breakpoints"):
        render(vendor={"cache_breakpoints": ["middle"]})


ENDS: list[tuple[list[Any], dict[str, Any], str]] = [
    ([sabir.system("Be brief.")], {}, "Begin."),
    *(([ASKED, said("{")], given, "Continue.") for given in (
        {"model": NEWEST}, {"model": OLDER, "reasoning_effort": "low"},
        {"model": OLDER, "response_format": {"type": "object", "properties": {}}})),
    ([ASKED, said("{")], {"model": OLDER}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("talk", "given", "words"), ENDS)
def test_a_conversation_ends_with_the_user_where_the_wire_wants_it(talk: Any, given: Any, words: str) -> None:
    last = body(*talk, **given)["messages"][-1]

    assert last == {"role": "user" if words else "assistant", "content": [{"type": "text", "text": words or "{"}]}
    assert losses(*talk, **given) == ([("synthesized", "messages")] if words else [])


DEFERRED = sabir.Option.from_schema("atlas", "", WEATHER.parameters, vendor={"anthropic": {"defer_loading": True}})


def test_a_deferred_declaration_is_told_of_where_it_cannot_be_deferred() -> None:
    """Another vendor's model may choose it at once, which is a loss."""
    rendering = wires.render("google.generate_content", ASKED, options=[DEFERRED])
    assert lost(rendering) == [("dropped", "options[0].vendor")]


def test_the_marker_of_the_last_declaration_that_is_not_deferred_is_a_breakpoint() -> None:
    rendering = render(max_output_tokens=9, options=(WEATHER, DEFERRED), vendor={"cache_breakpoints": ["options"]})
    history = sabir.dialect("anthropic.messages").decode_history(rendering.body_bytes)

    assert (history.options, history.losses) == ((WEATHER, DEFERRED), ())
    assert history.settings.vendor == {"anthropic": {"cache_breakpoints": ["options"]}}
