"""What a Responses body becomes as a reply."""

import json
from typing import Any

import pytest
from sabir.base.losses import Loss
from sabir.contract.scope import DecodeScope
from sabir.errors import (
    CallError,
)
from sabir.vocabulary.messages import OptionCallPayload
from sabir.vocabulary.parts import Citation, MediaPart, OpaquePart, ReasoningPart, RefusalPart, TextPart
from sabir.vocabulary.reply import Reply, Usage
from sabir.vocabulary.target import Target
from sabir_openai.responses_dialect import RESPONSES

SCOPE = DecodeScope(
    target=Target(provider="openai", dialect="openai.responses", model="gpt-5.4", endpoint="https://example.org/v1"),
    policy="planner",
    option_names={"my_weather_1a2b": "my weather"},
    request_id="req_1",
)
USAGE = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
    "output_tokens": 20,
    "output_tokens_details": {"reasoning_tokens": 15},
    "total_tokens": 120,
}
BODY: dict[str, Any] = {
    "id": "resp_1", "object": "response", "model": "gpt-5.4-2026-03-05", "status": "completed", "error": None,
    "incomplete_details": None, "output": [], "usage": USAGE, "service_tier": "flex", "tools": [], "temperature": 1.0,
    "conversation": {"id": "conv_1"}, "something_new": [1], "metadata": {}, "instructions": "Be brief.",
}  # fmt: skip


def decode(*output: Any, **fields: Any) -> Reply:
    return RESPONSES.decode(json.dumps({**BODY, "output": output, **fields}).encode(), SCOPE)


def blocks(reply: Reply) -> list[Any]:
    found: list[Any] = []
    for message in reply.messages:
        found += message.parts if message.call is None else (message.call,)
    return found


def spoken(*content: Any, **fields: Any) -> dict[str, Any]:
    head = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
    return {**head, **fields, "content": list(content)}


def say(text: str, *annotations: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": list(annotations), **fields}


def chosen(**fields: Any) -> dict[str, Any]:
    item = {"id": "fc_1", "type": "function_call", "status": "completed", "call_id": "call_1", "name": "weather"}
    return {**item, "arguments": "{}", **fields}


HEAD = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}


def test_a_reply_says_who_answered_and_what_it_cost() -> None:
    """Input includes what was cached, output includes reasoning; the vendor's figures stay as they are."""
    reply = decode(spoken(say("Hello.")))

    assert reply.origin == SCOPE.origin("gpt-5.4-2026-03-05", "resp_1")
    assert [(message.policy, message.role_hint_for_llm, message.origin) for message in reply.messages] == [
        ("planner", None, reply.origin)
    ]
    assert reply.usage == Usage(
        input_tokens=100,
        output_tokens=20,
        cache_read_tokens=60,
        cache_write_tokens=30,
        reasoning_tokens=15,
        details=USAGE,
    )
    assert reply.losses == ()


def test_what_has_no_neutral_place_is_in_the_details() -> None:
    """What only repeats the request is not."""
    assert decode().details == {"service_tier": "flex", "conversation": {"id": "conv_1"}, "something_new": [1]}


def test_a_message_gives_a_part_for_each_of_its_contents() -> None:
    """Texts, refusals, and parts of types that nobody knows yet; the message's own fields are in each one's state."""
    unknown = {"type": "output_hologram", "beam": 7}
    reply = decode(spoken(say("Hi.", logprobs=[]), {"type": "refusal", "refusal": "No."}, unknown, phase="commentary"))

    head = {**HEAD, "phase": "commentary"}
    assert blocks(reply) == [
        TextPart(text="Hi.", state={"item": head, "part": {"type": "output_text", "logprobs": []}}),
        RefusalPart(text="No.", state={"item": head, "part": {"type": "refusal"}}),
        OpaquePart(dialect="openai.responses", block={**head, "content": [unknown]}),
    ]


@pytest.mark.parametrize("content", [[], None, "Hi.", {"type": "output_text"}], ids=repr)
def test_a_message_of_another_shape_is_kept_as_it_is(content: Any) -> None:
    """An unfinished message, or one of another wire's shape."""
    item = {**HEAD, "content": content}

    assert blocks(decode(item)) == [OpaquePart(dialect="openai.responses", block=item)]


@pytest.mark.parametrize(
    ("annotation", "citation"),
    [
        (
            {"type": "url_citation", "url": "https://example.org", "title": "E", "start_index": 4, "end_index": 7},
            Citation(kind="url_citation", url="https://example.org", title="E", start=4, end=7),
        ),
        (
            {"type": "container_file_citation", "container_id": "c", "file_id": "f", "filename": "a.csv",
             "start_index": 0, "end_index": 2},
            Citation(kind="container_file_citation", title="a.csv", file_id="f", start=0, end=2),
        ),
        (
            {"type": "file_citation", "file_id": "f", "filename": "a.pdf", "index": 12},
            Citation(kind="file_citation", title="a.pdf", file_id="f"),
        ),
        ({"type": "file_path", "file_id": "f", "index": 3}, Citation(kind="file_path", file_id="f")),
        ({"of": "another make"}, Citation(kind="annotation")),
    ],
    ids=lambda value: value.kind if isinstance(value, Citation) else "",
)  # fmt: skip
def test_an_annotation_is_a_citation(annotation: Any, citation: Citation) -> None:
    """PJ-14: offsets are characters of the text where the vendor gives a stretch; an `index` is none."""
    (part,) = blocks(decode(spoken(say("See [1].", annotation))))

    assert part.citations == (citation.model_copy(update={"source": annotation}),)


def test_reasoning_is_its_summary_and_content_and_keeps_its_item() -> None:
    """Passages are paragraphs; a model that hides its thoughts returns them encrypted alone."""
    summary = [{"type": "summary_text", "text": text} for text in ("First.", "Then.")]
    told = {"id": "rs_1", "type": "reasoning", "summary": summary, "encrypted_content": "gA=="}
    open_thoughts = {
        "id": "rs_2",
        "type": "reasoning",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "Hm."}],
    }
    hidden = {"id": "rs_3", "type": "reasoning", "summary": [], "encrypted_content": "gB=="}
    reply = decode(told, open_thoughts, hidden, spoken(say("Hi.")))

    assert blocks(reply)[:3] == [
        ReasoningPart(text="First.\n\nThen.", state=told),
        ReasoningPart(text="Hm.", state=open_thoughts),
        ReasoningPart(text="", state=hidden),
    ]
    assert len(reply.messages) == 1


def test_an_option_call_keeps_its_argument_text() -> None:
    """Each call is a message of its own; names come back as the options have them; the item's fields are state."""
    reply = decode(chosen(arguments='{ "b":1,"a":2 }', namespace="n"), chosen(call_id="call_2", name="my_weather_1a2b"))

    state = {"id": "fc_1", "status": "completed"}
    assert [message.call for message in reply.option_calls] == [
        OptionCallPayload(
            invocation_id="call_1", option_name="weather", arguments={"a": 2, "b": 1},
            raw_arguments='{ "b":1,"a":2 }', state={**state, "namespace": "n"},
        ),
        OptionCallPayload(invocation_id="call_2", option_name="my weather", raw_arguments="{}", state=state),
    ]  # fmt: skip
    assert reply.finish_reason == "option_calls"


def test_arguments_that_are_no_object_mark_the_call() -> None:
    """A call that was cut off can be answered with an error."""
    (call,) = blocks(decode(chosen(arguments='{"city": "Ro', status="incomplete")))

    assert (call.invalid_arguments, call.raw_arguments) == (True, '{"city": "Ro')


def test_a_made_image_is_a_medium() -> None:
    """Its base64 is the data URL's, what else the call says is state."""
    item = {"id": "ig_1", "type": "image_generation_call", "status": "completed", "output_format": "jpeg"}
    reply = decode(
        {**item, "result": "/9j/", "revised_prompt": "A hat."}, {**item, "output_format": None, "result": "iVBO"}
    )

    assert reply.media[0] == MediaPart(
        modality="image", url="data:image/jpeg;base64,/9j/", prompt_hint="A hat.",
        state={"item": {**item, "revised_prompt": "A hat."}},
    )  # fmt: skip
    assert reply.media[1].url == "data:image/png;base64,iVBO"


@pytest.mark.parametrize("fields", [{"result": None}, {"result": "PHN2Zz4=", "output_format": "svg"}, {"result": 5}])
def test_an_image_call_without_an_image_that_can_be_carried_is_opaque(fields: dict[str, Any]) -> None:
    """One that failed, and a drawing that could run scripts (UP-22)."""
    item = {"id": "ig_1", "type": "image_generation_call", "status": "failed", **fields}

    assert blocks(decode(item)) == [OpaquePart(dialect="openai.responses", block=item)]


@pytest.mark.parametrize(
    ("item", "pair_id", "pair"),
    [
        ({"type": "web_search_call", "id": "ws_1", "action": {"type": "search"}}, None, None),
        ({"type": "computer_call", "id": "cu_1", "call_id": "call_1"}, "call_1", "opens"),
        ({"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_1", "input": "4 + 4"}, "call_1", "opens"),
        ({"type": "local_shell_call", "id": "lsh_1", "call_id": "call_1"}, "call_1", "opens"),
        ({"type": "mcp_approval_request", "id": "mcpr_1", "arguments": "{}"}, "mcpr_1", "opens"),
        ({"type": "shell_call_output", "id": "sho_1", "call_id": "call_1"}, "call_1", "closes"),
        ({"type": "tool_search_call", "id": "tsc_1", "call_id": None, "execution": "server"}, None, None),
        ({"type": "tool_search_call", "id": "tsc_1", "call_id": "call_1", "execution": "client"}, "call_1", "opens"),
        ({"type": "program", "id": "cm_1", "call_id": "call_1", "code": "1"}, None, None),
        ({"type": "tomorrows_call", "id": "tc_1", "call_id": "call_1"}, None, None),
        ("no item at all", None, None),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else "",
)
def test_every_other_item_is_kept_to_the_letter(item: Any, pair_id: str | None, pair: Any) -> None:
    """The vendor's own calls and their outputs are paired by the id that they share."""
    expected = OpaquePart(dialect="openai.responses", block=item, pair_id=pair_id, pair=pair)

    assert blocks(decode(item)) == [expected]
    assert blocks(decode(item))[0].block_json == expected.block_json


REFUSED = spoken({"type": "refusal", "refusal": "No."})


@pytest.mark.parametrize(
    ("fields", "output", "reason", "raw"),
    [
        ({"status": "completed"}, spoken(say("Hi.")), "stop", "completed"),
        ({"status": "completed"}, chosen(), "option_calls", "completed"),
        ({"status": "completed"}, REFUSED, "content_filter", "completed"),
        ({"incomplete_details": {"reason": "max_output_tokens"}}, chosen(), "length", "max_output_tokens"),
        ({"incomplete_details": {"reason": "content_filter"}}, spoken(say("")), "content_filter", "content_filter"),
        ({"incomplete_details": {"reason": "steered"}}, spoken(say("Hi.")), "paused", "steered"),
        ({"incomplete_details": {"reason": "max_messages"}}, spoken(say("Hi.")), "other", "max_messages"),
        ({"status": "in_progress"}, spoken(say("Hi.")), "other", "in_progress"),
        ({"status": "cancelled"}, None, "error", "cancelled"),
        ({"status": "failed"}, None, "error", "failed"),
        ({"status": "dreaming"}, None, "other", "dreaming"),
        ({"status": None}, spoken(say("Hi.")), "other", None),
    ],
    ids=str,
)
def test_status_and_reason_have_one_neutral_name(
    fields: dict[str, Any], output: Any, reason: str, raw: str | None
) -> None:
    """Wire-rules §4; the vendor's own word stays beside it."""
    status = {"status": "incomplete"} if "incomplete_details" in fields else {}
    reply = decode(*([output] if output else []), **{**status, **fields})

    assert (reply.finish_reason, reply.raw_finish_reason) == (reason, raw)


CUSTOM = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_1", "name": "sum", "input": "4 + 4"}
SHELL = {"type": "shell_call", "id": "sh_1", "call_id": "call_1", "action": {"commands": ["ls"]}, "environment": None}
RAN = {"type": "shell_call_output", "id": "sho_1", "call_id": "call_1", "output": []}
FINDING = {"type": "tool_search_call", "id": "tsc_1", "call_id": "call_1", "arguments": {}}


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ([CUSTOM], "native_calls"),
        ([SHELL], "native_calls"),
        ([{"type": "local_shell_call", "id": "lsh_1", "call_id": "call_1"}], "native_calls"),
        ([{"type": "computer_call", "id": "cu_1", "call_id": "call_1"}], "native_calls"),
        ([{"type": "apply_patch_call", "id": "apc_1", "call_id": "call_1"}], "native_calls"),
        ([{"type": "mcp_approval_request", "id": "mcpr_1", "arguments": "{}"}], "native_calls"),
        ([{**FINDING, "execution": "client"}], "native_calls"),
        ([spoken(say("Let me see.")), CUSTOM], "native_calls"),
        ([chosen(), CUSTOM], "native_calls"),
        ([SHELL, RAN, CUSTOM | {"call_id": "call_2"}], "native_calls"),
        ([SHELL, RAN, spoken(say("Done."))], "stop"),
        ([{**SHELL, "environment": {"type": "container_reference", "container_id": "c"}}], "stop"),
        ([{**FINDING, "execution": "server"}], "stop"),
        ([{"type": "web_search_call", "id": "ws_1", "status": "completed"}, spoken(say("Found."))], "stop"),
        ([{"type": "mcp_call", "id": "mcp_1", "output": "x"}, spoken(say("Found."))], "stop"),
        ([REFUSED, CUSTOM], "content_filter"),
    ],
)
def test_a_call_that_the_client_must_answer_ends_a_reply_as_one_of_native_calls(output: list[Any], reason: str) -> None:
    """The block is at hand; what the vendor ran by itself waits for nobody."""
    reply = decode(*output)

    assert (reply.finish_reason, reply.raw_finish_reason) == (reason, "completed")
    if reason == "native_calls":
        assert blocks(reply)[-1] == OpaquePart(
            dialect="openai.responses",
            block=output[-1],
            pair_id=output[-1].get("call_id", output[-1]["id"]),
            pair="opens",
        )
    cut = decode(*output, status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    assert cut.finish_reason == "length"


@pytest.mark.parametrize("status", ["queued", "in_progress"])
def test_an_answer_that_is_not_made_yet_says_what_is_to_be_done(status: str) -> None:
    """A background response at once holds nothing: a loop that took it for a reply would ask again, or end."""
    with pytest.raises(CallError, match=f"answered {status!r}.*response resp_1.*stream it") as raised:
        decode(status=status, background=True)

    error = raised.value
    assert (error.code, error.request_id, error.retryable) == (status, "req_1", False)


def test_reasoning_that_the_server_left_out_of_the_request_is_a_loss() -> None:
    """Law 2: the server removes by itself what it cannot use, and says so."""
    change = {"type": "reasoning", "id": "rs_1", "action": "removed", "reason": "model_mismatch"}

    assert decode(input_transformations=[change]).losses == (
        Loss(kind="dropped", path="input_transformations[0]", reason="the server removed rs_1 (model_mismatch)"),
    )
