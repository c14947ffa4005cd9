"""All that Anthropic returned decodes with nothing lost, streams as well, and goes back whole; so do requests.

What a request and its rendering may differ in is spelled out in tests/vendor/anthropic_support.py.
"""

import json
from typing import Any

import pytest
import sabir
from sabir.base.losses import Loss
from sabir.contract.dialect import DecodedHistory
from sabir.errors import (
    AuthenticationFailed,
    CallError,
    ContextTooLong,
    InvalidRequest,
    ModelNotFound,
    RateLimited,
    RenderingRefused,
)
from sabir_anthropic.dialect import MESSAGES

from tests.vendor.anthropic_support import (
    accumulate,
    differences,
    expected_blocks,
    lost_blocks,
    normal,
    sent_back,
    without_losses,
)
from tests.vendor.support import Exchange, exchanges, fold, missing, scope_for

ALL = exchanges("anthropic.messages")
REFUSED = [exchange for exchange in ALL if (exchange.status or 200) >= 400]
STREAMED = [exchange for exchange in ALL if exchange.events is not None and exchange not in REFUSED]
WHOLE = [exchange for exchange in ALL if exchange.events is None and exchange not in REFUSED]
ASKED = [exchange for exchange in ALL if exchange.request]

TYPES: dict[str, type[CallError]] = {
    "authentication_error": AuthenticationFailed,
    "invalid_request_error": InvalidRequest,
    "not_found_error": ModelNotFound,
    "rate_limit_error": RateLimited,
}
SETTINGS = {"temperature": "temperature", "top_p": "top_p", "vendor.anthropic.top_k": "top_k"}
"""Setting of a rendering's loss → the field of a request that it names."""


def each(chosen: list[Exchange]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("exchange", chosen, ids=lambda exchange: exchange.id)


def scope(exchange: Exchange) -> Any:
    return scope_for(exchange, MESSAGES.name, "anthropic")


def test_every_exchange_is_looked_at() -> None:
    """No exchange is left out of the tests below."""
    assert (len(WHOLE), len(STREAMED), len(REFUSED), len(ASKED)) == (358, 153, 17, 506)
    assert len(WHOLE) + len(STREAMED) + len(REFUSED) == len(ALL)


@each(WHOLE)
def test_a_response_decodes_with_nothing_lost(exchange: Exchange) -> None:
    """Law 2 for decoding: every block, argument, citation, signature, figure and reason is in the reply."""
    reply = MESSAGES.decode(exchange.body, scope(exchange))

    assert differences(exchange.response, reply) == []
    assert missing(exchange.response, reply, ignored=("content[].type", "type", "role")) == []
    assert reply.losses == ()


@each(STREAMED)
def test_a_stream_folds_to_the_message_that_its_events_put_together(exchange: Exchange) -> None:
    """Law 8, against an accumulation that shares no code with the decoder."""
    message = accumulate(exchange.events or [])
    reply = fold(MESSAGES, exchange.stream, scope(exchange))
    whole = MESSAGES.decode(json.dumps(message).encode(), scope(exchange))

    assert differences(message, reply) == []
    assert [a.same_content(b) for a, b in zip(reply.messages, whole.messages, strict=True)] == [True] * len(
        reply.messages
    )
    assert reply.model_copy(update={"messages": ()}) == whole.model_copy(update={"messages": ()})


@each(WHOLE + STREAMED)
def test_a_reply_sent_back_keeps_every_block(exchange: Exchange) -> None:
    """Law 3: what goes back is every block in its order, to the letter; what cannot go back is a loss."""
    if exchange.events is None:
        content, reply = exchange.response["content"], MESSAGES.decode(exchange.body, scope(exchange))
    else:
        content = accumulate(exchange.events)["content"]
        reply = fold(MESSAGES, exchange.stream, scope(exchange))
    rendering, expected = sent_back(reply), expected_blocks(content)
    said = [message for message in rendering.body["messages"] if message["role"] == "assistant"]

    assert [block for message in said for block in message["content"]] == expected
    spoken = [block for block in content if block["type"] != "text" or block["text"]]
    assert [loss.kind for loss in rendering.losses] == ["dropped"] * (len(spoken) - len(expected))


@each(REFUSED)
def test_an_error_body_is_the_error_that_it_says(exchange: Exchange) -> None:
    """Wire-rules §6: the words of a long prompt, else the type."""
    error = MESSAGES.decode_error(exchange.status, {"request-id": "req_1"}, exchange.body, "anthropic")
    said = exchange.response["error"]

    assert type(error) is (ContextTooLong if "prompt is too long" in said["message"] else TYPES[said["type"]])
    assert (error.status, error.request_id, error.code) == (exchange.status, "req_1", said["type"])
    assert said["message"].rstrip(".")[:120] in str(error)


def rendered(history: DecodedHistory) -> tuple[dict[str, Any] | None, tuple[Loss, ...]]:
    """The request that a history renders to, None where nothing of it may be sent, and the losses."""
    try:
        rendering = sabir.dialect(MESSAGES.name).render(
            history.messages, model=history.model, options=history.options, settings=history.settings
        )
    except RenderingRefused as refused:
        return None, refused.losses
    body = json.loads(rendering.body_bytes)
    if rendering.streaming:
        assert body.pop("stream") is True  # a long answer, whoever asks
    return body, rendering.losses


@each(ASKED)
def test_a_stored_request_goes_back_as_it_was(exchange: Exchange) -> None:
    """Laws 2 and 3 for what was stored elsewhere: what is not in the rendering is in the losses."""
    request = exchange.request or {}
    history = sabir.dialect(MESSAGES.name).decode_history(request)
    body, losses = rendered(history)
    sent = without_losses(request, history.losses)
    for loss in losses:
        name = loss.path.removeprefix("settings.")
        if loss.kind == "dropped" and name in SETTINGS:
            sent.pop(SETTINGS[name])
    expected = normal(sent, lost_blocks(history, losses))
    if body is None:
        assert "messages" not in expected
        return
    if any(loss.kind == "synthesized" and loss.path == "messages" for loss in losses):
        body["messages"].pop()

    assert normal(body, []) == expected
