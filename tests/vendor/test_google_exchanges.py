"""All that Google's own services returned decodes with nothing lost, streams as well, and goes back whole.

The vendor's own samples, some of whose words are invented, are read like all others.
"""

import dataclasses
import json

import pytest
import sabir
from sabir.contract.scope import DecodeScope
from sabir.errors import (
    AuthenticationFailed,
    CallError,
    InvalidRequest,
    ModelNotFound,
    PermissionDenied,
    RateLimited,
    RenderingRefused,
)
from sabir.rendering.renderer import Renderer
from sabir.vocabulary.messages import Message, OptionCallPayload, OptionResultPayload
from sabir.vocabulary.parts import TextPart
from sabir.vocabulary.reply import Reply
from sabir.vocabulary.target import Target
from sabir_google.dialect import GENERATE_CONTENT
from sabir_google.services import VERTEX

from tests.vendor.google_support import accumulated, differences, normal, said, supports, without_losses
from tests.vendor.support import Exchange, exchanges, fold, missing, scope_for

ALL = exchanges("gemini.generateContent")
REFUSED = [each for each in ALL if isinstance(each.response, dict) and "error" in each.response]
WHOLE = [each for each in ALL if each.events is None and each not in REFUSED]
STREAMED = [each for each in ALL if each.events is not None]
REQUESTS = [each for each in ALL if each.request]

STATUSES: dict[str, type[CallError]] = {
    "FAILED_PRECONDITION": InvalidRequest,
    "INVALID_ARGUMENT": InvalidRequest,
    "NOT_FOUND": ModelNotFound,
    "PERMISSION_DENIED": PermissionDenied,
    "RESOURCE_EXHAUSTED": RateLimited,
}


def each(chosen: list[Exchange]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("exchange", chosen, ids=lambda exchange: exchange.id)


def scope(exchange: Exchange) -> DecodeScope:
    return scope_for(exchange, GENERATE_CONTENT.name, "google")


def stream(exchange: Exchange) -> bytes:
    """A stream's bytes; of one that was asked for as an array of chunks, those of the same chunks as events."""
    is_array = (exchange.sse or "").startswith("[")
    return dataclasses.replace(exchange, sse=None).stream if is_array else exchange.stream


def read(exchange: Exchange) -> tuple[dict[str, object], Reply]:
    """What an exchange said as one response, and its reply."""
    if exchange.events is None:
        return exchange.response, GENERATE_CONTENT.decode(exchange.body, scope(exchange))
    return accumulated(exchange.events), fold(GENERATE_CONTENT, stream(exchange), scope(exchange))


def test_every_exchange_is_looked_at() -> None:
    """No exchange is left out of the tests below."""
    assert (len(WHOLE), len(STREAMED), len(REFUSED), len(REQUESTS)) == (321, 119, 14, 420)
    assert len(ALL) == 454


@each(WHOLE + STREAMED)
def test_an_answer_decodes_with_nothing_lost(exchange: Exchange) -> None:
    """Laws 2 and 8: every part, signature, figure, rating and reason is in the reply; a stream's as they add up."""
    response, reply = read(exchange)

    assert differences(response, reply) == []
    within = ("role", "parts[].thought", "parts[].inlineData.mimeType")
    ignored = ("candidates[].index", *(f"candidates[].content.{path}" for path in within))
    assert missing(response, reply, ignored=ignored) == []
    assert reply.losses == ()
    assert reply.finish_reason != "other" or reply.raw_finish_reason in (None, "FAKE_NEW_FINISH_REASON")


@each([each for each in WHOLE + STREAMED if "grounding" in each.features])
def test_grounding_is_told_in_characters_of_the_reply(exchange: Exchange) -> None:
    """The vendor's bytes, one off at times, become characters: what is cited is what the segment says."""
    response, reply = read(exchange)
    citations = [(part.text, each) for part in said(reply) if isinstance(part, TextPart) for each in part.citations]
    cited = [(each.source["support"], text[each.start : each.end]) for text, each in citations]

    assert [words for _, words in cited] == [support["segment"]["text"] for support, _ in cited]
    for support in supports(response):
        assert support in [each for each, _ in cited]


@each(WHOLE + STREAMED)
def test_a_reply_sent_back_keeps_every_part(exchange: Exchange) -> None:
    """Law 3: every part in its order, with its signature; what cannot go back is a loss."""
    response, reply = read(exchange)
    candidates = response.get("candidates") or [{}]
    parts = [part for part in (candidates[0].get("content") or {}).get("parts", ()) if part and part != {"text": ""}]
    history = [sabir.user("Hello."), *reply.messages]
    for call in said(reply):
        if isinstance(call, OptionCallPayload):
            answer = OptionResultPayload(invocation_id=call.invocation_id, option_name=call.option_name, result="18 °C")
            history.append(Message(policy=call.option_name, payload=answer))
    target = Target(provider="google", dialect=GENERATE_CONTENT.name, model=reply.origin.model)
    rendering = Renderer(GENERATE_CONTENT, target).render([*history, sabir.user("Go on.")])
    sent = rendering.body["contents"]

    for part in parts:
        if "functionCall" in part:
            part["functionCall"] = {"args": {}, **part["functionCall"]}
    while parts and parts[-1].get("thought"):
        parts.pop()
    if parts:
        assert [dict(part) for part in sent[1]["parts"]] == parts
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    answers = [part["functionResponse"] for part in sent[2]["parts"]] if calls else []
    assert [(call["name"], call.get("id")) for call in calls] == [(each["name"], each.get("id")) for each in answers]


@each(REFUSED)
def test_an_error_body_is_the_error_that_it_says(exchange: Exchange) -> None:
    """Wire-rules §6: the details decide before the status."""
    told = exchange.response["error"]
    error = GENERATE_CONTENT.decode_error(exchange.status or told["code"], {}, exchange.body, "google")
    is_key = "API key not valid" in told["message"]

    assert type(error) is (AuthenticationFailed if is_key else STATUSES[told["status"]])
    assert (error.code, error.status) == (told["status"], told["code"])
    assert told["message"].rstrip(".")[:200] in str(error)
    assert error.retry_after == (34.4 if told["code"] == 429 else None)


def renderer(exchange: Exchange) -> Renderer:
    """Of the service that was asked."""
    target = sabir.dialect(GENERATE_CONTENT.name).target
    return Renderer(GENERATE_CONTENT, target, quirks=frozenset({VERTEX} if "aiplatform" in exchange.host else ()))


@each(REQUESTS)
def test_a_stored_request_goes_back_as_it_was(exchange: Exchange) -> None:
    """Laws 2 and 3 for what was stored elsewhere: what is not in the rendering is in the losses."""
    history = sabir.dialect(GENERATE_CONTENT.name).decode_history(exchange.request)
    expected = normal(without_losses(exchange.request, history.losses))
    try:
        rendering = renderer(exchange).render(history.messages, history.options, history.settings)
    except RenderingRefused:
        assert expected["contents"] == []
        return

    body = json.loads(rendering.body_bytes)
    if any(loss.path == "contents" for loss in rendering.losses):
        assert body["contents"].pop() == {"role": "user", "parts": [{"text": "…"}]}
    assert normal(body) == expected
