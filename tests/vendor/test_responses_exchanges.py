"""All that OpenAI's Responses service returned decodes with nothing lost, streams as well, and goes back whole."""

import json

import pytest
from sabir.contract.framing import ServerEvent
from sabir.errors import (
    AuthenticationFailed,
    CallError,
    ContextTooLong,
    InvalidRequest,
    ModelNotFound,
    QuotaExceeded,
)
from sabir.reading.fold import Fold
from sabir_openai.responses_dialect import RESPONSES

from tests.vendor.responses_support import (
    TERMINAL,
    differences,
    done_items,
    expected_items,
    final_response,
    readable,
    sent_back,
)
from tests.vendor.support import Exchange, exchanges, fold, missing, scope_for

ALL = exchanges("openai.responses")
REFUSED = [exchange for exchange in ALL if (exchange.status or 200) >= 400]
ANSWERED = [exchange for exchange in ALL if exchange.events is None and exchange not in REFUSED]
UNMADE = [exchange for exchange in ANSWERED if exchange.response["status"] == "queued"]
WHOLE = [exchange for exchange in ANSWERED if exchange not in UNMADE]
STREAMED = [exchange for exchange in ALL if exchange.events is not None and "stream_error" not in exchange.features]
FAILED = [exchange for exchange in ALL if "stream_error" in exchange.features]

CODES: dict[str, type[CallError]] = {
    "context_length_exceeded": ContextTooLong,
    "decimal_below_min_value": InvalidRequest,
    "insufficient_quota": QuotaExceeded,
    "invalid_api_key": AuthenticationFailed,
    "invalid_json_schema": InvalidRequest,
    "model_not_found": ModelNotFound,
    "unsupported_file": InvalidRequest,
    "unsupported_value": InvalidRequest,
}


def each(chosen: list[Exchange]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("exchange", chosen, ids=lambda exchange: exchange.id)


def test_every_exchange_is_looked_at() -> None:
    """No exchange is left out of the tests below."""
    counts = [len(chosen) for chosen in (WHOLE, UNMADE, STREAMED, REFUSED, FAILED)]
    assert counts == [366, 4, 163, 16, 1]
    assert len(ALL) == 550


@each(WHOLE)
def test_a_response_decodes_with_nothing_lost(exchange: Exchange) -> None:
    """Law 2 for decoding: every item, part, argument text, citation, figure and reason is in the reply."""
    reply = RESPONSES.decode(exchange.body, scope_for(exchange, RESPONSES.name))

    assert differences(exchange.response, reply) == []
    body = {"output": exchange.response["output"], "usage": exchange.response["usage"]}
    assert missing(body, reply, ignored=("output[].type",)) == []
    assert reply.losses == ()


@each(UNMADE)
def test_an_answer_that_is_not_made_yet_is_none(exchange: Exchange) -> None:
    """The vendor holds it under its id, and makes it in the background."""
    with pytest.raises(CallError, match=exchange.response["id"]):
        RESPONSES.decode(exchange.body, scope_for(exchange, RESPONSES.name))


@each(STREAMED)
def test_a_stream_folds_to_its_final_response(exchange: Exchange) -> None:
    """Law 8; what is encrypted is encrypted anew in the final response, and the vendor asks for the done item's own."""
    scope = scope_for(exchange, RESPONSES.name)
    final, done = final_response(exchange.events or []), done_items(exchange.events or [])
    reply = fold(RESPONSES, exchange.stream, scope)
    whole = RESPONSES.decode(json.dumps({**final, "output": done}).encode(), scope)

    assert [readable(item) for item in done] == [readable(item) for item in final["output"]]
    assert differences({**final, "output": done}, reply) == []
    assert [a.same_content(b) for a, b in zip(reply.messages, whole.messages, strict=True)] == [True] * len(
        whole.messages
    )
    assert reply.model_copy(update={"messages": ()}) == whole.model_copy(update={"messages": ()})


@each(STREAMED)
def test_a_stream_that_only_its_final_response_tells_of_folds_alike(exchange: Exchange) -> None:
    """Law 8: an item that no event of its own ended is read from the final response."""
    scope = scope_for(exchange, RESPONSES.name)
    whole = RESPONSES.decode(json.dumps(final_response(exchange.events or [])).encode(), scope)
    for is_told in (
        lambda event: event["type"] in TERMINAL,
        lambda event: event["type"] not in ("response.output_item.done", "response.output_item.added"),
    ):
        folded, decoder = Fold(scope), RESPONSES.decoder(scope)
        for wire in filter(is_told, exchange.events or []):
            for event in decoder.feed(ServerEvent(json.dumps(wire))):
                folded.feed(event)
        reply = folded.reply()

        assert [a.same_content(b) for a, b in zip(reply.messages, whole.messages, strict=True)] == [True] * len(
            whole.messages
        )


@each(WHOLE + STREAMED)
def test_a_reply_sent_back_keeps_every_item(exchange: Exchange) -> None:
    """Law 3: what goes back is every item in its order, to the letter; what cannot go back is a loss."""
    scope = scope_for(exchange, RESPONSES.name)
    if exchange.events is None:
        output, reply = exchange.response["output"], RESPONSES.decode(exchange.body, scope)
    else:
        output, reply = done_items(exchange.events), fold(RESPONSES, exchange.stream, scope)
    rendering, expected = sent_back(reply), expected_items(output)

    assert rendering.body["input"][1 : 1 + len(expected)] == expected
    after = rendering.body["input"][1 + len(expected) :]
    assert {item["type"] for item in after} <= {
        "message", "function_call_output", "apply_patch_call_output", "custom_tool_call_output",
        "local_shell_call_output", "mcp_approval_response", "tool_search_output",
    }  # fmt: skip
    lost = len(output) - len(expected)
    bound = [item for item in output if lost and item["type"] in ("message", "function_call") and "id" in item]
    freed = sum(len(item.get("content", [item])) for item in bound)
    assert [loss.kind for loss in rendering.losses] == ["dropped"] * lost + ["withheld"] * freed


@each(REFUSED)
def test_an_error_body_is_the_error_that_it_says(exchange: Exchange) -> None:
    """Wire-rules §6: the code decides."""
    error = RESPONSES.decode_error(exchange.status, {"x-request-id": "req_1"}, exchange.body, "openai")

    assert type(error) is CODES[exchange.response["error"]["code"]]
    assert (error.status, error.request_id) == (exchange.status, "req_1")
    assert exchange.response["error"]["message"].rstrip(".") in str(error)


@each(FAILED)
@pytest.mark.parametrize("skipped", ["", "error"])
def test_a_stream_that_fails_raises_what_it_reports(exchange: Exchange, skipped: str) -> None:
    """Whether the `error` event is there or `response.failed` alone."""
    decoder = RESPONSES.decoder(scope_for(exchange, RESPONSES.name))
    told = [wire for wire in exchange.events or [] if wire["type"] != skipped]

    with pytest.raises(QuotaExceeded, match="exceeded your current quota"):
        for wire in told:
            list(decoder.feed(ServerEvent(json.dumps(wire))))
