"""One adapter for all: threads and tasks share it without cross-talk, and whoever leaves closes what he opened."""

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sabir
from sabir.calling.adapter import ModelAdapter
from sabir.contract.turns import LossLog, Turn, TurnScope
from sabir.vocabulary.messages import Message

from tests.core.support import WORDS, Answer, Loopback, Tiny, TinyDialect, streamed, whole

THREADS = 32
TASKS = 1000
SHARED = [message for n in range(20) for message in (sabir.user(f"question {n}"), sabir.assistant(f"answer {n}"))]


def answer(path: str, body: Any) -> Answer:
    """The last turn's text, in one piece or in two, so that whoever gets another's answer finds out."""
    said = body["turns"][-1]["text"]
    if path == "/talk":
        return whole(f"re: {said}")
    return streamed({"open": said}, {"text": "re: "}, {"text": said}, {"finish": "stop"})


def conversation(caller: int) -> list[Message]:
    return [*SHARED, sabir.user(f"caller {caller}")]


def expected_bytes(callers: int) -> set[bytes]:
    """What an adapter of each caller's own renders from nothing (law 5)."""
    return {sabir.adapter("tiny:m").render(conversation(caller)).body_bytes for caller in range(callers)}


def test_one_adapter_is_shared_by_32_threads(tiny: Tiny) -> None:
    barrier = threading.Barrier(THREADS)

    with Loopback(answer) as server, sabir.adapter("tiny:m", base_url=server.url) as llm:

        def call(caller: int) -> set[str]:
            barrier.wait(30)
            texts = set()
            for _ in range(3):
                texts.add(llm.complete_sync(conversation(caller)).text)
                texts.add(llm.stream_sync(conversation(caller)).reply().text)
            return texts

        with ThreadPoolExecutor(THREADS) as pool:
            texts = list(pool.map(call, range(THREADS)))

        assert [{f"re: caller {caller}"} for caller in range(THREADS)] == texts
        assert dict(tiny.made) == {"connection": 1, "client": 1}
        sent = {received.body for received in server.received if received.path == "/talk"}
        assert expected_bytes(THREADS) == sent
        assert len(server.received) == THREADS * 6


async def test_one_adapter_is_shared_by_1000_tasks(tiny: Tiny) -> None:
    with Loopback(answer) as server:
        async with sabir.adapter("tiny:m", base_url=server.url) as llm:

            async def call(caller: int) -> str:
                if caller % 2:
                    return (await llm.complete(conversation(caller))).text
                async with llm.stream(conversation(caller)) as stream:
                    return "".join([text async for text in stream.text])

            texts = await asyncio.gather(*(call(caller) for caller in range(TASKS)))

        assert [f"re: caller {caller}" for caller in range(TASKS)] == texts
        assert dict(tiny.made) == {"connection": 1, "async client": 1}
        sent = {json.dumps({**json.loads(received.body), "stream": None}) for received in server.received}
        assert {json.dumps({**json.loads(body), "stream": None}) for body in expected_bytes(TASKS)} == sent


def test_callers_that_share_a_history_share_what_it_rendered_to(monkeypatch: pytest.MonkeyPatch, tiny: Tiny) -> None:
    """No cache is lost: of a history that was rendered once, each caller encodes its last turn and his own."""
    encoded: list[Turn] = []
    encode_turn = TinyDialect.encode_turn

    def count(self: TinyDialect, turn: Turn, scope: TurnScope, losses: LossLog) -> Any:
        encoded.append(turn)
        return encode_turn(self, turn, scope, losses)

    monkeypatch.setattr(TinyDialect, "encode_turn", count)
    llm = sabir.adapter("tiny:m")
    llm.render(conversation(0))
    assert len(SHARED) + 1 == len(encoded)
    encoded.clear()

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda caller: llm.render(conversation(caller)), range(200)))

    own = {f"caller {caller}" for caller in range(200)}
    assert {SHARED[-1].text, *own} == {turn.entries[-1].message.text for turn in encoded}
    assert len(encoded) == 2 * 200


def test_a_thread_that_renders_makes_no_other_wait(monkeypatch: pytest.MonkeyPatch, tiny: Tiny) -> None:
    llm, history = sabir.adapter("tiny:m"), [*SHARED, sabir.user("and?")]
    encode_turn, others, threads = TinyDialect.encode_turn, list[bytes](), list[threading.Thread]()

    def render_beside(self: TinyDialect, turn: Turn, scope: TurnScope, losses: LossLog) -> Any:
        if not threads:
            threads.append(threading.Thread(target=lambda: others.append(llm.render(history).body_bytes), daemon=True))
            threads[0].start()
            threads[0].join(30)
        return encode_turn(self, turn, scope, losses)

    expected = sabir.adapter("tiny:m").render(history).body_bytes
    monkeypatch.setattr(TinyDialect, "encode_turn", render_beside)

    assert llm.render(history).body_bytes == expected
    assert others == [expected]
    assert llm.render([*history, sabir.assistant("so")]).body_bytes.startswith(expected[:-3])


@pytest.mark.parametrize("surface", ["complete", "stream"])
async def test_cancelling_a_call_closes_its_connection(tiny: Tiny, surface: str) -> None:
    begun = Answer([b'{"text": '] if surface == "complete" else streamed(*WORDS[:2]).chunks, then="wait")
    behaviours = iter([Answer(then="wait"), begun])

    async def ask(llm: ModelAdapter) -> None:
        await (llm.complete("hi") if surface == "complete" else llm.stream("hi").reply())

    with Loopback(lambda *_: next(behaviours)) as server:
        async with sabir.adapter("tiny:m", base_url=server.url) as llm:
            for calls in (1, 2):
                task = asyncio.create_task(ask(llm))
                while len(server.received) < calls:
                    await asyncio.sleep(0.01)
                await asyncio.sleep(0.05)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert await asyncio.to_thread(server.was_left)


async def test_a_cancelled_call_leaves_the_others_alone(tiny: Tiny) -> None:
    def behave(path: str, body: Any) -> Answer:
        return Answer(then="wait") if body["turns"][-1]["text"] == "caller 0" else answer(path, body)

    with Loopback(behave) as server:
        async with sabir.adapter("tiny:m", base_url=server.url) as llm:
            tasks = [asyncio.create_task(llm.complete(conversation(caller))) for caller in range(20)]
            await asyncio.wait(tasks[1:])
            tasks[0].cancel()

            assert [f"re: caller {caller}" for caller in range(1, 20)] == [task.result().text for task in tasks[1:]]
            with pytest.raises(asyncio.CancelledError):
                await tasks[0]
