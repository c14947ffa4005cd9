"""Test what the kit cannot know of Lantern: signatures, lines, codes in a header, and unknown fields.

The stand-in of service.py checks the signature and the talk of every request that these tests send.
"""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
import sabir
from sabir.authoring import DecodeScope, ServerEvent
from sabir.errors import AuthenticationFailed, ContentFiltered, ContextTooLong, RateLimited, ResponseInvalid
from sabir_lantern.dialect import CONTENT_TYPE, SAY
from sabir_lantern.signing import signature, signer
from service import KEYS, running

KEY_ID, SECRET = next(iter(KEYS.items()))
KEY = {"key_id": KEY_ID, "secret": SECRET}
SCOPE = DecodeScope(sabir.adapter("lantern:small").target)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running() as address:
        yield address


@sabir.option
def weather(city: str) -> str:
    """Current weather in a city."""
    return f"18 °C in {city}"


def events(data: bytes, size: int) -> list[ServerEvent]:
    """Return the events of a stream whose chunks have this size."""
    framing = SAY.framing(f"{CONTENT_TYPE}; charset=utf-8")
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    return [*(event for chunk in chunks for event in framing.feed(chunk)), *framing.close()]


def decode(**answer: Any) -> sabir.Reply:
    return SAY.decode(json.dumps(answer).encode(), SCOPE)


def test_the_signature_covers_key_id_date_and_body() -> None:
    """The first value is `printf 'id\\nnow\\n{}' | openssl dgst -sha256 -hmac secret`."""
    assert signature("id", "secret", "now", b"{}") == "927d28e51ff58ac4f2dd43b3cf97c0a6546acb6e2c6e5bc2118d981245b939dd"
    changed = [("ID", "now", b"{}"), ("id", "then", b"{}"), ("id", "now", b"[]")]
    assert len({signature(key_id, "secret", date, body) for key_id, date, body in changed}) == len(changed)


def test_the_service_accepts_signed_calls_sync_async_and_streamed(url: str) -> None:
    with sabir.adapter("lantern:small", api_key=KEY, base_url=url) as llm:
        with llm.stream_sync("How bright?") as stream:
            pieces = [event.text for event in stream if isinstance(event, sabir.BlockDelta)]
        texts = {llm.complete_sync("How bright?").text, asyncio.run(llm.complete("How bright?")).text, "".join(pieces)}

    assert texts == {"By lantern light: How bright?"}
    assert len(pieces) > 2


def test_the_service_refuses_another_secret(url: str) -> None:
    llm = sabir.adapter("lantern:small", api_key={**KEY, "secret": "guessed"}, base_url=url)

    with pytest.raises(AuthenticationFailed) as failed:
        llm.complete_sync("How bright?")

    assert (failed.value.code, failed.value.status) == ("bad_signature", 401)
    assert "the signature is wrong" in str(failed.value)
    assert "guessed" not in str(failed.value)


def test_a_function_can_return_the_keys(url: str) -> None:
    with sabir.adapter("lantern:small", api_key=lambda: KEY, base_url=url) as llm:
        assert llm.complete_sync("How bright?").finish_reason == "stop"


def test_a_users_client_signs_with_its_own_auth(url: str) -> None:
    import httpx2

    with httpx2.Client(base_url=url, auth=signer(KEY_ID, SECRET)) as client:
        assert sabir.adapter("lantern:small", client=client).complete_sync("How bright?").text


def test_thoughts_and_calls_go_back_as_they_came(url: str) -> None:
    settings = sabir.Settings(reasoning_effort="high")
    with sabir.adapter("lantern:small", api_key=KEY, base_url=url, settings=settings) as llm:
        chat = [sabir.user("The weather in Oslo and in Rome?")]
        reply = llm.complete_sync(chat, options=[weather])
        chat += [*reply.messages, *sabir.answer_sync(reply, [weather]), sabir.user("Thank you, lantern.")]
        rendering = llm.render(chat, options=[weather])
        last = llm.complete_sync(chat, options=[weather])

    _, machine, human = json.loads(rendering.body_bytes)["talk"]
    assert [part["kind"] for part in machine["parts"]] == ["thought", "call", "call"]
    assert [part["args"] for part in machine["parts"][1:]] == [{"city": "Oslo"}, {"city": "Rome"}]
    assert all(part["trace"] == part["id"] for part in machine["parts"][1:])
    assert [part["kind"] for part in human["parts"]] == ["result", "result", "text"]
    assert last.text == "18 °C in Oslo 18 °C in Rome"
    assert not rendering.losses


@pytest.mark.parametrize("size", range(1, 12))
def test_lines_end_at_line_feeds_only(size: int) -> None:
    texts = ["a\u2028b\u2029c", "d\x85e", "f\x1cg\x0bh", "ä€😀"]
    data = "\n\n".join(json.dumps({"text": text}, ensure_ascii=False) for text in texts).encode()

    assert [json.loads(event.data)["text"] for event in events(data, size)] == texts


def test_invalid_bytes_of_a_line_are_replaced_and_reported() -> None:
    framing = SAY.framing(CONTENT_TYPE)

    assert framing.feed(b'{"text": "\xff"}\n') == [ServerEvent('{"text": "\ufffd"}')]
    assert framing.was_invalid


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [(400, "too_long", ContextTooLong), (400, "not_allowed", ContentFiltered), (418, "slow_down", RateLimited)],
)
def test_the_code_in_the_header_decides(status: int, code: str, kind: type[sabir.CallError]) -> None:
    error = SAY.decode_error(status, {"x-lantern-error": code}, "Außer Öl".encode(), "lantern")

    assert (type(error), error.code, error.status) == (kind, code, status)
    assert "Außer Öl" in str(error)


def test_a_failure_in_a_stream_is_raised() -> None:
    line = json.dumps({"is": "fail", "code": "slow_down", "text": "seven seconds, please"})

    with pytest.raises(RateLimited, match="seven seconds, please"):
        list(SAY.decoder(SCOPE).feed(ServerEvent(line)))


def test_a_text_without_a_part_is_invalid() -> None:
    with pytest.raises(ResponseInvalid, match="has not begun"):
        list(SAY.decoder(SCOPE).feed(ServerEvent('{"is": "more", "text": "lost"}')))


def test_unknown_fields_of_an_answer_are_preserved() -> None:
    parts = [{"kind": "text", "text": "Hi.", "warmth": 0.5}, {"kind": "glow", "lumen": 12}]
    usage = {"in": 7, "out": 2, "cached": 3, "oil": 1}
    reply = decode(id="say-1", model="small", parts=parts, finish="done", usage=usage, weather="fog")
    body = sabir.adapter("lantern:small").render([sabir.user("Hello"), *reply.messages, sabir.user("And?")]).body

    assert json.loads(json.dumps(body["talk"][1], default=dict))["parts"] == parts
    assert reply.details == {"weather": "fog"}
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cache_read_tokens) == (7, 2, 3)
    assert reply.usage.details == usage


@pytest.mark.parametrize(
    ("finish", "reason"),
    [("done", "stop"), ("cut", "length"), ("asks", "option_calls"), ("blocked", "content_filter"), ("dimmed", "other")],
)
def test_finish_reasons_are_mapped(finish: str, reason: str) -> None:
    reply = decode(parts=[{"kind": "text", "text": "Hi."}], finish=finish)

    assert (reply.finish_reason, reply.raw_finish_reason) == (reason, finish)
    assert reply.usage.input_tokens is None


@pytest.mark.parametrize(
    ("effort", "level"), [("low", "quick"), ("high", "deep"), ("max", "deep"), ("minimal", "quick")]
)
def test_an_effort_is_one_of_two_levels(effort: Any, level: str) -> None:
    rendering = sabir.adapter("lantern:small").render("Hi.", settings=sabir.Settings(reasoning_effort=effort))

    assert rendering.body["effort"] == level
    assert bool(rendering.losses) == (effort not in ("low", "high"))


def test_audio_is_refused() -> None:
    question = sabir.user("What is this?", sabir.audio("data:audio/wav;base64,UklGRg=="))
    rendering = sabir.adapter("lantern:small").render(question)

    assert "audio" in rendering.losses[0].reason
    assert [part["kind"] for part in rendering.body["talk"][0]["parts"]] == ["text", "text"]
