"""What is asked of every provider: how a suite spells it for its service, who answers, and what an answer must hold."""

import importlib.util
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest
import sabir
from sabir.contract.provider import WireRequest
from sabir.contract.scope import DecodeScope
from sabir.reading.fold import ReplyBuilder
from sabir_testing.cassettes import PROVENANCE_FIELDS, exchanges, provenance_of
from sabir_testing.families.replies import check_refusal
from sabir_testing.kit.asking import STREAMED, WHOLE, distribution_of
from sabir_testing.kit.capabilities import CAPABILITIES, FULL, REFUSED
from sabir_testing.kit.failures import ConformanceFailure
from sabir_testing.kit.service import Service
from sabir_testing.kit.service_questions import ANSWERED, FAILING, QUESTIONS
from sabir_testing.kit.suite import AdapterUnderTest, Suite

from tests.testing.harness import TEMPLATE, Breakage, Delegate, changed, registered

RECORDED = TEMPLATE / "tests" / "cassettes"


def stand_in() -> ModuleType:
    """The service that the template's recordings are made from."""
    spec = importlib.util.spec_from_file_location("stand_in", TEMPLATE / "tests" / "service.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class OfAcme(Suite):
    """As the template's suite: its service answers while it is recorded."""

    refused_body: ClassVar = {"limit": "many"}
    prompts: ClassVar = {"rate_limited": "slow down", "overloaded": "overload"}
    sdk = "httpx2"
    cassettes: Path | None = RECORDED

    @contextmanager
    def live(self, question: str) -> Iterator[sabir.ModelAdapter]:
        name = self.adapter.target.provider
        with stand_in().running() as url, sabir.adapter(f"{name}:small", api_key="any", base_url=url) as adapter:
            yield adapter

    def provenance(self, question: str) -> Mapping[str, str]:
        return {"server": "a stand-in, not a vendor's own service", "version": "1"}


@contextmanager
def service(breakage: Breakage | None = None, *, is_recording: bool = False, **said: Any) -> Iterator[Service]:
    """Who answers a suite's questions, for acme under a name of its own."""
    with registered(breakage or Breakage()) as name:
        adapter = sabir.adapter(f"{name}:small", api_key="test", **said.pop("access", {}))
        suite = type("OfThisTest", (OfAcme,), {"adapter": adapter, **said})
        with adapter:
            yield Service(AdapterUnderTest(suite()), is_recording=is_recording)


def test_questions_need_what_there_is_and_each_is_answered_or_fails() -> None:
    """Every need is a capability of the kit; every question is in one of the two lists."""
    for question in QUESTIONS.values():
        assert {*question.needs} <= {*CAPABILITIES}
    assert {*ANSWERED, *FAILING} == {*QUESTIONS}
    assert {*ANSWERED}.isdisjoint(FAILING)


def reply(*blocks: Any, reason: Any = "stop") -> sabir.Reply:
    """A reply of these blocks."""
    scope = DecodeScope(sabir.Target(provider="acme", dialect="acme.chat"))
    builder = ReplyBuilder(scope)
    for block in blocks:
        builder.add(block)
    return builder.finish(finish_reason=reason, origin=scope.origin())


TEXT = sabir.TextPart(text="It is 18 °C.")
THOUGHT = sabir.ReasoningPart(text="I look it up.")


def call(number: object = 1, name: str = "weather", **arguments: Any) -> sabir.OptionCallPayload:
    """A call of the option that the questions offer."""
    given = arguments or {"city": "Paris"}
    return sabir.OptionCallPayload(invocation_id=f"call-{number}", option_name=name, arguments=given)


WRONG: Sequence[tuple[str, list[sabir.Reply], str]] = [
    ("text", [reply()], "contains no text"),
    ("text", [reply(TEXT, reason="other")], "finish reason of the decoded reply is 'other'"),
    ("option_call", [reply(TEXT)], "contains 0 option calls"),
    ("option_call", [reply(call(1), call(2), reason="option_calls")], "contains 2 option calls"),
    (
        "option_call",
        [reply(call(name="forecast"), reason="option_calls")],
        "a call of 'forecast', which was not offered; expected 'weather'",
    ),
    ("option_call", [reply(call(town="Paris"), reason="option_calls")], "do not fit the option 'weather'"),
    ("option_call", [reply(call())], "is 'stop'; expected 'option_calls'"),
    ("parallel_calls", [reply(call(), reason="option_calls")], "contains 1 option calls"),
    ("parallel_calls", [reply(call(1), call(1, city="Rome"), reason="option_calls")], "have the same id"),
    ("option_result", [reply(sabir.TextPart(text="It rains."))], "does not use the option's result"),
    ("structured_output", [reply(TEXT)], "not JSON of the requested schema"),
    ("structured_output", [reply(sabir.TextPart(text='{"city": "Paris"}'))], "not JSON of the requested schema"),
    ("max_tokens", [reply(TEXT)], "is 'stop'; expected 'length'"),
    ("reasoning", [reply(TEXT)], "contains no reasoning part"),
    ("reasoning", [reply(THOUGHT)], "contains reasoning, but no text"),
    (
        "reasoning",
        [reply(THOUGHT, sabir.TextPart(text="I look it up. Yes."))],
        "text of the decoded reply contains the reasoning",
    ),
    ("reasoning_loop", [reply(call(), reason="option_calls"), reply(TEXT)], "contains no reasoning; expected"),
    ("reasoning_loop", [reply(THOUGHT, TEXT)], "contains no option call; expected"),
    ("reasoning_loop", [reply(THOUGHT, call(), reason="option_calls"), reply()], "contains no text"),
]


@pytest.mark.parametrize(("question", "replies", "words"), WRONG, ids=[f"{name}: {words}" for name, _, words in WRONG])
def test_an_answer_to_something_else_is_told_from_a_right_one(
    question: str, replies: list[sabir.Reply], words: str
) -> None:
    """Each question says what any answer to it holds, and what is wrong with another."""
    with pytest.raises(ConformanceFailure, match=words):
        QUESTIONS[question].check(replies)


def test_a_suite_says_a_question_in_the_words_of_its_service() -> None:
    """Prompts replace what the user says last, media kept; settings go over the question's own."""
    said = {"prompts": {"image": "What?"}, "settings": {"image": sabir.Settings(max_output_tokens=2_048)}}
    with service(**said) as asked:
        found = asked.question("image")

    assert found.messages[-1].text == "What?"
    assert [part.kind for part in found.messages[-1].parts] == ["text", "media"]
    assert (found.settings.max_output_tokens, found.settings.temperature) == (2_048, 0)


def test_a_question_is_replayed_through_the_client_and_asked_once() -> None:
    """However many cases look at an answer, the recording is played once."""
    opened: list[WireRequest] = []

    class Counts(Delegate):
        def open_sync(self, request: WireRequest) -> Any:
            opened.append(request)
            return self.base.open_sync(request)

    with service(Breakage(connection=Counts)) as asked:
        first, second = asked.answer("text", WHOLE), asked.answer("text", WHOLE)

    assert first.reply is second.reply
    assert first.reply.text == "You said: What is the weather in Paris?"
    assert len(opened) == 1


def test_calls_are_answered_where_the_question_says_so() -> None:
    with service() as asked:
        answer = asked.answer("reasoning_loop", STREAMED)

    assert [bool(each.option_calls) for each in answer.replies] == [True, False]
    assert len(answer.exchanges) == 2
    assert [message.kind for message in answer.history][-1] == "option_result"


@pytest.mark.parametrize(
    ("said", "question", "words"),
    [
        ({"refused_body": {}}, "bad_request", "does not set `refused_body`"),
        ({"cassettes": None}, "text", "cassettes = Path"),
        ({"prompts": {"text": "Hello?"}}, "text", r"sent 'Hello\?'"),
    ],
)
def test_a_question_that_cannot_be_asked_says_what_to_write(said: dict[str, Any], question: str, words: str) -> None:
    """CD-11: a wrong rendering finds no answer, and the author reads what changed."""
    with service(**said) as asked, pytest.raises(ConformanceFailure, match=words):
        asked.ask(question, WHOLE)


def test_a_missing_recording_says_what_can_be_done(tmp_path: Path) -> None:
    """Record it, with the key's variable; or say that the service cannot; or opt out with a reason."""
    with service(cassettes=tmp_path) as asked, pytest.raises(ConformanceFailure) as raised:
        asked.ask("option_call", STREAMED)

    for words in (
        "option_call_streamed.yaml",
        "--sabir-record",
        "ACME_API_KEY",
        "'options' or 'streaming' REFUSED",
        "xfail",
    ):
        assert words in str(raised.value)


@pytest.mark.parametrize("way", [WHOLE, STREAMED])
def test_recording_asks_the_service_and_keeps_what_it_said(way: Any, tmp_path: Path) -> None:
    with service(is_recording=True, cassettes=tmp_path) as asked:
        answer = asked.answer("option_call", way)
        path = asked.path("option_call", way)

    assert answer.reply.option_calls[0].call is not None
    assert {*PROVENANCE_FIELDS} <= {*provenance_of(path)}
    assert provenance_of(path)["client"].startswith("httpx2 ")
    assert provenance_of(path)["model"] == "small"


@pytest.mark.parametrize(
    ("sdk", "distribution"),
    [("google.genai", "google-genai"), ("openai", "openai"), ("yaml", "PyYAML"), ("nowhere.sdk", "")],
)
def test_the_client_is_the_distribution_of_the_suites_own_sdk(sdk: str, distribution: str) -> None:
    assert distribution_of(sdk).lower() == distribution.lower()


@pytest.mark.parametrize(("question", "status"), [("bad_key", 401), ("missing_model", 404), ("bad_request", 400)])
def test_what_is_wrong_on_purpose_is_wrong_while_it_is_recorded(question: str, status: int, tmp_path: Path) -> None:
    """The service itself gets the wrong key, the missing model, the field that it refuses."""
    with service(is_recording=True, cassettes=tmp_path) as asked:
        error = asked.ask(question, WHOLE).error

    assert type(error) is QUESTIONS[question].expects
    assert exchanges(tmp_path / f"{question}.yaml")[-1].status == status


@pytest.mark.parametrize(
    ("question", "prompt", "words"),
    [
        ("text", "overload", "is not recorded, because it raises Overloaded"),
        ("overloaded", "Hello", "answers instead of failing with Overloaded"),
    ],
)
def test_what_is_not_the_answer_asked_for_is_not_kept(question: str, prompt: str, words: str, tmp_path: Path) -> None:
    """A failure in place of an answer, or an answer in place of a failure, leaves the folder as it was."""
    said = {"is_recording": True, "cassettes": tmp_path, "prompts": {question: prompt}}
    with service(**said) as asked, pytest.raises(ConformanceFailure, match=words):
        asked.ask(question, WHOLE)

    assert list(tmp_path.iterdir()) == []


def without_images(base: Any) -> Any:
    """The wire without pictures."""
    kept = {row: rule for row, rule in base.tables.media.items() if row[1] != "image"}
    return replace(base, tables=replace(base.tables, media=kept))


def test_what_is_declared_refused_has_to_be_reported_as_lost() -> None:
    """The documented refusal is checked instead of an answer; no recording is needed for it."""
    with service(Breakage(dialect=without_images), capabilities={"image.bytes": REFUSED}, cassettes=None) as asked:
        assert asked.refused_need("image", WHOLE) == "image.bytes"
        check_refusal(asked, "image", "image.bytes")
    with (
        service(capabilities={"image.bytes": REFUSED}) as asked,
        pytest.raises(ConformanceFailure, match="has neither a 'dropped' nor a"),
    ):
        check_refusal(asked, "image", "image.bytes")


class Unstreamed(Delegate):
    """A connection that says that it cannot stream."""

    def open_sync(self, request: WireRequest) -> Any:
        if request.streaming:
            raise sabir.errors.InvalidRequest("acme does not stream; ask for the whole answer")
        return self.base.open_sync(request)


def test_streaming_that_is_declared_refused_is_refused_in_words() -> None:
    """Whoever asks for a stream is told before anything is sent; a request that goes out is a fault."""
    refused = {"capabilities": {"streaming": REFUSED, "options": FULL}}
    with service(Breakage(connection=Unstreamed), **refused) as asked:
        assert asked.refused_need("text", STREAMED) == "streaming"
        assert asked.refused_need("text", WHOLE) is None
        check_refusal(asked, "text", "streaming")
    with service(**refused) as asked, pytest.raises(ConformanceFailure, match="is requested over the network"):
        check_refusal(asked, "text", "streaming")


def keyless(base: Any) -> Any:
    base.credentials = ()
    return base


def test_a_provider_without_keys_is_not_asked_for_a_failure_with_a_wrong_one() -> None:
    """Where no key is needed, a wrong one is expected to do no harm: the recorded text answers."""

    with service(Breakage(provider=keyless)) as asked:
        assert asked.question("bad_key").expects is None
        assert asked.ask("bad_key", WHOLE).error is None


def test_a_service_of_this_machine_is_asked_live() -> None:
    """Nothing is recorded: the reply and the bytes come from asking."""
    said = {"adapter": sabir.adapter("echo:any"), "asks_live": True}
    asked = Service(AdapterUnderTest(type("OfEcho", (Suite,), said)()))

    answer = asked.answer("text", STREAMED)
    [exchange] = answer.exchanges
    assert answer.reply.text == "What is the weather in Paris?"
    assert exchange.response_body.startswith(b"data: ")
    assert exchange.status == 200


def test_an_endless_loop_of_calls_ends(tmp_path: Path) -> None:
    """A model that calls for ever is left after a few rounds, with its last reply."""

    calls = changed(decode=lambda own, body, scope: reply(call(json.loads(body)["id"]), reason="option_calls"))
    said = {"is_recording": True, "cassettes": tmp_path}
    with service(calls, **said) as asked:
        assert len(asked.ask("reasoning_loop", WHOLE).replies) == 4
