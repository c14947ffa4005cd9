"""What `Answer.prompt_cache` reports: the prediction, what was read, and the name of the first change."""

from typing import Any

import pytest
import sabir
import sabir_session
from hypothesis import given
from hypothesis import strategies as st
from sabir import Message, Settings, Usage
from sabir_session.evaluation.outputs import Requests
from sabir_session.evaluation.prompt_caches import CacheWatch
from sabir_testing import ScriptedAdapter, always, calls, reply

CLAUDE, CHAT, RESPONSES, GEMINI = MODELS = (
    "anthropic:claude-opus-4-6", "openai.chat:gpt-5.1", "openai:gpt-5.1", "google:gemini-2.5-flash",
)  # fmt: skip
LONG = "word " * 700


WEATHER = sabir.option(lambda: "rain", name="weather", description="Weather.")
OTHER = ScriptedAdapter(
    always(reply("No.", usage=Usage(input_tokens=9, cache_read_tokens=0))), model="anthropic:claude-sonnet-5"
)


def usage(read: int | None, given: int = 900, written: int | None = None) -> Usage:
    return Usage(input_tokens=given, output_tokens=10, cache_read_tokens=read, cache_write_tokens=written)


def outcomes(
    *figures: Usage, between: Any = lambda chat: None, model: str = CLAUDE
) -> list[sabir_session.PromptCacheReport]:
    """The reports for a conversation with one question for each usage; `between` runs before the last question."""
    llm = ScriptedAdapter(*(reply("Yes.", usage=each) for each in figures), model=model)
    chat = sabir_session.Conversation(llm, instructions=LONG, settings=Settings(prompt_cache=True))
    reports = []
    for index in range(len(figures)):
        if index == len(figures) - 1:
            between(chat)
        report = chat.ask_sync(f"Question {index}?").prompt_cache
        assert report is not None
        reports.append(report)
    return reports


@pytest.mark.parametrize(
    ("figures", "outcome", "line"),
    [
        ([usage(None)], "first", "cache ? of 0: there was no earlier request"),
        ([usage(0), usage(880)], "hit", "cache 880 of 910: nothing changed"),
        ([usage(0, written=890), usage(0)], "missed", "cache 0 of 910: nothing changed: expired or evicted"),
        ([usage(0), usage(0)], "missed", "cache 0 of 910: nothing changed: expired or evicted"),
        ([usage(0, written=0), usage(0)], "not stored", "cache 0 of 910: the provider stored nothing before"),
        ([usage(0, given=90), usage(0)], "short", "cache 0 of 100: the prompt is shorter than most caches store"),
        ([usage(0), usage(None)], "not reported", "cache ? of 910: the provider reports no cached tokens"),
    ],
)
def test_an_answer_compares_the_prediction_with_what_was_read(figures: list[Usage], outcome: str, line: str) -> None:
    report = outcomes(*figures)[-1]

    assert (report.outcome, str(report)) == (outcome, line)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda chat: setattr(chat, "instructions", "Other."), "messages[0] (system)"),
        (lambda chat: setattr(chat, "options", [WEATHER]), "options['weather']"),
        (lambda chat: setattr(chat, "settings", Settings(reasoning_effort="high")), "settings.reasoning_effort"),
        (lambda chat: setattr(chat, "model", OTHER), "model"),
        (lambda chat: chat.drop_last(), "messages[3] (user)"),
    ],
)  # fmt: skip
def test_the_first_change_is_the_cause_of_a_miss(change: Any, name: str) -> None:
    report = outcomes(usage(0), usage(800), usage(0), between=change)[-1]

    assert (report.outcome, report.changed) == ("changed", name)
    assert 0 <= report.predicted_tokens < 900


def test_the_requests_of_one_question_are_summed() -> None:
    script = calls(weather={}), reply("Rain.", usage=usage(700))
    llm = ScriptedAdapter(*script, model=CLAUDE)
    report = sabir_session.Conversation(llm, instructions=LONG, options=[WEATHER]).ask_sync("Rain?").prompt_cache

    assert report is not None
    assert (report.outcome, report.read_tokens, report.changed) == ("hit", 700, "")


def test_a_wrapped_adapter_has_no_report_and_a_budgeted_one_has() -> None:
    llm = sabir.adapter("echo:m")
    budgeted = sabir_session.with_budget(llm, sabir_session.Budget(turns=9))
    fallback = sabir.fallback(llm, llm)

    assert sabir_session.Conversation(fallback).ask_sync("Hi.").prompt_cache is None
    assert sabir_session.Conversation(budgeted).ask_sync("Hi.").prompt_cache is not None


# --- generated pairs, of which the later changes one thing ------------------------------------------------------------

words = st.text("abc ", min_size=1, max_size=9).filter(str.strip)
TEXT_OPTION = {"type": "object", "properties": {"x": {"type": "string"}}}


def talk(texts: list[str]) -> list[Message]:
    speakers = sabir.user, sabir.assistant
    return [sabir.system("Be brief."), *(speakers[at % 2](text) for at, text in enumerate(texts))]


def tools(texts: list[str]) -> list[sabir.Option]:
    return [sabir.Option.from_schema(f"tool_{at}", text, TEXT_OPTION) for at, text in enumerate(texts)]


def changed_name(model: str, before: tuple[Any, ...], after: tuple[Any, ...], other: str = "") -> str:
    watch, report = CacheWatch(), None
    for name, (messages, options, settings) in ((model, before), (other or model, after)):
        requests = Requests(sabir.adapter(name, api_key="k"), tuple(options), None, settings, None)
        rendering = requests.adapter.render(messages, **requests.call_arguments)
        watch.add_request(rendering, messages, requests)
        watch.add_reply(sabir.Reply(messages=(), finish_reason="stop", origin=origin(), usage=usage(0)))
        report = watch.reports[-1]
    assert report is not None
    assert (report.outcome == "changed") is bool(report.changed)
    return report.changed


def origin() -> sabir.Origin:
    return sabir.Origin(provider="p", dialect="p.d", model="m")


SETTINGS: dict[str, list[tuple[Settings, str]]] = {
    CLAUDE: [(Settings(reasoning_effort="low"), "settings.reasoning_effort"),
             (Settings(option_choice="none"), "settings.option_choice"),
             (Settings(parallel_options=False), "settings.parallel_options")],
    CHAT: [(Settings(reasoning_effort="low"), "settings.reasoning_effort"),
           (Settings(response_format=TEXT_OPTION), "settings.response_format")],
    RESPONSES: [(Settings(reasoning_effort="low"), "settings.reasoning_effort"),
                (Settings(response_format=TEXT_OPTION), "settings.response_format"),
                (Settings(vendor={"openai": {"verbosity": "low"}}), "settings.vendor")],
    GEMINI: [(Settings(option_choice="required"), "settings.option_choice")],
}  # fmt: skip
"""Settings that change what the model reads."""
HARMLESS = [Settings(temperature=0.5), Settings(max_output_tokens=99), Settings(timeout=3), Settings(prompt_cache="1h")]


@pytest.mark.parametrize("model", MODELS)
@given(data=st.data())
def test_a_generated_change_is_named(model: str, data: st.DataObject) -> None:
    texts = data.draw(st.lists(words, min_size=3, max_size=7).filter(lambda drawn: len(drawn) % 2))
    described = data.draw(st.lists(words, min_size=1, max_size=3))
    before = talk(texts), tools(described), Settings()
    later = [*before[0], sabir.assistant("So."), sabir.user("And?")]
    kind = data.draw(st.sampled_from(["nothing", "message", "tool", "setting", "harmless", "model"]))
    match kind:
        case "message":
            at = data.draw(st.integers(0, len(before[0]) - 1))
            old = later[at]
            later[at] = Message(policy=old.policy, payload=sabir.PartsPayload(parts=(sabir.TextPart(text="new!"),)))
            assert changed_name(model, before, (later, *before[1:])) == f"messages[{at}] ({old.policy})"
        case "tool":
            at = data.draw(st.integers(0, len(described) - 1))
            options = tools([*described[:at], "new!", *described[at + 1 :]])
            assert changed_name(model, before, (later, options, Settings())) == f"options['tool_{at}']"
        case "setting":
            settings, name = data.draw(st.sampled_from(SETTINGS[model]))
            assert changed_name(model, before, (later, before[1], settings)) == name
        case "harmless":
            settings = data.draw(st.sampled_from(HARMLESS))
            assert changed_name(model, before, (later, before[1], settings)) == ""
        case "model":
            assert changed_name(model, before, (later, *before[1:]), f"{model}-later") == "model"
        case _:
            assert changed_name(model, before, (later, *before[1:])) == ""
