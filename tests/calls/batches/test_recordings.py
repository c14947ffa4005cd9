"""What the vendors' services answered to requests for batches and files, read by the operations and the dialects."""

import base64
import gzip
import json
import re
from collections import Counter
from email import message_from_bytes
from pathlib import Path
from typing import Any, ClassVar

import pytest
import sabir
import sabir_calls
from sabir.authoring import BatchOrder, BatchPage, BatchRequest, BatchStatus, DecodeScope, LossLog, RequestScope
from sabir.vocabulary.settings import SettingsReader, Target
from sabir_anthropic.batches import BATCHES as ANTHROPIC
from sabir_google.batches import BATCHES as GOOGLE
from sabir_openai.batches import BATCHES as OPENAI

from tests.calls.batches.stand_in import Received, StandIn
from tests.vendor.support import FOLDER

if not FOLDER:
    pytest.skip("SABIR_VENDOR_CASSETTES names no folder of vendors' exchanges", allow_module_level=True)

OPERATIONS: dict[str, Any] = {
    "api.openai.com": OPENAI,
    "api.anthropic.com": ANTHROPIC,
    "generativelanguage.googleapis.com": GOOGLE,
}
ROUTES = (
    (r"POST /v1/files|POST /upload/v1beta/files", "batches.upload"),
    (r"POST /v1(/messages)?/batches|POST .*:batchGenerateContent", "batches.create"),
    (r"GET /v1/batches", "batches.list"),
    (r"GET /v1(beta|/messages)?/batches/\w+", "batches.status"),
    (r"POST /v1(/messages)?/batches/\w+/cancel", "batches.cancel"),
    (r"GET /v1/messages/batches/\w+/results", "batches.results"),
)
"""Method and path → the operation that sends such requests."""


def exchanges(file: str) -> list[dict[str, Any]]:
    with gzip.open(Path(str(FOLDER)) / "more" / f"{file}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def operation_of(exchange: dict[str, Any]) -> Any:
    """The operation; None for exchanges that batches have no use for, such as Anthropic's files, and for errors."""
    call = f"{exchange['method']} {exchange['path'].partition('?')[0]}"
    name = next((name for pattern, name in ROUTES if re.fullmatch(pattern, call)), "")
    return OPERATIONS.get(exchange["host"], {}).get(name) if exchange["status"] == 200 else None


def body_of(content: Any) -> bytes:
    if isinstance(content, dict) and "body_base64" in content:
        return base64.b64decode(content["body_base64"])
    return json.dumps(content).encode()


def scope_of(operation: Any) -> DecodeScope:
    return DecodeScope(Target(provider=operation.name.partition(".")[0], dialect=operation.name, model="m"))


def test_every_recorded_answer_is_read() -> None:
    read: Counter[str] = Counter()
    for exchange in [*exchanges("batches"), *exchanges("files")]:
        operation = operation_of(exchange)
        if operation is None:
            continue
        body, scope = body_of(exchange["response"]), scope_of(operation)
        for line in body.splitlines() if operation.reads_lines else [body]:
            answered = operation.decode(line, scope).output
            read[operation.name] += 1
            if isinstance(answered, BatchPage):
                assert answered.batches and all(each.id for each in answered.batches)
            elif isinstance(answered, BatchStatus):
                assert answered.id and answered.error is None
                assert answered.is_final == bool(answered.results)
            else:
                assert answered

    assert sum(count for name, count in read.items() if "upload" not in name) == 18  # all 17; one has two lines
    assert read["openai.batches.upload"] + read["google.batches.upload"] == 28


class Replay(StandIn):
    """Answers each GET with the last recorded answer to its path."""

    routes: ClassVar = {}

    def answer(self, request: Received) -> tuple[int, bytes]:
        recorded = [each for each in exchanges("batches") if each["method"] == "GET" and each["path"] == request.path]
        return 200, body_of(recorded[-1]["response"])


@pytest.mark.parametrize(
    ("model", "batch_id"),
    [
        ("anthropic:claude-haiku-4-5", "msgbatch_01GUqGVJfUzZfBnjRymfPdV3"),
        ("google:gemini-2.5-flash", "batches/31u18uq6dr4ods3957z38i1mbfa581k01xcq"),
    ],
)
def test_recorded_results_are_collected(model: str, batch_id: str) -> None:
    target = sabir.adapter(model, api_key="k").target
    ticket = f"{target.dialect}:{target.model}#{batch_id}"
    with Replay() as server, sabir_calls.batch(model, api_key="k", base_url=server.url) as batches:
        assert batches.wait_sync(ticket).phase == "ended"
        outcomes = {each.key: each for each in batches.collect_sync(ticket)}

    assert {key: each.text for key, each in outcomes.items()} == {"0": "4", "1": "Jupiter"}
    assert all(each.reply and each.reply.usage.output_tokens for each in outcomes.values())


def request_scope(operation: Any) -> RequestScope:
    target = Target(provider="p", dialect=operation.name, model="m")
    settings, log = SettingsReader(sabir.Settings()), LossLog()
    return RequestScope(target, settings=settings, options=(), option_names={}, system=(), vendor={}, losses=log)


def test_requests_have_the_form_of_recorded_requests() -> None:
    """The same fields as those that other programs sent and the services accepted."""
    requests = {
        "openai": BatchRequest("0", "/chat/completions", b'{"model": "m", "messages": []}'),
        "anthropic": BatchRequest("0", "/v1/messages", b'{"model": "m", "messages": [], "max_tokens": 1}'),
        "google": BatchRequest("0", "/v1beta/models/m:generateContent", b'{"contents": [], "generationConfig": {}}'),
    }
    for exchange in [*exchanges("batches"), *exchanges("files")]:
        operation = operation_of(exchange)
        if operation is None or not exchange["request"] or "body_base64" in exchange["request"]:
            continue
        if not operation.name.endswith("batches.create"):
            continue
        vendor = operation.name.partition(".")[0]
        order = BatchOrder((requests[vendor],), file="file-1" if vendor == "openai" else "")
        sent = operation.encode(order, request_scope(operation))
        assert paths(sent.body) <= paths(exchange["request"]), exchange["id"]


def paths(answered: Any, path: str = "") -> set[str]:
    """The paths of all fields, those of a conversation left out."""
    if isinstance(answered, list):
        return {deeper for each in answered for deeper in paths(each, path)}
    if not isinstance(answered, dict):
        return set()
    return {
        deeper
        for name, each in answered.items()
        if name not in ("messages", "contents", "key", "custom_id") or path.endswith("requests")
        for deeper in {f"{path}.{name}", *paths(each, f"{path}.{name}")}
    }


def test_an_uploaded_file_has_the_parts_of_a_recorded_one() -> None:
    recorded = next(
        each
        for each in exchanges("files")
        if each["host"] == "api.openai.com" and "batch" in str(body_of(each["request"])[:200]) and each["status"] == 200
    )
    operation = OPENAI["batches.upload"]
    request = BatchRequest("request-0", "/responses", b'{"model": "m", "input": []}')
    sent = operation.encode(BatchOrder((request,)), request_scope(operation))

    ours = parts_of(dict(sent.headers)["Content-Type"], bytes(sent.body))  # type: ignore[arg-type]
    theirs = parts_of(recorded["request_content_type"], body_of(recorded["request"]))
    assert ours.keys() == theirs.keys() and ours["purpose"] == theirs["purpose"]
    assert json.loads(ours["file"]).keys() == json.loads(theirs["file"].splitlines()[0]).keys()


def parts_of(content_type: str, body: bytes) -> dict[Any, bytes]:
    message: Any = message_from_bytes(f"Content-Type: {content_type}\r\n\r\n".encode() + body)
    return {
        part.get_param("name", header="content-disposition"): part.get_payload(decode=True).strip()
        for part in message.get_payload()
    }
