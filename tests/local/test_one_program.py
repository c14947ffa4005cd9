"""One program on three vendors' wires, changed by one string; and one conversation that goes from wire to wire.

    openai.chat, anthropic   the embedded server       google   a proxy before it, where SABIR_RECORDING_CACHE has one

No server here is a vendor's own. The vendors' variables say where to send, as a user's shell would.
"""

import os
from collections.abc import Iterator

import pytest
import sabir

from tests.recorded import servers

QUESTION = "What is the weather in Paris?"
CHOOSE = sabir.Settings(temperature=0, max_output_tokens=200, option_choice="required", parallel_options=False)
ANSWER = sabir.Settings(temperature=0, max_output_tokens=48)


@sabir.option
def weather(city: str) -> str:
    """Current weather in a city."""
    return f"18 °C, rain in {city}"


@pytest.fixture(scope="module")
def embedded() -> Iterator[servers.Server]:
    """The embedded model, made to choose one option at a time on wires that have no word for that."""
    with servers.embedded() as running:
        yield running


@pytest.fixture(scope="module")
def proxy(embedded: servers.Server) -> Iterator[servers.Server]:
    """The proxy that speaks Gemini's wire; too large for every run, so that its answers are replayed elsewhere."""
    if servers.CACHE_VARIABLE not in os.environ:
        pytest.skip(f"{servers.CACHE_VARIABLE} names no folder with the proxy")
    with servers.proxy(embedded) as running:
        yield running


@pytest.fixture(autouse=True)
def environment(embedded: servers.Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a user's shell would say of the two wires that the server speaks itself."""
    for variable, value in (
        ("OPENAI_BASE_URL", f"{embedded.address}/v1"),
        ("OPENAI_API_KEY", embedded.api_key),
        ("ANTHROPIC_BASE_URL", embedded.address),
        ("ANTHROPIC_API_KEY", embedded.api_key),
    ):
        monkeypatch.setenv(variable, value)


def program(model: str) -> list[sabir.Message]:
    """A whole conversation: an option is chosen, run, and the answer comes as a stream."""
    with sabir.adapter(model) as llm:
        chat = [sabir.system("Be brief."), sabir.user(QUESTION)]
        reply = llm.complete_sync(chat, options=[weather], settings=CHOOSE)
        chat += reply.messages
        chat += sabir.answer_sync(reply, [weather])
        with llm.stream_sync(chat, options=[weather], settings=ANSWER) as stream:
            said = "".join(stream.text)
            chat += stream.reply().messages
        assert said
        assert chat[-1].text == said == llm.complete_sync(chat[:-1], options=[weather], settings=ANSWER).text
        assert llm.count_tokens_sync(chat).input_tokens > 0
        return chat


WIRES = pytest.mark.parametrize("wires", ["direct", "proxied"])


@pytest.fixture
def models(request: pytest.FixtureRequest, wires: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The wires that the server speaks itself, and Gemini's where the proxy is."""
    if wires == "direct":
        return ["openai.chat:smollm2", "anthropic:smollm2"]
    proxy: servers.Server = request.getfixturevalue("proxy")
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", proxy.address)
    monkeypatch.setenv("GOOGLE_API_KEY", proxy.api_key)
    return ["openai.chat:smollm2", "google:smollm2"]


@WIRES
def test_a_conversation_goes_from_wire_to_wire_and_back(models: list[str]) -> None:
    """Nothing in the program but the string tells one vendor from another; nothing said is lost on the way.

    An option was called and answered before the change: the other vendor reads it as its own.
    """
    makers = [model.partition(":")[0].partition(".")[0] for model in models]
    for model, maker in zip(models, makers, strict=True):
        chat = program(model)
        calls = [message.call for message in chat if message.call]
        results = [message.result for message in chat if message.result]
        assert {call.option_name for call in calls} == {"weather"}
        assert [result.result for result in results] == [f"18 °C, rain in {call.arguments['city']}" for call in calls]
        assert {message.origin.provider for message in chat if message.origin} == {maker}
        assert chat[-1].policy == "llm"
    for model in models:
        chat.append(sabir.user("And is that warm? Say yes or no."))
        with sabir.adapter(model) as llm:
            rendering = llm.render(chat, settings=ANSWER)
            assert {loss.kind for loss in rendering.losses} <= {"rewritten", "synthesized"}, rendering.losses
            reply = llm.send_sync(rendering)
        assert reply.text
        chat += reply.messages
    said_by = [message.origin.provider for message in chat if message.origin and message.text]
    assert said_by == [makers[-1], *makers]
