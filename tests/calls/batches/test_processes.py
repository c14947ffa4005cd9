"""A ticket works in any process, and a process may be killed at any point: nothing is paid twice, nothing is lost."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sabir_calls

from tests.calls.batches.stand_in import OpenAIStandIn, Received

PROGRAM = """
import json, sys
import sabir_calls
action, url, ticket = sys.argv[1:]
batches = sabir_calls.batch("openai:gpt-5", api_key="k", base_url=url)
if action == "submit":
    print(batches.submit_sync({"a": "One?", "bad-b": "Two?", "c": "Three?"}, name="monday"))
else:
    batches.wait_sync(ticket, every=0.01)
    for each in batches.collect_sync(ticket):
        print(json.dumps({each.key: each.reply.text if each.reply else str(each.error)}), flush=True)
"""
OUTCOMES = {"a": "re: a", "bad-b": "openai answered 400: Bad value; change the request", "c": "re: c"}


@pytest.fixture
def vendor() -> Iterator[OpenAIStandIn]:
    with OpenAIStandIn() as stand_in:
        yield stand_in


def run(action: str, vendor: OpenAIStandIn, ticket: str = "", *, killed_at: str = "", done: bool = False) -> str:
    """The output of a process, which is killed (kill -9) when a request arrives, or after the vendor processed it."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, action, vendor.url, ticket], stdout=subprocess.PIPE, text=True
    )

    def kill(request: Received) -> None:
        if f"{request.method} {vendor._route(request)[0]}" == killed_at:
            os.kill(process.pid, signal.SIGKILL)
            process.wait(30)

    vendor.before, vendor.after = (lambda request: None, kill) if done else (kill, lambda request: None)
    out, _ = process.communicate(timeout=60)
    vendor.before = vendor.after = lambda request: None
    assert process.returncode == (-signal.SIGKILL if killed_at else 0)
    return out.strip()


@pytest.mark.parametrize(
    ("killed_at", "done"),
    [("GET /batches", False), ("POST /files", True), ("POST /batches", True)],
    ids=["before the upload", "between upload and create", "after create, before the answer"],
)
def test_a_killed_submission_is_repeated_without_a_second_batch(
    vendor: OpenAIStandIn, killed_at: str, done: bool
) -> None:
    assert run("submit", vendor, killed_at=killed_at, done=done) == ""
    ticket = run("submit", vendor)

    assert len(vendor.batches) == 1
    assert ticket == "openai.responses:gpt-5#batch_0"
    assert run("submit", vendor) == ticket


def test_a_name_is_not_used_for_other_prompts(vendor: OpenAIStandIn) -> None:
    vendor.page = 1
    with sabir_calls.batch("openai:gpt-5", api_key="k", base_url=vendor.url) as batches:
        first = batches.submit_sync({"a": "One?"}, name="monday")
        batches.submit_sync({"a": "One?"}, name="tuesday")
        batches.submit_sync({"a": "One?"})
        assert batches.submit_sync({"a": "One?"}, name="monday") == first  # on the third page of the list
        with pytest.raises(sabir_calls.batches.batch.SettingsInvalid, match="name='monday' was used"):
            batches.submit_sync({"a": "Another?"}, name="monday")
    assert len(vendor.batches) == 3


@pytest.mark.parametrize("killed_at", ["GET /batches/*", "GET /files/*/content"])
def test_a_killed_collection_is_repeated_in_another_process(vendor: OpenAIStandIn, killed_at: str) -> None:
    ticket = run("submit", vendor)
    run("collect", vendor, ticket, killed_at=killed_at, done=True)
    first, second = run("collect", vendor, ticket), run("collect", vendor, ticket)

    assert first == second
    assert {key: text for line in first.splitlines() for key, text in json.loads(line).items()} == OUTCOMES


def test_results_are_read_line_by_line(vendor: OpenAIStandIn, tmp_path: Path) -> None:
    """A body larger than the limit of one answer is read, because each line is an answer."""
    import sabir

    settings = sabir.Settings(bounds=sabir.Bounds(body_bytes=20_000))
    with sabir_calls.batch("openai.chat:gpt-5", api_key="k", base_url=vendor.url, settings=settings) as batches:
        ticket = batches.submit_sync({f"k{number}": "One?" for number in range(100)})
        batches.wait_sync(ticket, every=0.01)
        assert len(vendor.content(Received("GET", "", {}, b""), "output-batch_0")) > 40_000
        assert len(list(batches.collect_sync(ticket))) == 100
