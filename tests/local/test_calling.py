"""A small model calls where it is asked to and answers where it is given a result: template and rule of server.py.

SABIR_LOCAL_ALL_QUESTIONS=1 pytest -s tests/local/test_calling.py     all questions, plain and streamed; the figures
"""

import json
import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from openai import InternalServerError, OpenAI

from tests.local.questions import ADD, TUNED, UNSEEN, WEATHER, Question

ALL = os.environ.get("SABIR_LOCAL_ALL_QUESTIONS") == "1"
FEW = (TUNED[0], TUNED[14], TUNED[31])
SETS: dict[str, Sequence[Question]] = {"tuned": TUNED, "unseen": UNSEEN} if ALL else {"few": FEW}
MODEL = "smollm2"
CALLS = {"tool_choice": "required", "parallel_tool_calls": False}
"""What is sent on a turn of the user's with an open choice."""
ANSWERS = {"tool_choice": "none"}
"""What is sent after an option's result with an open choice."""
Body = dict[str, Any]


def opening(text: str) -> list[Body]:
    return [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}]


def with_result(messages: list[Body], message: Body, result: str) -> list[Body]:
    call_id = message["tool_calls"][0]["id"]
    return [*messages, message, {"role": "tool", "tool_call_id": call_id, "content": result}]


def ask(client: OpenAI, **body: Any) -> Body:
    reply = client.chat.completions.create(**{"model": MODEL, "max_tokens": 96, **body})
    return dict(reply.choices[0].message.model_dump(exclude_none=True))


def ask_streamed(client: OpenAI, **body: Any) -> Body:
    content = ""
    calls: dict[int, Body] = {}
    for chunk in client.chat.completions.create(**{"model": MODEL, "max_tokens": 96, **body}, stream=True):
        for delta in (choice.delta for choice in chunk.choices):
            content += delta.content or ""
            for piece in delta.tool_calls or ():
                function = {"name": piece.function.name, "arguments": ""}
                call = calls.setdefault(piece.index, {"id": piece.id, "type": "function", "function": function})
                call["function"]["arguments"] += piece.function.arguments or ""
    message: Body = {"role": "assistant", "content": content}
    return {**message, "tool_calls": list(calls.values())} if calls else message


WAYS = pytest.mark.parametrize("way", [ask, ask_streamed], ids=["whole", "streamed"])


def outcome(client: OpenAI, way: Any, question: Question) -> Counter[str]:
    """How a question fares: called, with the right arguments, answered with the result."""
    messages = opening(question.text)
    first = way(client, messages=messages, tools=[question.tool], **CALLS)
    calls = first.get("tool_calls", [])
    if len(calls) != 1:
        return Counter()
    arguments = json.loads(calls[0]["function"]["arguments"])
    second = way(client, messages=with_result(messages, first, question.result), tools=[question.tool], **ANSWERS)
    return Counter(
        called=1,
        arguments=question.is_asked_with(arguments),
        answered="tool_calls" not in second and question.is_answered_by(second["content"]),
    )


@pytest.mark.parametrize("questions", SETS.values(), ids=SETS.keys())
@WAYS
def test_one_option_is_called_and_its_result_used(client: OpenAI, way: Any, questions: Sequence[Question]) -> None:
    total: Counter[str] = Counter()
    for question in questions:
        total += outcome(client, way, question)
    print(f"\n{way.__name__}: of {len(questions)} questions {dict(total)}")

    assert total["called"] == len(questions)
    assert total["answered"] >= 0.9 * len(questions)
    assert total["arguments"] >= 0.7 * len(questions)


def test_a_conversation_goes_on_after_an_answer(client: OpenAI) -> None:
    messages = opening("What is the weather in Paris?")
    first = ask(client, messages=messages, tools=[WEATHER], **CALLS)
    messages = with_result(messages, first, "18 °C, rain")
    messages = [*messages, ask(client, messages=messages, tools=[WEATHER], **ANSWERS)]
    messages = [*messages, {"role": "user", "content": "And in Berlin?"}]
    second = ask(client, messages=messages, tools=[WEATHER], **CALLS)

    assert json.loads(second["tool_calls"][0]["function"]["arguments"]) == {"city": "Berlin"}


def test_a_template_argument_overrules_whose_turn_it_is(client: OpenAI) -> None:
    messages = opening("What is the weather in Paris?")
    first = ask(client, messages=messages, tools=[WEATHER], **CALLS)
    answered = with_result(messages, first, "18 °C, rain")
    forced = {"chat_template_kwargs": {"expects_call": True}}
    again = ask(client, messages=answered, tools=[WEATHER], **CALLS, extra_body=forced)
    kept = {"tool_choice": "none", "extra_body": {"chat_template_kwargs": {"expects_call": False}}}
    kept_from_it = ask(client, messages=messages, tools=[WEATHER], **kept)

    assert again["tool_calls"][0]["function"]["name"] == "weather"
    assert "tool_calls" not in kept_from_it
    assert "{" not in kept_from_it["content"]


NAMED = {"type": "function", "function": {"name": "weather"}}


@pytest.mark.parametrize(
    ("text", "sent"),
    [("What is the weather in Paris?", {"tools": [WEATHER]}),
     ("What is 2 plus 3?", {"tools": [ADD, WEATHER], "tool_choice": NAMED})],
    ids=["open", "by name"],
)  # fmt: skip
def test_a_choice_that_is_left_to_the_server_is_an_error(client: OpenAI, text: str, sent: Body) -> None:
    """Why the rule exists, and why a named option is offered alone: the model writes what the server cannot read."""
    with pytest.raises(InternalServerError, match="does not match the expected"):
        ask(client, messages=opening(text), max_tokens=32, **sent)


@pytest.mark.parametrize("arguments", ["", '{"city": "Par'])
def test_arguments_that_are_no_json_are_an_error(client: OpenAI, arguments: str) -> None:
    """Why a provider sends {} in their place."""
    function = {"name": "weather", "arguments": arguments}
    call = {"role": "assistant", "tool_calls": [{"id": "call_1", "type": "function", "function": function}]}
    with pytest.raises(InternalServerError, match="Failed to parse tool call arguments"):
        ask(client, messages=with_result(opening("Weather?"), call, "18 °C"), tools=[WEATHER], **ANSWERS)


def test_one_of_two_options_and_a_bare_one_are_called(client: OpenAI) -> None:
    of_two = ask(client, messages=opening("What is 2 plus 3?"), tools=[WEATHER, ADD], **CALLS)
    bare = {"type": "function", "function": {"name": "now"}}
    alone = ask(client, messages=opening("What time is it?"), tools=[bare], **CALLS)

    assert [call["function"]["name"] for call in of_two["tool_calls"]] in (["weather"], ["add"])
    assert json.loads(alone["tool_calls"][0]["function"]["arguments"]) == {}
