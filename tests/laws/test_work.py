"""Work grows as the items do: many calls, calls of one id, citations, answers; in a stream and in a history.

Four times as many items may cost five times the lines that run. Lines are counted, not seconds.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import sabir
from sabir.base.values import JSONValue
from sabir.contract.dialect import ServerEvent
from sabir.contract.scope import DecodeScope
from sabir.contract.turns import IdentifierRule
from sabir.options.option import unanswered
from sabir.reading.fold import Fold
from sabir.rendering.turns import Identifiers
from sabir.vocabulary.messages import Message
from sabir_openai import chat_stream
from sabir_openai.responses_stream import ResponsesDecoder
from sabir_testing.histories.samples import call_message, result_message

from tests.laws.work import MOST, entered, lines_run

Fields = dict[str, JSONValue]
DIALECTS = ("openai.chat", "openai.responses", "anthropic.messages", "google.generate_content")
FEW = 500


def call(number: int, identifier: str = "") -> Message:
    return call_message(identifier or f"c{number}", {}, "f")


def result(number: int, identifier: str = "") -> Message:
    return result_message(identifier or f"c{number}", 1, "f")


def each(count: int, *made: Callable[[int], Message]) -> list[Message]:
    return [make(number) for number in range(count) for make in made]


def same_call(number: int) -> Message:
    return call(number, "x")


def same_result(number: int) -> Message:
    return result(number, "x")


def said(number: int) -> Message:
    return sabir.user(f"{number}")


def thought(number: int) -> Message:
    return sabir.assistant(f"{number}")


HISTORIES: dict[str, Callable[[int], list[Message]]] = {
    "parallel calls": lambda n: each(n, call) + each(n, result),
    "calls of one id in one run": lambda n: each(n, same_call) + each(n, same_result),
    "calls of one id, answered one by one": lambda n: each(n, same_call, same_result),
    "calls of one id in many runs": lambda n: each(n, same_call, thought) + each(n, same_result),
    "abandoned calls of one id": lambda n: each(n, same_call, said) + each(n, same_result),
    "turns": lambda n: each(n, said, thought),
}


def grows(make: Callable[[int], Callable[[], object]], few: int = FEW) -> float:
    """How many times the work four times as many items cost; what is done once was done before."""
    make(8)()
    small, large = make(few), make(4 * few)
    return lines_run(large) / lines_run(small)


@pytest.mark.parametrize("kind", HISTORIES)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_rendering_grows_as_the_history(dialect: str, kind: str) -> None:
    pure = sabir.dialect(dialect)

    def make(count: int) -> Callable[[], object]:
        history = HISTORIES[kind](count)
        return lambda: pure.render(history, model="small")

    assert grows(make, 150) <= MOST


FUNCTIONS, CHANGES = 100, 80
"""The most functions entered and changes of file, a plugin's own among them. Fitting a schema, the owner of further
fields and the facts of a model take ten since they are checked for every request."""


def test_a_short_conversation_goes_through_few_functions_and_files() -> None:
    """Six messages with one option, not rendered before; another conversation was."""
    llm = sabir.adapter("anthropic:claude-sonnet-4-5", api_key="none")
    weather = sabir.Option.from_schema("f", "", {"type": "object", "properties": {}})
    first, second = ([said(1), thought(1), said(2), call(1), result(1), said(3)] for _ in range(2))
    llm.render(first, options=[weather])

    found = entered(lambda: llm.render(second, options=[weather]))

    figure = f"{len(found.functions)} functions, {found.changes} changes of file"
    print(figure)
    assert len(found.functions) <= FUNCTIONS and found.changes <= CHANGES, f"{figure}: {Counter(found.functions)}"


@pytest.mark.parametrize("kind", HISTORIES)
def test_finding_what_is_unanswered_grows_as_the_history(kind: str) -> None:
    def make(count: int) -> Callable[[], object]:
        history = HISTORIES[kind](count)
        return lambda: unanswered(history)

    assert grows(make, 1_000) <= MOST


@pytest.mark.parametrize("given", ["x", "no id of that wire!"])
def test_naming_calls_of_one_id_grows_as_they_do(given: str) -> None:
    def make(count: int) -> Callable[[], object]:
        names = Identifiers(IdentifierRule(characters="[a-z0-9_]", longest=40))

        def name() -> None:
            for _ in range(count):
                names.fresh(given)
            for _ in range(count // 100):
                Identifiers(names.rule, names, names.count).fresh(given)

        return name

    assert grows(make, 5_000) <= MOST


def streamed(dialect: str, chunks: Sequence[Fields]) -> Callable[[], object]:
    pure = sabir.dialect(dialect)
    events = [ServerEvent(json.dumps(chunk), str(chunk.get("type", ""))) for chunk in chunks]

    def decode() -> None:
        scope = DecodeScope(pure.target)
        decoder, fold = pure.dialect.decoder(scope), Fold(scope)
        for event in events:
            for found in decoder.feed(event):
                fold.feed(found)
        for found in decoder.close():
            fold.feed(found)
        assert fold.reply().messages

    return decode


def chat(*deltas: Fields, finish: str = "stop") -> Callable[[], object]:
    chunks: list[Fields] = [{"id": "r", "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    return streamed("openai.chat", [*chunks, {"id": "r", "choices": [{"index": 0, "finish_reason": finish}]}])


def piece(arguments: str, **more: JSONValue) -> Fields:
    return {"tool_calls": [{**more, "function": {"arguments": arguments, **({"name": "f"} if "id" in more else {})}}]}


STREAMS: dict[str, Callable[[int], Callable[[], object]]] = {
    "chat calls": lambda n: chat(*(piece("{}", index=at, id=f"c{at}") for at in range(n)), finish="tool_calls"),
    "chat calls that grow at once": lambda n: chat(
        *(piece("{", index=at, id=f"c{at}") for at in range(n)), *(piece("}", index=at) for at in range(n))
    ),
    "chat calls under one index": lambda n: chat(*(piece("{}", index=0, id=f"c{at}") for at in range(n))),
    "chat calls without an index": lambda n: chat(*(piece("{}", id=f"c{at}") for at in range(n))),
    "details": lambda n: chat({"content": "a"}, *({"reasoning_details": [{"at": at}]} for at in range(n))),
    "details that grow": lambda n: chat(
        {"content": "a"}, *({"reasoning_details": [{"type": "reasoning.text", "text": "a"}]} for _ in range(n))
    ),
}


@pytest.mark.parametrize("kind", STREAMS)
def test_decoding_a_stream_grows_as_its_events(kind: str) -> None:
    assert grows(STREAMS[kind], 300) <= MOST


GROWING: dict[str, Callable[[int], Callable[[], object]]] = {
    "citations": lambda n: chat({"content": "a"}, *({"annotations": [{"type": "x", "at": at}]} for at in range(n))),
    "transcript": lambda n: chat(*({"audio": {"transcript": "word "}} for _ in range(n))),
    "an old call": lambda n: chat(
        *({"function_call": {"name": "" if at else "f", "arguments": " "}} for at in range(n))
    ),
}


@pytest.mark.parametrize("kind", GROWING)
def test_what_grows_in_a_stream_is_not_copied_with_each_event(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list and a text are the same object from their second event on, so that no event costs what came before it."""
    seen: set[tuple[int, str]] = set()
    add_fields = chat_stream.add_fields

    def watched(found: dict[str, object], more: dict[str, object]) -> dict[str, object]:
        after = add_fields(found, more)
        seen.update((id(value), name) for name, value in after.items() if isinstance(value, list))
        return after

    monkeypatch.setattr(chat_stream, "add_fields", watched)
    GROWING[kind](200)()

    assert 1 <= len(seen) <= 2


def test_an_item_without_a_place_is_placed_without_a_look_at_all_others() -> None:
    looks = 0

    class Watched(dict[str, int]):
        def values(self) -> Any:
            nonlocal looks
            looks += 1
            return super().values()

    decoder = ResponsesDecoder(DecodeScope(sabir.dialect("openai.responses").target))
    decoder._indices = Watched()
    for number in range(50):
        item = {"type": "function_call", "id": f"i{number}", "call_id": f"c{number}", "name": "f", "arguments": "{}"}
        list(decoder.feed(ServerEvent(json.dumps({"type": "response.output_item.done", "item": item}))))

    assert list(decoder._indices.values()) == list(range(50))
    assert looks == 1
