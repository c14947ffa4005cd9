"""The same trace under every runner, across processes, and after a crash."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.trace import SpanKind, StatusCode
from sabir import Message
from sabir_runtime import PolicyFailed
from sabir_runtime.distributed import DistributedRunner
from sabir_runtime.durable import DurableRunner

from tests.durable.support import Gate, Program, carried_on, end_at, working
from tests.otel.conftest import Recorded
from tests.otel.desk import OPTIONS, QUESTION, Desk, Names
from tests.otel.trees import trace_ids, tree
from tests.runtime.every_runner import RUNNERS
from tests.servers.shared_nats import nats

__all__ = ["nats"]
KINDS = ["memory", "SQLite", "NATS"]
"""One runner of each kind."""
AGENT = [
    "invoke_agent agent",
    "  invoke_agent llm",
    "    chat m",
    "    execute_tool search",
    "    execute_tool broken",
    "  invoke_agent llm",
    "    chat m",
]
CONVERSATION = [
    "invoke_agent talk",
    "  invoke_agent",
    "    chat m",
    "    execute_tool weather",
    "    execute_tool weather",
    "    chat m",
]


@pytest.mark.parametrize("has_caller", [False, True], ids=["root", "caller"])
@pytest.mark.parametrize("runner_name", KINDS)
async def test_a_policy_is_one_trace_under_each_runner(
    heard: Recorded, runner_name: str, has_caller: bool, request: pytest.FixtureRequest
) -> None:
    """A conversation with two options, and a loop of model calls with two options. Only the distributed runner adds a
    span: the caller's own, which includes the way to the worker and back.
    """
    async with RUNNERS[runner_name](request, Desk) as runner:
        desk = Desk(runner)
        for bound, offered, expected in ((desk.agent, OPTIONS, AGENT), (desk.talk, None, CONVERSATION)):
            before = len(heard.spans)
            if has_caller:
                with heard.tracers.get_tracer("test").start_as_current_span("caller"):
                    await bound(QUESTION, offered)
            else:
                await bound(QUESTION, offered)
            spans = heard.spans[before:]
            around = ["caller"] * has_caller + [expected[0]] * (runner_name == "NATS")

            lines = [*around, *expected]
            levels = [*range(len(around)), *(len(around) for _ in expected)]
            assert tree(spans) == ["  " * level + line for level, line in zip(levels, lines, strict=True)]
            assert len(trace_ids(spans)) == 1

    failed = {span.name for span in heard.spans if span.status.status_code is StatusCode.ERROR}
    assert failed == {"execute_tool broken"}
    kinds = [span.kind for span in heard.spans if span.name == "invoke_agent agent"]
    assert kinds == [SpanKind.INTERNAL, SpanKind.CLIENT][: 1 + (runner_name == "NATS")]
    assert "mellon" not in "".join(span.to_json() for span in heard.spans)


@pytest.mark.parametrize("runner_name", KINDS)
async def test_a_policy_that_fails_ends_its_spans_as_errors(
    heard: Recorded, runner_name: str, request: pytest.FixtureRequest
) -> None:
    async with RUNNERS[runner_name](request, Desk) as runner:
        with pytest.raises(PolicyFailed):
            await Desk(runner).broken("Hi.")

    assert {span.name for span in heard.spans} == {"invoke_agent broken"}
    assert {span.status.status_code for span in heard.spans} == {StatusCode.ERROR}
    assert "mellon" not in "".join(span.to_json() for span in heard.spans)


async def test_a_run_that_another_runner_continues_has_the_same_trace(heard: Recorded, tmp_path: Path) -> None:
    """A finished call has no second span. The run's id joins all spans, too."""
    store, gate = f"sqlite:///{tmp_path}/runs.db", Gate()
    ran: list[str] = []

    async def main(ctx: Program, observations: list[Message], options: Names = None) -> list[Message]:
        await ctx.first(observations)
        return await ctx.gate(observations)  # type: ignore[no-any-return]

    async def first(ctx: Program, observations: list[Message], options: Names = None) -> list[Message]:
        ran.append("first")
        return []

    policies: dict[str, Any] = {"main": main, "first": first, "gate": gate}
    async with working(store, **policies) as (runner, program):
        await end_at(gate, runner, runner.run(program.main, "Hi.", run_id="r"))
    gate.opened.set()
    await carried_on(store, **policies)

    names = sorted(span.name for span in heard.spans)
    assert names == ["invoke_agent first", *["invoke_agent gate"] * 2, *["invoke_agent main"] * 2]
    assert len(trace_ids(heard.spans)) == 1
    assert ran == ["first"]
    assert {(span.attributes or {}).get("gen_ai.conversation.id") for span in heard.spans} == {"r"}


async def test_a_queued_run_belongs_to_the_trace_that_queued_it(heard: Recorded, tmp_path: Path) -> None:
    """A fork is another run with a trace of its own."""
    async with DurableRunner(f"sqlite:///{tmp_path}/runs.db", beat=0.05, poll=0.02) as runner:
        desk = Desk(runner)
        with heard.tracers.get_tracer("test").start_as_current_span("caller"):
            await runner.start(desk.agent, QUESTION, OPTIONS, run_id="r")
        await runner.result("r")
        spans = heard.spans
        await runner.result(runner.runs.fork("r", name="fork"))

    assert tree(spans) == ["caller", *(f"  {line}" for line in AGENT)]
    assert len(trace_ids(spans)) == 1
    assert tree(heard.spans[len(spans) :]) == AGENT
    assert trace_ids(heard.spans[len(spans) :]).isdisjoint(trace_ids(spans))


def child(path: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.otel.children", str(path), *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def written(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_run_that_continues_after_a_crash_has_the_same_trace(tmp_path: Path) -> None:
    """The span of the killed process never ends, but its id and its trace are stored with the run."""
    store = f"sqlite:///{tmp_path}/runs.db"
    before, after = tmp_path / "before.jsonl", tmp_path / "after.jsonl"
    with child(before, "die", store) as process:
        process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    with child(after, "live", store) as process:
        process.communicate(timeout=120)
    assert process.returncode == 0

    spans = [*written(before), *written(after)]
    names = [span["name"] for span in written(before)], sorted(span["name"] for span in written(after))
    assert names[0] == ["chat m"]
    assert names[1] == ["chat m", "execute_tool search", "invoke_agent agent", "invoke_agent llm", "invoke_agent llm"]
    assert len({span["context"]["trace_id"] for span in spans}) == 1
    roots = [span for span in spans if span["parent_id"] is None]
    assert roots == []  # the root was lost with its process; the resumed agent is its child


async def test_a_worker_in_another_process_continues_the_callers_trace(
    heard: Recorded, nats: str, tmp_path: Path
) -> None:
    path = tmp_path / "worker.jsonl"
    with child(path, "work", nats) as process:
        assert process.stdout is not None
        assert await asyncio.to_thread(process.stdout.readline) == "ready\n"
        async with DistributedRunner(nats) as runner:
            await Desk(runner).agent(QUESTION, OPTIONS)
        await asyncio.to_thread(process.communicate)

    caller = heard.span().get_span_context()
    spans = written(path)
    (agent,) = (span for span in spans if span["name"] == "invoke_agent agent")
    assert len(spans) == len(AGENT)
    assert {span["context"]["trace_id"] for span in spans} == {f"0x{caller.trace_id:032x}"}
    assert agent["parent_id"] == f"0x{caller.span_id:016x}"


@pytest.mark.parametrize("runner_name", ["SQLite", "NATS"])
async def test_nothing_is_passed_without_a_trace(
    recorded: Recorded, telling: Callable[..., None], runner_name: str, request: pytest.FixtureRequest
) -> None:
    """Without a provider, the headers are empty, so requests and rows are as without the package."""
    telling(tracer_provider=None)
    async with RUNNERS[runner_name](request, Desk) as runner:
        assert (await Desk(runner).llm("Hello!"))[0].text == "Hello!"

    assert recorded.spans == []
