"""What strangers send to a worker: it runs what the subject says, answers every request, and holds so much of it."""

import asyncio
import logging
import zlib
from typing import Any

import pytest
import sabir
from nats.aio.client import Client
from nats.aio.msg import Msg
from sabir_runtime.distributed import CallSettings, WorkerSettings
from sabir_runtime.distributed.envelopes import Answered, Failed

from tests.distributed.contexts import Desk, echo
from tests.distributed.support import Caller, Gate, Place, body_of, flushed, own, soon, until

TURN = {"policy": "user", "payload": {"kind": "parts", "parts": [0] * 30_000}}
NEVER = WorkerSettings(accept_after=1000.0)


async def refusal(caller: Caller, name: str, body: bytes) -> str:
    await caller.client.publish(f"sabir.{name}.echo", body, reply=f"{caller.inbox}.r1.1")
    await caller.client.publish(f"sabir-all.{name}", body)
    failed: Failed = await caller.first(Failed)
    await caller.ask("r2", policy="echo")
    await caller.first(Answered)
    return f"{failed.error.raised_by}: {failed.error.type}: {failed.error.message}"


@pytest.mark.parametrize("subject", ["sabir.{name}.echo", "sabir-worker.{id}.{name}.echo"])
async def test_a_subject_runs_its_own_policy_alone(place: Place, caller: Caller, gate: Gate, subject: str) -> None:
    """Who may publish to one policy's subject may run that policy, and no other."""
    gate.opened.set()

    async with place.worker(gate.with_echo) as worker:
        sent_to = subject.format(name=place.name, id=worker.id)
        body = body_of(place.name, "wait", observations=[sabir.user("x").model_dump()])
        await caller.client.publish(sent_to, body, reply=f"{caller.inbox}.r1.1")
        failed = await caller.first(Failed)

    reason = f"the request is for 'wait' of {place.name!r}, but came to the subject {sent_to!r}"
    told = f"{reason}; send it to the policy's own subject"
    assert (failed.error.type, failed.error.message) == ("EnvelopeInvalid", told)
    assert gate.began == []


@pytest.mark.parametrize(("inbox", "policy"), [("another", "echo"), ("another", "wait"), ("the same", "echo")])
async def test_an_answer_is_for_who_asked(
    place: Place, caller: Caller, client: Client, gate: Gate, inbox: str, policy: str
) -> None:
    stranger = caller
    if inbox == "another":
        stranger = Caller(client, place.name)
        await stranger.listen()

    one = NEVER.model_copy(update={"concurrency": 1})
    async with place.worker(gate.with_echo, one) as worker:
        await caller.ask("r1", "begun")
        await caller.ask("r2", "in line", sending=2, waited=1.0)
        await until(lambda: worker.waiting == ["r2"])
        for number, id in enumerate(["r1", "r2"], 1):
            await stranger.ask(id, policy=policy, sending=9)
            await until(lambda number=number: len(stranger.of(Failed)) == number)
        gate.opened.set()
        await until(lambda: len(caller.of(Answered)) == 2)
        await stranger.ask("r1", policy=policy, sending=9)
        await until(lambda: len(stranger.of(Failed)) == 3)

    remedy = "give each request its own id"
    told = [
        f"the request id {id!r} was used before, for another policy or caller; {remedy}" for id in ("r1", "r2", "r1")
    ]
    assert [(each.error.type, each.error.message) for each in stranger.of(Failed)] == [
        ("EnvelopeInvalid", each) for each in told
    ]
    assert [subject for subject, reply in caller.heard if isinstance(reply, Answered)] == ["r1.1", "r2.2"]
    assert stranger is caller or not stranger.of(Answered)
    assert gate.ended == ["begun", "in line"]


@pytest.mark.parametrize("reply", ["sabir.{name}.other", "sabir-all.{name}", "elsewhere.x", "_INBOXES.{name}"])
async def test_a_worker_answers_to_inboxes_alone(
    place: Place, caller: Caller, client: Client, gate: Gate, caplog: pytest.LogCaptureFixture, reply: str
) -> None:
    """Or a caller would have it publish where the caller itself may not, a request for another policy say."""
    heard, reply = [], reply.format(name=place.name)

    async def hear(message: Msg) -> None:
        if not message.reply:
            heard.append(message.data)

    await client.subscribe(reply, cb=hear)
    await flushed(client)
    async with place.worker(gate.context) as worker:
        await caller.client.publish(f"sabir.{place.name}.wait", b"nonsense", reply=reply)
        await caller.client.publish(f"sabir.{place.name}.wait", body_of(place.name, "wait"), reply=reply)
        await caller.client.publish(f"sabir-all.{place.name}", b'{"schema":1,"kind":"sought","id":"r1"}', reply=reply)
        await caller.settle(worker)
        await flushed(client)

    assert (heard, gate.began) == ([], [])
    warned = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warned == 3 * [
        f"worker {worker.id} dropped a message, because its reply subject ({reply!r}) is not an inbox"
    ]


async def test_callers_may_have_inboxes_of_their_own(place: Place) -> None:
    async with (
        place.worker(Desk, WorkerSettings(inbox="replies.desk")),
        place.runner(CallSettings(inbox="replies.desk")) as runner,
    ):
        assert (await soon(Desk(runner).echo("x")))[0].text == "x"
        assert runner._caller is not None
        assert runner._caller._inbox.startswith("replies.desk.")


async def test_no_request_holds_a_place_longer_than_allowed(place: Place, caller: Caller, gate: Gate) -> None:
    brief = WorkerSettings(accept_after=0.0, longest=0.05)
    async with place.worker(gate.context, brief) as worker:
        await caller.ask("r1", left=1e300)
        failed = await caller.first(Failed)
        await until(lambda: not worker.requests)

    told = "the request was stopped after 0.05 s, the worker's limit; increase WorkerSettings(longest=…)"
    assert (failed.error.type, failed.error.message, gate.cancelled) == ("RequestTimedOut", told, ["x"])


async def test_no_request_is_older_than_that(place: Place, caller: Caller, gate: Gate) -> None:
    """The oldest stands first in line; one that claims to be as old as the world stands no better than one that is."""
    one = NEVER.model_copy(update={"concurrency": 1, "longest": 60.0})
    async with place.worker(gate.context, one) as worker:
        await caller.ask("r1", "first")
        await caller.ask("r2", "old", waited=60.0, sending=2)
        await caller.ask("r3", "liar", waited=1e300, sending=2)
        await until(lambda: worker.waiting == ["r2", "r3"])
        gate.opened.set()
        await until(lambda: len(caller.of(Answered)) == 3)


@pytest.mark.parametrize(
    "arguments",
    ["[" * 100_000, '{"times":' + "[" * 100_000, "{" * 100_000, '{"' + "x" * 100_000 + '": 1}', "[]", "3", "null",
     "", "{", '{"self": 1}', '{"observations": 1}', '{"options": 1}', '{"ctx": 1}', '{"nowhere": 1}',
     '{"times": NaN}', '{"times": 1e999}', '{"times": "soon"}', '{"times": {}}'],
    ids=lambda text: text[:20],
)  # fmt: skip
async def test_arguments_of_any_kind_are_answered(place: Place, caller: Caller, arguments: str) -> None:
    async with place.worker(Desk):
        told = await refusal(caller, place.name, body_of(place.name, arguments=arguments))

    assert told.startswith(("worker: PolicyInvalid: wrong arguments for policy 'echo'", "worker: EnvelopeInvalid: "))
    assert len(told) < 11_000


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"[" * 900_000, "more than 500,000 JSON values"),
        (b'{"schema":1,"x":' + b"[" * 400_000, "request is not JSON"),
        (b'{"schema":' + b"[" * 90 + b"]" * 90 + b"}", "has schema [[[["),
        (b'{"schema":"' + b"2" * 900_000 + b'"}', "has schema '2222"),
        (body_of("x", context="C" * 900_000), "context: String should have at most 200 characters"),
        (body_of("x", policy="P" * 900_000), "policy: String should have at most 200 characters"),
        (body_of("x", id="I" * 900_000), "id: String should have at most 200 characters"),
        (body_of("x", id=""), "id: String should have at least 1 character"),
        (body_of("x", options=["o"] * 10_001), "options: Tuple should have at most 10000 items"),
        (body_of("x", options=["o" * 201]), "options.0: String should have at most 200 characters"),
        (body_of("x", observations=[0] * 100_001), "observations.0: Input should be a valid dictionary"),
        (b'{"schema":1,"observations":[\n' + b",\n" * 400_000 + b"\n]}", "request is not JSON"),
        (body_of("x", observations=[TURN] * 9), "parts.0.unknown: Value error, kind 0 is unknown"),
        (b'{"schema":1,"x":[' + b"{}," * 300_000 + b"{}]}", "more than 500,000 JSON values; send fewer messages"),
        (body_of("\N{SNOWMAN}" * 100), "came to"),
        (body_of("\udc80"), "context: contains a lone surrogate"),
        (b"", "request is not JSON"),
        (b"nonsense", "request is not JSON"),
        (b"x\x9c damaged", "cannot be decompressed"),
        (body_of("x").replace(b'"schema": 1', b'"schema": 7'), "has schema 7, but this version reads schema 1"),
        (body_of("Other"), "request is for 'echo' of 'Other', but came to"),
        (zlib.compress(b" " * 1_000_001), "unpacks to more than 1,000,000 bytes; send less, or increase `largest`"),
        *[(body_of("x").replace(b'"seconds_left": 5', b'"seconds_left": ' + left), "the request is not ") for left in
          (b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1", b"0", b'"soon"', b"null")],
    ],
    ids=range(30),
)  # fmt: skip
async def test_a_request_of_any_shape_is_answered(place: Place, caller: Caller, body: bytes, reason: str) -> None:
    async with place.worker(Desk, WorkerSettings(largest=1_000_000)):
        told = await refusal(caller, place.name, body)

    assert told.startswith("worker: EnvelopeInvalid: ")
    assert reason in told
    assert len(told) < 1000


async def test_requests_of_many_bytes_are_not_held_together(place: Place, caller: Caller, gate: Gate) -> None:
    small = NEVER.model_copy(update={"held": 5000})
    async with place.worker(gate.context, small) as worker:
        await caller.ask("r1", "x" * 4000)
        await caller.ask("r2", "y" * 4000)
        await caller.ask("r3", "z")
        await until(lambda: len(gate.began) == 2)
        gate.opened.set()
        await caller.settle(worker)

    assert [text[0] for text in gate.began] == ["x", "z"]
    assert [subject for subject, reply in caller.heard if not isinstance(reply, Answered)] == ["r2.1"]


class Unspeakable(Exception):
    """Says nothing of itself."""

    def __str__(self) -> str:
        raise LookupError


NAMELESS = type("", (Exception,), {})
UNWRITABLE = sabir.assistant("x").model_construct(id="m", policy="echo", payload=object())


@pytest.mark.parametrize(
    "raised",
    [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError(), MemoryError(),
     BaseExceptionGroup("two", [SystemExit(1)]), RecursionError(), StopIteration(), Unspeakable(),
     NAMELESS("\udc80"), ValueError("x" * 3_000_000)],
    ids=lambda raised: type(raised).__qualname__ or "nameless",
)  # fmt: skip
async def test_whatever_a_policy_raises_is_answered(place: Place, caller: Caller, raised: BaseException) -> None:
    """A worker answers for many: it ends with none of them, and leaves nobody waiting."""

    async def end(ctx: Any, observations: Any, options: Any = None) -> Any:
        raise raised

    async with place.worker(own(end=end, echo=echo)) as worker:
        await caller.ask("r1", policy="end")
        failed = await caller.first(Failed)
        await caller.ask("r2", policy="echo")
        await caller.first(Answered)
        assert worker.requests == []
    assert failed.error.raised_by == "policy"


@pytest.mark.parametrize(
    "result", [None, 3, [3], [UNWRITABLE], "text"], ids=["None", "3", "list", "unwritable", "text"]
)
async def test_whatever_a_policy_returns_is_answered(place: Place, caller: Caller, result: Any) -> None:
    async def give(ctx: Any, observations: Any, options: Any = None) -> Any:
        return result

    async with place.worker(own(give=give)):
        await caller.ask("r1", policy="give")
        await caller.first(Failed)
