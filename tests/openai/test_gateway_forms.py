"""Forms that gateways give to answers, errors and requests, beside those that recordings have (tests/vendor).

    answer, chunk, error ──▶ the same reply or error, whole and streamed     stored request ──▶ the row's settings

The rows are those of the package; no test here reads their files.
"""

from functools import partial
from typing import Any

import pytest
import sabir
from sabir.contract.scope import DecodeScope
from sabir.errors import CallError, ContextTooLong, InvalidRequest, RateLimited, ServerFailed
from sabir.vocabulary.messages import Message, OptionCallPayload, OptionResultPayload
from sabir.vocabulary.parts import MediaPart
from sabir.vocabulary.reply import BlockDelta
from sabir.vocabulary.settings import Target

from tests.providers import wires
from tests.providers.wires import same

SCOPE = DecodeScope(target=Target(provider="openrouter", dialect="openai.chat", model="m"))
PDF = "data:application/pdf;base64,JVBERi0="
MP4 = "https://e.org/v.mp4"


events, folded, whole = partial(wires.events, SCOPE), partial(wires.fold, SCOPE), partial(wires.whole, SCOPE)


def body(**choice: Any) -> dict[str, Any]:
    return {"id": "r", "model": "m", "choices": [{"index": 0, "finish_reason": "stop", **choice}]}


def chunks(*deltas: Any) -> list[dict[str, Any]]:
    pieces = [{"id": "r", "model": "m", "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    return [*pieces, {"id": "r", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]


def detail(index: int | None = 0, kind: str = "text", **fields: str) -> dict[str, Any]:
    return {"type": f"reasoning.{kind}", **({} if index is None else {"index": index}), **fields}


DETAILS: list[tuple[list[Any], list[Any]]] = [
    ([detail(text="a"), detail(text="b"), detail(text="", signature="s")], [detail(text="ab", signature="s")]),
    ([detail(text="a", signature=""), detail(signature="s")], [detail(text="a", signature="s")]),
    ([detail(text="a"), detail(signature="s"), detail(text="b")], [detail(text="a", signature="s"), detail(text="b")]),
    ([detail(text="a"), detail(text="b"), detail(1, text="c")], [detail(text="ab"), detail(1, text="c")]),
    ([detail(kind="summary", summary="a", id="1"), detail(kind="summary", summary="b", id="2")],
     [detail(kind="summary", summary="a", id="1"), detail(kind="summary", summary="b", id="2")]),
    ([detail(kind="encrypted", data="x"), detail(kind="encrypted", data="x")],
     [detail(kind="encrypted", data="x"), detail(kind="encrypted", data="x")]),
    ([detail(None, text="a"), detail(None, text="b")], [detail(None, text="ab")]),
]  # fmt: skip
"""Pieces of details, and the details that they are."""


@pytest.mark.parametrize(("pieces", "details"), DETAILS)
def test_pieces_of_reasoning_are_the_details_of_a_whole_answer(pieces: list[Any], details: list[Any]) -> None:
    """A signature ends a detail, encrypted ones are never split, and their text is the reasoning."""
    at_once = whole(body(message={"content": "Ah.", "reasoning_details": details}))
    streamed = chunks(*({"reasoning_details": [piece]} for piece in pieces), {"content": "Ah."})
    grown = "".join(event.text for event in events(*streamed) if isinstance(event, BlockDelta) and event.index == 0)

    assert same(folded(*streamed), at_once)
    assert grown == "".join(part.text for part in at_once.messages[0].parts if part.kind == "reasoning")


def test_fields_that_each_delta_repeats_are_kept_once() -> None:
    reply = folded(*chunks(*({"content": each, "channel": "x", "notes": each} for each in "Ah")))

    assert reply.text == "Ah"
    assert reply.details["choices"][0]["message"] == {"channel": "x", "notes": "Ah"}


def test_a_chunk_that_holds_the_whole_message_is_read_once() -> None:
    done = {"id": "r", "model": "m", **{"choices": body(message={"content": "Ah."})["choices"]}}

    assert folded(done).text == "Ah."
    assert folded(*chunks({"content": "A"}, {"content": "h."})[:-1], done).text == "Ah."


def test_null_arguments_are_none() -> None:
    called = [{"id": "1", "function": {"name": "f", "arguments": "null"}}]
    reply = whole(body(message={"tool_calls": called}))

    (call,) = [message.call for message in reply.messages if message.call]
    assert (call.arguments, call.invalid_arguments) == ({}, False)


FAILED = "The provider failed"
LATE = {"code": 502, "message": FAILED}
REPORTS: list[tuple[dict[str, Any], type[CallError], int | None]] = [
    ({"error": LATE}, ServerFailed, 502),
    ({"error": FAILED}, ServerFailed, None),
    (body(delta={}, message={"content": "Ah"}) | {"error": LATE}, ServerFailed, 502),
    (body(delta={"content": "Ah"}, error=LATE), ServerFailed, 502),
    (body(delta={}) | {"x_groq": {"id": "r", "error": FAILED}}, ServerFailed, None),
    ({"object": "error", "message": FAILED, "type": "BadRequestError", "code": 400}, InvalidRequest, 400),
    ({"error": {"message": FAILED, "status_code": 429}}, RateLimited, 429),
    ({"detail": FAILED}, ServerFailed, None),
    ({"error": {"message": FAILED, "type": "too_many_prompt_tokens", "code": 400}}, ContextTooLong, 400),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "kind", "status"), REPORTS)
def test_an_error_in_any_place_is_raised_whole_and_streamed(
    answer: dict[str, Any], kind: type[CallError], status: int | None
) -> None:
    for read in (whole, folded):
        with pytest.raises(CallError, match=FAILED) as raised:
            read(answer)
        assert (type(raised.value), raised.value.status) == (kind, status)


@pytest.mark.parametrize(("model", "fields", "vendor", "neutral"), [
    ("deepseek.chat:deepseek-v4-flash", {"thinking": {"type": "disabled"}}, {"thinking": {"type": "disabled"}}, {}),
    ("mistral.chat:m", {"random_seed": 7, "safe_prompt": True}, {"safe_prompt": True}, {"seed": 7}),
    ("openrouter.chat:m", {"provider": {"only": ["x"]}}, {"provider": {"only": ["x"]}}, {}),
    ("mistral.chat:m", {"safe_prompt": "yes"}, {}, {}),
])  # fmt: skip
def test_a_rows_fields_are_settings_of_a_stored_request(model: str, fields: Any, vendor: Any, neutral: Any) -> None:
    name, _, model_name = model.partition(":")
    request = {"model": model_name, "messages": [{"role": "user", "content": "Hi."}], **fields}
    history = sabir.dialect(name).decode_history(request)
    rendering = sabir.adapter(model, api_key="k").render(history.messages, settings=history.settings)

    assert history.settings.vendor.get(name.partition(".")[0], {}) == vendor
    assert {setting: getattr(history.settings, setting) for setting in neutral} == neutral
    assert {each: rendering.body[each] for each in fields} == fields


def test_reasoning_that_a_setting_turns_off_allows_a_forced_choice() -> None:
    """DeepSeek refuses one only while it reasons."""
    weather = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
    request = {"model": "deepseek-v4-flash", "messages": [{"role": "user", "content": "Hi."}], "tools": [weather]}
    for thinking, choice in (("disabled", "required"), ("enabled", None)):
        stored = {**request, "tool_choice": "required", "thinking": {"type": thinking}}
        history = sabir.dialect("deepseek.chat").decode_history(stored)
        adapter = sabir.adapter("deepseek.chat:deepseek-v4-flash", api_key="k")
        body = adapter.render(history.messages, options=history.options, settings=history.settings).body
        assert body.get("tool_choice") == choice


MEDIA: list[tuple[str, Any, MediaPart]] = [
    ("mistral.chat:m", {"type": "document_url", "document_url": PDF, "document_name": "a.pdf"},
     MediaPart(modality="document", url=PDF, name="a.pdf")),
    ("perplexity.chat:sonar-pro", {"type": "file_url", "file_url": {"url": "JVBERi0="}, "file_name": "a.pdf"},
     MediaPart(modality="document", url=PDF, name="a.pdf")),
    ("openrouter.chat:m", {"type": "file", "file": {"filename": "a.pdf", "file_data": "https://e.org/a.pdf"}},
     MediaPart(modality="document", url="https://e.org/a.pdf", name="a.pdf")),
    ("openrouter.chat:m", {"type": "video_url", "video_url": {"url": MP4}}, MediaPart(modality="video", url=MP4)),
]  # fmt: skip


@pytest.mark.parametrize(("model", "block", "part"), MEDIA)
def test_a_gateways_form_of_a_medium_goes_there_and_back(model: str, block: Any, part: MediaPart) -> None:
    name, _, model_name = model.partition(":")
    question = [{"role": "user", "content": [{"type": "text", "text": "?"}, block]}]
    history = sabir.dialect(name).decode_history({"model": model_name, "messages": question})
    rendering = sabir.adapter(model, api_key="k").render(history.messages)

    assert (history.messages[0].parts[1], history.losses) == (part, ())
    assert (rendering.body["messages"], rendering.losses) == (question, ())


def test_a_gateway_without_tools_gets_calls_as_text_and_roles_that_alternate() -> None:
    call = OptionCallPayload(invocation_id="1", option_name="weather", arguments={"city": "Rome"})
    result = OptionResultPayload(invocation_id="1", option_name="weather", result="18 °C")
    history = [sabir.user("?"), Message(policy="llm", payload=call), Message(policy="weather", payload=result)]
    rendering = sabir.adapter("perplexity.chat:sonar", api_key="k").render([*history, sabir.user("So?")])

    assert [(each["role"], each["content"]) for each in rendering.body["messages"]] == [
        ("user", "?"), ("assistant", '[call of weather: {"city":"Rome"}]'), ("user", "[result of weather]\n18 °C"),
        ("assistant", "…"), ("user", "So?"),
    ]  # fmt: skip
    assert [loss.kind for loss in rendering.losses] == ["downgraded", "downgraded", "synthesized"]


def test_a_row_renames_the_limit_of_models_that_reason_too() -> None:
    limit = sabir.Settings(max_output_tokens=9)
    for model, url, field in (
        ("mistral.chat:mistral-small-latest", None, "max_tokens"),
        ("openai.chat:gpt-5", "https://e.org/v1", "max_completion_tokens"),
        ("openai.chat:gpt-4o", "https://e.org/v1", "max_tokens"),
    ):
        body = sabir.adapter(model, api_key="k", base_url=url).render("Hi.", settings=limit).body
        assert body[field] == 9


def test_the_pure_dialect_reads_the_facts_of_its_own_dialect() -> None:
    """DeepSeek reads no `previous_response_id` in Responses; in chat there is no such fact."""
    settings = sabir.Settings(vendor={"deepseek": {"previous_response_id": "r"}})
    rendering = sabir.dialect("deepseek.responses").render("Hi.", model="deepseek-flash", settings=settings)

    assert [loss.path for loss in rendering.losses] == ["settings.vendor.deepseek.previous_response_id"]


def test_settings_of_a_rows_other_dialect_are_losses() -> None:
    """A row with two dialects has one section for both."""
    settings = sabir.Settings(vendor={"deepseek": {"logprobs": True}})
    rendering = sabir.adapter("deepseek.responses:deepseek-flash", api_key="k").render("Hi.", settings=settings)

    assert [loss.path for loss in rendering.losses] == ["settings.vendor.deepseek.logprobs"]
