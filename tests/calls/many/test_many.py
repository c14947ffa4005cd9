"""Many prompts: every prompt has one outcome, and a run that is killed pays for no reply twice."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sabir
from sabir_calls import (
    JournalError,
    Outcome,
    Progress,
    complete_many,
    complete_many_sync,
    each_completed,
    each_completed_sync,
)
from sabir_testing import ScriptedAdapter, always, delayed
from sabir_testing.scripted import Gate, ScriptedRequest

PROMPTS = [f"Number {number}" for number in range(20)]
ECHO = always(lambda sent: sent.user_text)


def run(is_async: bool, *arguments: object, **how: object) -> list[Outcome]:
    if is_async:
        return asyncio.run(complete_many(*arguments, **how))  # type: ignore[arg-type]
    return complete_many_sync(*arguments, **how)  # type: ignore[arg-type]


@pytest.fixture(params=[True, False], ids=["async", "sync"])
def is_async(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def test_outcomes_are_in_the_order_of_the_prompts(is_async: bool) -> None:
    seen: list[Progress] = []
    outcomes = run(is_async, ScriptedAdapter(ECHO), PROMPTS, at_once=7, progress=seen.append)
    assert [each.text for each in outcomes] == PROMPTS
    assert [each.index for each in outcomes] == list(range(20))
    assert (seen[-1].done, seen[-1].total, seen[-1].running) == (20, 20, 0)
    assert max(each.running for each in seen) == 7


def test_a_failed_call_is_an_outcome_and_the_others_continue(is_async: bool) -> None:
    def answer(sent: ScriptedRequest) -> str | sabir.errors.InvalidRequest:
        text = sent.user_text
        return sabir.errors.InvalidRequest("no") if text.endswith("3") else text

    outcomes = run(is_async, ScriptedAdapter(always(answer)), PROMPTS)
    assert [each.index for each in outcomes if each.error] == [3, 13]
    with pytest.raises(sabir.errors.InvalidRequest):
        _ = outcomes[3].text


def test_an_error_that_every_prompt_would_meet_is_raised(is_async: bool) -> None:
    with pytest.raises(sabir.errors.SettingsInvalid):
        run(is_async, sabir.adapter("echo:m"), PROMPTS, settings="none")
    with pytest.raises(sabir.errors.SettingsInvalid, match="at_once is 0"):
        run(is_async, sabir.adapter("echo:m"), PROMPTS, at_once=0)


def test_prompts_are_read_as_the_calls_need_them() -> None:
    read: list[int] = []

    def endless() -> object:
        for number in range(10**9):
            read.append(number)
            yield f"Number {number}"

    outcomes = each_completed_sync(ScriptedAdapter(ECHO), endless(), at_once=4)  # type: ignore[arg-type]
    for _ in range(10):
        next(outcomes)
    outcomes.close()
    assert len(read) <= 18


def test_equal_prompts_have_a_reply_each(is_async: bool, tmp_path: Path) -> None:
    script = ScriptedAdapter(*map(str, range(3)))
    file = tmp_path / "run.jsonl"
    outcomes = run(is_async, script, ["Hello!"] * 3, at_once=1, resume=file)
    assert [each.text for each in outcomes] == ["0", "1", "2"]
    again = run(is_async, ScriptedAdapter(), ["Hello!"] * 3, resume=file)
    assert [each.text for each in again] == ["0", "1", "2"]
    assert all(each.is_resumed for each in again)


def test_a_cancelled_run_says_what_was_received_and_keeps_it(tmp_path: Path) -> None:
    gate = Gate()
    file = tmp_path / "run.jsonl"
    llm = ScriptedAdapter(always(lambda sent: delayed("late", gate) if "19" in sent.user_text else sent.user_text))

    async def cancelled() -> str:
        done = asyncio.Event()

        def report(progress: Progress) -> None:
            if progress.done == 19:
                done.set()

        task = asyncio.create_task(complete_many(llm, PROMPTS, resume=file, progress=report))
        await done.wait()
        task.cancel()
        try:
            await task
        except asyncio.CancelledError as error:
            return error.__notes__[0]
        raise AssertionError("the run was not cancelled")

    note = asyncio.run(cancelled())
    assert "19 of 20 done" in note
    assert "started calls without a reply, which may be charged: 1" in note
    again = ScriptedAdapter("the last")
    outcomes = complete_many_sync(again, PROMPTS, resume=file)
    assert outcomes[19].text == "the last"
    assert len(again.sent) == 1


KILLED = """
import sys, time, sabir
from sabir_calls import complete_many_sync
from sabir_testing import ScriptedAdapter, always
def answer(sent):
    print(sent.user_text, flush=True)
    time.sleep(0.02)
    return sent.user_text
complete_many_sync(ScriptedAdapter(always(answer)), [f"Number {n}" for n in range(200)], at_once=2, resume=sys.argv[1])
"""


def test_a_killed_run_continues_without_paying_for_a_stored_reply(tmp_path: Path) -> None:
    file, prompts = tmp_path / "run.jsonl", [f"Number {number}" for number in range(200)]
    asked: list[str] = []
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(file)], stdout=subprocess.PIPE, text=True)
        while not file.exists() or file.read_bytes().count(b"\n") < 10 * (1 + len(asked) // 10):
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        asked += process.communicate()[0].split("\n")[:-1]
    with file.open("ab") as torn:
        torn.write(b'{"key": "half a li')
    stored = file.read_bytes().count(b"\n")
    llm = ScriptedAdapter(ECHO)
    outcomes = complete_many_sync(llm, prompts, resume=file)
    assert [each.text for each in outcomes] == prompts
    assert len(llm.sent) == 200 - stored
    assert sum(each.is_resumed for each in outcomes) == stored
    assert len(asked) <= stored + 3 * 3, "each kill may lose the calls that were running, and no other"
    assert os.stat(file).st_mode & 0o777 == 0o600


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "other.jsonl"
    file.write_text(json.dumps({"a": 1}) + "\n")
    with pytest.raises(JournalError, match=r"line 1 of .* is not a reply of an earlier run"):
        complete_many_sync(ScriptedAdapter(ECHO), PROMPTS, resume=file)
    with pytest.raises(JournalError, match="cannot be used"):
        complete_many_sync(ScriptedAdapter(ECHO), PROMPTS, resume=tmp_path / "missing" / "run.jsonl")


def test_outcomes_arrive_as_they_complete() -> None:
    gate = Gate()
    llm = ScriptedAdapter(always(lambda sent: delayed("slow", gate) if "0" in sent.user_text else "fast"))

    async def order() -> list[int]:
        seen = []
        async for outcome in each_completed(llm, ["Number 0", "Number 1", "Number 2"], at_once=2):
            seen.append(outcome.index)
            if len(seen) == 2:
                gate.open()
        return seen

    assert asyncio.run(order()) == [1, 2, 0]


def test_two_runs_cannot_use_one_file(tmp_path: Path) -> None:
    """Both would pay for the same replies."""
    gate, file = Gate(), tmp_path / "run.jsonl"
    with ThreadPoolExecutor() as pool:
        first = pool.submit(complete_many_sync, ScriptedAdapter(delayed("late", gate)), ["Hello!"], resume=file)
        gate.reached_sync()
        with pytest.raises(JournalError, match="another run is using"):
            complete_many_sync(ScriptedAdapter(ECHO), ["Hello!"], resume=file)
        gate.open()
        assert first.result()[0].text == "late"
    assert complete_many_sync(ScriptedAdapter(), ["Hello!"], resume=file)[0].is_resumed


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, write = tmp_path / "run.jsonl", os.write
    complete_many_sync(ScriptedAdapter(ECHO), PROMPTS[:1], resume=file)
    stored = file.read_bytes()
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[: len(data) // 2]))
    with pytest.raises(JournalError, match="No space left"):
        complete_many_sync(ScriptedAdapter(ECHO), PROMPTS[:2], resume=file)
    assert file.read_bytes() == stored
