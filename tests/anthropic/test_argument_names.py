"""Names of parameters that the vendor refuses: others on the wire, the option's own in calls, and the wire's again."""

import json
from typing import Any

import pytest
import sabir
from sabir.vocabulary.messages import Message
from sabir_anthropic.schema import MOST_OPTIONAL, MOST_TOOLS, MOST_UNIONS
from sabir_testing.loopback import Server, head

from tests.anthropic.answers import SHORT, START, STOP, begun, delta, done, ended, message, streamed

OWN = {"filter[name]": "a", "$top": 3, "plain.key-1": True, "x" * 65: 1}
TEXT = {"type": "string"}
OPTION = sabir.Option.from_schema(
    "find", "Find.", {"type": "object", "properties": {name: {} for name in OWN}}, lambda **_: "ok"
)


def body(*messages: Message, options: Any = (OPTION,), **settings: Any) -> tuple[Any, list[sabir.Loss]]:
    given = sabir.Settings(max_output_tokens=9, **settings)
    history = [sabir.user("?"), *messages]
    rendering = sabir.dialect("anthropic.messages").render(
        history, options=options, settings=given, model="claude-sonnet-5"
    )
    return json.loads(rendering.body_bytes), list(rendering.losses)


def on_the_wire() -> dict[str, Any]:
    """The arguments under the names that the declaration has."""
    return dict(zip(body()[0]["tools"][0]["input_schema"]["properties"], OWN.values(), strict=True))


def answer(*, is_stream: bool) -> bytes:
    use = {"type": "tool_use", "id": "toolu_1", "name": "find", "input": on_the_wire()}
    if not is_stream:
        return json.dumps(message(use, stop_reason="tool_use")).encode()
    text = json.dumps(on_the_wire())
    pieces = [delta(0, "input_json", partial_json=part) for part in (text[:9], text[9:])]
    return streamed([START, begun(0, {**use, "input": {}}), *pieces, done(0), ended("tool_use"), STOP])


@pytest.mark.parametrize("is_stream", [False, True])
def test_arguments_have_their_own_names_in_the_call_and_the_wires_again_in_the_history(is_stream: bool) -> None:
    kind = "text/event-stream" if is_stream else "application/json"
    with Server([head(kind=kind), answer(is_stream=is_stream)]) as server:
        llm = sabir.adapter("anthropic:claude-sonnet-5", api_key="k", base_url=server.url)
        if is_stream:
            with llm.stream_sync("?", options=[OPTION], settings=SHORT) as stream:
                reply = stream.reply()
        else:
            reply = llm.complete_sync("?", options=[OPTION], settings=SHORT)
    [call] = reply.option_calls
    history = [sabir.user("?"), *reply.messages, *sabir.answer_sync(reply, [OPTION])]
    rendering = llm.render(history, options=[OPTION], settings=SHORT)
    sent, losses = json.loads(rendering.body_bytes), rendering.losses

    assert call.call is not None and dict(call.call.arguments) == OWN
    assert sent["messages"][1]["content"][0]["input"] == on_the_wire()
    assert sum(loss.path.startswith("payload.arguments.") for loss in losses) == 3


def test_a_call_from_another_vendor_goes_under_the_names_of_the_wire() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": json.dumps(OWN)}}
    request = {"model": "gpt-5", "messages": [
        {"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c1", "content": "ok"},
    ]}  # fmt: skip
    sent, losses = body(*sabir.dialect("openai.chat").decode_history(request).messages)

    assert sent["messages"][1]["content"][0]["input"] == on_the_wire()
    assert [loss.kind for loss in losses if loss.path.startswith("payload.arguments.")] == ["rewritten"] * 3


def strict(name: str, properties: dict[str, Any], required: Any = ()) -> sabir.Option:
    schema = {"type": "object", "properties": properties, "required": [*required], "additionalProperties": False}
    return sabir.Option.from_schema(name, "", schema, vendor={"anthropic": {"strict": True}})


def many(count: int, schema: Any) -> dict[str, Any]:
    return {f"p{index}": schema for index in range(count)}


@pytest.mark.parametrize(
    ("options", "of_reply", "sent"),
    [
        ([strict(f"o{index}", {}) for index in range(MOST_TOOLS + 1)], None, MOST_TOOLS),
        ([strict("a", many(MOST_OPTIONAL, TEXT)), strict("b", many(1, TEXT)), strict("c", {})], None, 2),
        ([strict("a", many(MOST_OPTIONAL, TEXT))], many(1, TEXT), 0),
        ([strict("a", many(MOST_UNIONS, union := {"type": ["string", "null"]}), many(MOST_UNIONS, union)),
          strict("b", {"a": {"anyOf": [TEXT, {"type": "null"}]}}, ["a"])], None, 1),
    ],
)  # fmt: skip
def test_strict_schemas_stay_within_the_limits_of_a_request(options: Any, of_reply: Any, sent: int) -> None:
    """Those that exceed a limit are sent without strict; the reply's schema counts first."""
    schema = {"type": "object", "properties": of_reply}
    form = {} if of_reply is None else {"response_format": sabir.ResponseFormat(name="x", schema=schema)}
    found, losses = body(options=options, **form)

    assert sum(tool.get("strict", False) for tool in found["tools"]) == sent
    assert sum("without `strict`" in loss.reason for loss in losses) == len(options) - sent


def test_a_reply_beyond_the_limits_is_not_held_to_its_schema() -> None:
    """The vendor would refuse the request; a conversation gets the output by a call instead."""
    schema = {"type": "object", "properties": many(MOST_OPTIONAL + 1, TEXT)}
    found, losses = body(options=(), response_format=sabir.ResponseFormat(name="x", schema=schema))

    assert "output_config" not in found
    assert [(loss.kind, loss.path) for loss in losses] == [("dropped", "settings.response_format")]
