"""What the embedded model's wire has beyond Chat Completions: whether the model is to call, and safe arguments."""

from typing import Any

import pytest
import sabir

CHAT = [sabir.user("What is the weather in Paris?")]
CALL = sabir.Message(
    policy="llm",
    payload=sabir.OptionCallPayload(invocation_id="c1", option_name="weather", arguments={"city": "Paris"}),
)
RESULT = sabir.OptionResultBuilder.response_to(CALL).success("18 °C")
OPTIONS = [
    sabir.Option.from_schema(name, f"{name}.", {"type": "object", "properties": {}}) for name in ("weather", "time")
]

NAMED = sabir.Settings(option_choice="time")


def body(chat: list[sabir.Message], choice: str | None = None, options: Any = OPTIONS) -> dict[str, Any]:
    settings = sabir.Settings(option_choice=choice)
    return dict(sabir.adapter("local:smollm2").render(chat, options=options, settings=settings).body)


@pytest.mark.parametrize("choice", [None, "auto"])
@pytest.mark.parametrize(
    ("chat", "expected"),
    [
        (CHAT, "required"),
        ([*CHAT, CALL, RESULT], "none"),
        ([*CHAT, sabir.assistant("Rain.")], "none"),
        ([*CHAT, CALL, RESULT, sabir.assistant("Rain."), sabir.user("And now?")], "required"),
    ],
    ids=["user", "results", "assistant", "user again"],
)
def test_an_open_choice_is_decided_by_whose_turn_it_is(
    chat: list[sabir.Message], expected: str, choice: str | None
) -> None:
    """The model calls on a user's turn and answers on every other, so that a loop over calls ends."""
    sent = body(chat, choice)

    assert sent["tool_choice"] == expected
    assert sent["chat_template_kwargs"] == {"expects_call": expected == "required"}
    assert sent.get("parallel_tool_calls") == (False if expected == "required" else None)


def test_a_named_choice_offers_that_option_alone() -> None:
    """The server ignores a name without a word."""
    sent = body(CHAT, "time")

    assert [tool["function"]["name"] for tool in sent["tools"]] == ["time"]
    assert sent["tool_choice"] == "required"


def test_another_model_decides_an_open_choice_itself() -> None:
    """What a larger model can do is not taken from it; an option named is offered alone for it too."""
    for model in ("local:qwen", "local:/models/qwen.gguf"):
        sent = dict(sabir.adapter(model).render(CHAT, options=OPTIONS).body)
        named = dict(sabir.adapter(model).render(CHAT, options=OPTIONS, settings=NAMED).body)

        assert {"tool_choice", "chat_template_kwargs", "parallel_tool_calls"}.isdisjoint(sent)
        assert ([tool["function"]["name"] for tool in named["tools"]], named["tool_choice"]) == (["time"], "required")


def test_without_options_nothing_is_said_of_a_choice() -> None:
    assert {"tool_choice", "chat_template_kwargs", "tools"}.isdisjoint(body(CHAT, options=()))


def test_arguments_that_are_no_object_are_sent_within_one() -> None:
    """The server answers 500 to them; the loss names the call."""
    origin = sabir.Origin(provider="local", dialect="openai.chat", endpoint="local:", model="smollm2")
    payload = sabir.OptionCallPayload(
        invocation_id="c1", option_name="weather", raw_arguments="[1", invalid_arguments=True
    )
    broken = sabir.Message(policy="llm", origin=origin, payload=payload)
    result = sabir.OptionResultBuilder.response_to(broken).error("invalid_arguments", "no JSON object")

    rendering = sabir.adapter("local:smollm2").render([*CHAT, broken, result])

    assert rendering.body["messages"][1]["tool_calls"][0]["function"]["arguments"] == '{"invalid_json":"[1"}'
    assert [(loss.kind, loss.message_id) for loss in rendering.losses] == [("rewritten", broken.id)]
