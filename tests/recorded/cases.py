"""The exchanges that are recorded: equal names and equal questions for every dialect, run alike live and replayed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import sabir
from pydantic import BaseModel

CASSETTES = Path(__file__).parents[2] / "cassettes"
DIALECTS = ("openai.chat", "openai.responses")


@sabir.option
def weather(city: str) -> str:
    """Current weather in a city."""
    return f"18 °C, rain in {city}"


class City(BaseModel):
    """A city and its country."""

    city: str
    country: str


QUESTION = "What is the weather in Paris?"
CHAT = (sabir.system("Be brief."), sabir.user(QUESTION))
CALL = sabir.Message(
    policy="llm",
    payload=sabir.OptionCallPayload(invocation_id="call_1", option_name="weather", arguments={"city": "Paris"}),
)
RESULT = sabir.OptionResultBuilder.response_to(CALL).success("18 °C, rain in Paris")
FIXED = sabir.Settings(temperature=0, max_output_tokens=32, retries=0)
"""Temperature 0 is deterministic on the embedded server."""
CALLING = FIXED.model_copy(update={"max_output_tokens": 96, "option_choice": "required", "parallel_options": False})
TOO_LONG = "word " * 4_500


@dataclass(frozen=True)
class Case:
    """One question and how it is asked; `wrong_key` and `expects` are for those that fail."""

    messages: Sequence[sabir.Message]
    settings: sabir.Settings = FIXED
    options: tuple[sabir.Option, ...] = ()
    expects: type[sabir.SabirError] | None = None
    wrong_key: bool = False
    dialects: tuple[str, ...] = DIALECTS


CASES: dict[str, Case] = {
    "text": Case(CHAT),
    "option_call": Case(CHAT, CALLING, (weather,)),
    "option_result": Case((*CHAT, CALL, RESULT), FIXED, (weather,)),
    # The embedded server ignores a schema on Responses without a word, so that only Chat shows one at work.
    "structured_output": Case(
        (sabir.user("Where is the Eiffel Tower? Reply with JSON."),),
        FIXED.model_copy(update={"response_format": City, "max_output_tokens": 64}),
        dialects=("openai.chat",),
    ),
    "max_tokens": Case(CHAT, FIXED.model_copy(update={"max_output_tokens": 3})),
    "bad_key": Case(CHAT, expects=sabir.AuthenticationFailed, wrong_key=True),
    "bad_request": Case(CHAT, FIXED.model_copy(update={"extra_body": {"top_k": "many"}}), expects=sabir.InvalidRequest),
    "context_overflow": Case((sabir.user(TOO_LONG),), expects=sabir.ContextTooLong),
}

Outcome = sabir.Reply | sabir.SabirError
Ask = Callable[[sabir.ModelAdapter, Case], Outcome]


def ask_whole(adapter: sabir.ModelAdapter, case: Case) -> Outcome:
    """Ask for a whole answer."""
    try:
        return adapter.complete_sync(case.messages, options=case.options, settings=case.settings)
    except sabir.SabirError as error:
        return error


def ask_streamed(adapter: sabir.ModelAdapter, case: Case) -> Outcome:
    """Ask for a stream, and fold it."""
    try:
        with adapter.stream_sync(case.messages, options=case.options, settings=case.settings) as stream:
            return stream.reply()
    except sabir.SabirError as error:
        return error


WAYS: dict[str, Ask] = {"": ask_whole, "_streamed": ask_streamed}


def exchanges() -> list[tuple[str, str, Case, Ask]]:
    """(dialect, name of the cassette, case, way of asking) of everything that is recorded."""
    return [
        (dialect, name + suffix, case, ask)
        for dialect in DIALECTS
        for name, case in CASES.items()
        if dialect in case.dialects
        for suffix, ask in WAYS.items()
    ]


def cassette_path(dialect: str, name: str) -> Path:
    """Where an exchange is kept."""
    return CASSETTES / dialect / f"{name}.yaml"
