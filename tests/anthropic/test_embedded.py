"""Another server that speaks Messages: the embedded one, with a real model behind it."""

from collections.abc import Iterator

import pytest
import sabir
from sabir.calling.adapter import Adapter
from sabir_local.models import WeightsMissing, find_weights
from sabir_local.server import LocalServer


@pytest.fixture(scope="module")
def llm() -> Iterator[Adapter]:
    """An adapter for the embedded server's own Messages endpoint."""
    try:
        find_weights()
    except WeightsMissing as error:
        pytest.skip(f"no weights: {error}")
    server = LocalServer()
    # The small model calls again and again until its limit, where its last call is cut off.
    settings = sabir.Settings(max_output_tokens=60, temperature=0.0, extra_headers={"Connection": "close"})
    with sabir.adapter(
        "anthropic:smollm2", base_url=server.address, api_key=server.api_key, settings=settings
    ) as adapter:
        yield adapter
    server.stop()


@sabir.option
def weather(city: str) -> str:
    """Current weather in a city."""
    return f"18 °C in {city}"


def test_an_answer_whole_and_streamed(llm: Adapter) -> None:
    whole = llm.complete_sync([sabir.system("Be brief."), sabir.user("Say hello.")])
    with llm.stream_sync([sabir.system("Be brief."), sabir.user("Say hello.")]) as stream:
        streamed = "".join(stream.text)

    assert whole.text == streamed != ""
    assert whole.usage.total_tokens
    assert whole.losses == ()


def test_a_call_and_its_answer(llm: Adapter) -> None:
    chat = [sabir.user("What is the weather in Oslo?")]
    forced = sabir.Settings(option_choice="required", parallel_options=False)
    reply = llm.complete_sync(chat, options=[weather], settings=forced)
    chat += [*reply.messages, *sabir.answer_sync(reply, [weather])]
    last = llm.complete_sync(chat, options=[weather], settings=sabir.Settings(option_choice="none"))

    assert reply.option_calls
    assert "18" in last.text
    assert last.losses == ()


def test_it_counts_tokens(llm: Adapter) -> None:
    assert llm.count_tokens_sync("Say hello.").input_tokens > 0
