"""What the SDK's typed calls refuse or change before they send, and what becomes of the same thing here.

Each test asks the installed SDK first: where it no longer guards, the test fails, and docs/reference/guards.md with it.
"""

import json
from typing import Any

import httpx2
import openai
import pytest
import sabir
from pydantic import BaseModel
from sabir.errors import CredentialsMissing, OutputRefused, OutputTruncated, RenderingRefused

MODEL = "gpt-4.1-mini"
ASKED: Any = [{"role": "user", "content": "hi"}]


class Trip(BaseModel):
    """Where to go."""

    city: str
    days: int


class Sent:
    """The SDK's own client, whose requests end here."""

    def __init__(self, finish: str = "stop") -> None:
        self.bodies: list[Any] = []
        self.finish = finish
        http_client = httpx2.Client(transport=httpx2.MockTransport(self._answer))
        self.client = openai.OpenAI(api_key="k", http_client=http_client)

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.bodies.append(json.loads(request.content))
        return httpx2.Response(200, content=answer(self.finish), headers={"content-type": "application/json"})


def answer(finish: str, text: str = '{"city": "Rome", "days": 2}') -> bytes:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "finish_reason": finish, "message": message}
    whole = {"id": "c", "object": "chat.completion", "created": 1, "model": MODEL, "choices": [choice]}
    return json.dumps(whole).encode()


def body(dialect: str, options: Any = (), **settings: Any) -> dict[str, Any]:
    given = sabir.Settings(**settings)
    rendering = sabir.adapter(f"openai.{dialect}:{MODEL}").render("hi", options=options, settings=given)
    found: dict[str, Any] = json.loads(rendering.body_bytes)
    return found


def test_a_model_class_is_a_format_for_every_call() -> None:
    """`create` refuses it and `parse` makes it strict; here the setting takes it, with the same schema."""
    sdk = Sent()
    refused: Any = Trip
    with pytest.raises(TypeError, match="parse"):
        sdk.client.chat.completions.create(model=MODEL, messages=ASKED, response_format=refused)
    sdk.client.chat.completions.parse(model=MODEL, messages=ASKED, response_format=Trip)

    ours, theirs = body("chat", response_format=Trip)["response_format"], sdk.bodies[0]["response_format"]
    assert (ours["type"], ours["json_schema"]["name"], ours["json_schema"]["strict"]) == ("json_schema", "Trip", True)
    assert ours["json_schema"]["schema"] == theirs["json_schema"]["schema"]
    assert body("responses", response_format=Trip)["text"]["format"]["schema"] == theirs["json_schema"]["schema"]


@pytest.mark.parametrize(
    ("finish", "theirs", "ours"),
    [
        ("length", openai.LengthFinishReasonError, OutputTruncated),
        ("content_filter", openai.ContentFilterFinishReasonError, OutputRefused),
    ],
)
def test_an_answer_cut_short_is_not_parsed(finish: str, theirs: type[Exception], ours: type[Exception]) -> None:
    """The SDK refuses it even where it fits; here a reply at its limit that fits is taken, all else is an error."""
    with pytest.raises(theirs):
        Sent(finish).client.chat.completions.parse(model=MODEL, messages=ASKED, response_format=Trip)

    with pytest.raises(ours):
        sabir.dialect("openai.chat").decode(answer(finish, '{"city": "Ro')).parse(Trip)
    assert sabir.dialect("openai.chat").decode(answer("length")).parse(Trip) == Trip(city="Rome", days=2)


def test_an_option_need_not_be_strict() -> None:
    """`parse` refuses a tool that is not; here its arguments are checked when it is answered."""
    free = {"type": "object", "properties": {"a": {"type": "object"}}}
    tool: Any = {"type": "function", "function": {"name": "f", "parameters": free}}
    with pytest.raises(ValueError, match="not strict"):
        Sent().client.chat.completions.parse(model=MODEL, messages=ASKED, tools=[tool])

    declared = body("chat", [sabir.Option.from_schema("f", "F.", free)])["tools"][0]["function"]
    assert (declared["parameters"], "strict" in declared) == (free, False)


def test_two_formats_are_told() -> None:
    """`responses.parse` refuses a second one; here what `extra_body` replaces is a loss."""
    text: Any = {"format": {"type": "text"}}
    with pytest.raises(TypeError, match="mix and match"):
        Sent().client.responses.parse(model=MODEL, input="hi", text=text, text_format=Trip)

    settings = sabir.Settings(response_format=Trip, extra_body={"text": text})
    (loss,) = sabir.adapter(f"openai.responses:{MODEL}").render("hi", settings=settings).losses
    assert (loss.kind, loss.path) == ("dropped", "extra_body.text.format")


def test_nothing_is_no_request() -> None:
    """`responses.stream` wants an input; so do we, of every call."""
    stream: Any = Sent().client.responses.stream
    with pytest.raises(ValueError, match="input must be provided"):
        stream(model=MODEL)

    for dialect in ("chat", "responses"):
        with pytest.raises(RenderingRefused, match="there is nothing to send"):
            sabir.adapter(f"openai.{dialect}:{MODEL}").render([])


def test_without_a_key_nothing_is_sent() -> None:
    """The SDK refuses to send; here the error names the variables."""
    with pytest.raises((openai.OpenAIError, TypeError), match="api_key"):
        openai.OpenAI().chat.completions.create(model=MODEL, messages=ASKED)

    with pytest.raises(CredentialsMissing, match="OPENAI_API_KEY"):
        sabir.adapter(f"openai:{MODEL}").complete_sync("hi")
