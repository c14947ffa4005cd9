"""What is kept of a conversation: it renders as afresh however it grew, and dies with its messages."""

import gc
import threading
import weakref
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import sabir
from sabir.base.failures import Loss
from sabir.errors import RenderingRefused
from sabir.rendering.renderer import Renderer
from sabir.vocabulary.messages import Message, PartsPayload
from sabir.vocabulary.parts import MediaPart
from sabir_testing.histories.invented_dialects import INLINE, toy_target
from sabir_testing.histories.samples import call_message, message_by, result_message

from tests.laws.every import on_every
from tests.laws.replies import MODELS

WIRES = (*MODELS, "echo.plain", INLINE.name)
"""And a toy that puts values as they are into its items, and takes any text."""


def fresh(name: str) -> Renderer:
    if name == INLINE.name:
        return Renderer(INLINE, toy_target(INLINE))
    pure = sabir.dialect(name)
    return Renderer(pure.dialect, pure.target.model_copy(update={"model": MODELS.get(name, "small")}))


def rendered(renderer: Renderer, history: Sequence[Message]) -> tuple[bytes, tuple[Loss, ...]] | None:
    try:
        rendering = renderer.render(history)
    except RenderingRefused:
        return None
    return rendering.body_bytes, rendering.losses


def call(invocation_id: str, **arguments: Any) -> Message:
    return call_message(invocation_id, arguments, "weather")


def result(invocation_id: str, value: Any) -> Message:
    return result_message(invocation_id, value, "weather")


def answered(outcome: Any, invocation_id: str = "a", **arguments: Any) -> list[Message]:
    return [call(invocation_id, **arguments), result(invocation_id, outcome)]


ODD_TURNS: dict[str, list[Message]] = {
    "a number with an exponent": answered("x", n=1e16),
    "a small number": answered("x", n=1e-7),
    "a result with an exponent": answered({"n": 1e-7}),
    "a result that ends with white space": answered("so\n"),
    "a result that ends with a control character": answered("so\x1f"),
    "a result that begins with white space": answered("\nso"),
    "a result of white space": answered(" "),
    "a result of a line's end": answered("\n"),
    "an empty result": answered(""),
    "a result that is a reference": answered({"$ref": "#/x"}),
    "a result with a key of the wire": answered({"output": 1}),
    "a result that is nothing": answered(None),
    "calls of one id": [
        call("a"), call("a"), result("a", "1"), result("a", "2"),
    ],
    "an id that was used": [*answered("x"), *answered("y")],
    "a result for nobody": [result("z", "1"), message_by("user", "again")],
    "a result twice": [*answered("x"), result("a", "2")],
    "results in another order": [
        call("a"), call("b"), result("b", "1"), result("a", "2"),
    ],
    "a text after a call": [call("a"), message_by("llm", "so"), result("a", "1")],
    "a late result": [call("a"), message_by("user", "?"), message_by("llm", "!"), result("a", "1")],
    "a late system message": [message_by("llm", "x"), message_by("system", "And be kind.")],
    "white space at an end": [message_by("llm", "x "), message_by("user", " y")],
}  # fmt: skip


@pytest.mark.parametrize("case", ODD_TURNS)
@on_every(WIRES)
def test_a_conversation_renders_as_it_grows_as_it_does_at_once(name: str, case: str) -> None:
    usual = [
        message_by("system", "s"),
        message_by("user", "Hi"),
        *answered("fine", "p", city="Paris"),
        message_by("llm", "so"),
        message_by("user", "?"),
    ]
    ending = [message_by("llm", "well"), message_by("user", "!"), message_by("llm", "yes"), message_by("user", "?")]
    history = [*usual, *ODD_TURNS[case], *ending]
    kept = fresh(name)

    for end in range(1, len(history) + 1):
        assert rendered(kept, history[:end]) == rendered(fresh(name), history[:end])


def test_a_prefix_falls_back_to_the_last_closer_that_lives() -> None:
    renderer = fresh("openai.chat")
    history = [message_by("user" if number % 2 == 0 else "llm", f"{number}") for number in range(300)]
    renderer.render(history)
    (kept,) = renderer._indexes.values()
    entered = len(kept._by_closer)

    del history[150:]

    assert 0 < len(kept._by_closer) < entered
    found = kept.find(history)
    assert found.prefix
    assert 80 < found.boundary.position <= 150
    del found
    history.clear()
    assert len(kept._by_closer) == 0


def test_a_message_without_its_conversation_is_kept_by_no_prefix() -> None:
    renderer = fresh("openai.chat")
    history = [message_by("user" if number % 2 == 0 else "llm", f"{number}") for number in range(40)]
    renderer.render(history)
    kept, other = history[20], weakref.ref(history[3])

    history.clear()

    assert kept.text == "20"
    assert other() is None


def test_a_prefix_that_fell_back_keeps_no_request_alive() -> None:
    renderer = fresh("openai.chat")
    history = [message_by("user" if number % 2 == 0 else "llm", f"{number}") for number in range(20)]
    picture = MediaPart(modality="image", url="data:image/png;base64," + "A" * 1_000_000)

    renderer.render([*history, Message(policy="user", payload=PartsPayload(parts=(picture,)))])
    gc.collect()

    (kept,) = renderer._indexes.values()
    found = kept.find([*history, message_by("user", "?")])
    assert found.prefix
    assert memoryview(found.prefix.body.obj).nbytes < 10_000


def test_a_prefix_that_is_falling_back_is_not_extended() -> None:
    renderer = fresh("openai.chat")
    history = [message_by("user" if number % 2 == 0 else "llm", f"{number}") for number in range(20)]
    ending, other = [[message_by("user", name), message_by("llm", name), message_by("user", name)] for name in "ab"]
    renderer.render([*history, *ending])
    (kept,) = renderer._indexes.values()
    (prefix,) = kept._owned.values()

    class Watched(list[Any]):
        def pop(self, *where: Any) -> Any:
            last = super().pop(*where)
            if self[-1].position == 19:
                thread = threading.Thread(target=renderer.render, args=([*history, *other],))
                thread.start()
                thread.join()
            return last

    prefix.boundaries = Watched(prefix.boundaries)
    del prefix
    ending.clear()
    gc.collect()

    for longer in ([*history, *other], [*history, *other, message_by("llm", "c")], [*history, message_by("user", "d")]):
        assert rendered(renderer, longer) == rendered(fresh("openai.chat"), longer)


def test_a_prefix_that_fell_back_while_another_thread_rendered_is_not_extended() -> None:
    given = fresh(INLINE.name)
    found, go = threading.Event(), threading.Event()
    waits: dict[str, Any] = {}

    def encode(*arguments: Any) -> Any:
        if wait := waits.pop(threading.current_thread().name, None):
            wait()
        return INLINE.encode_turn(*arguments)

    renderer = Renderer(replace(INLINE, encode_turn=encode), given.scope.target)
    start = [message_by("user", "1"), message_by("llm", "1"), message_by("user", "2")]
    first, one, other = ([*start, message_by("llm", name), message_by("user", name)] for name in "pxy")
    told: list[object] = []

    def wait() -> None:
        found.set()
        go.wait()

    waits["one"] = wait
    thread = threading.Thread(target=lambda: told.append(rendered(renderer, one)), name="one")

    def meanwhile() -> None:
        renderer.render(first)
        thread.start()
        found.wait(5)

    waits[threading.current_thread().name] = meanwhile
    renderer.render(other)
    first.clear()
    gc.collect()
    go.set()
    thread.join()

    assert told == [rendered(given, one)]
