"""A stand-in for the batch services of vendors: a real HTTP server whose answers are built by the types of the SDKs.

It is no recording: the vendors' recordings have only batches that succeeded. Requests are checked by the SDKs' types.
What happens to a request follows from the beginning of its key:

    bad…   refused, with an error            late…   not processed before the batch expired
    gone…  not processed before it was cancelled      any other key: a reply "re: KEY"

Results come in another order than the requests. A batch is over at the second question for its status.
"""

import json
import threading
from collections.abc import Callable, Iterator
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, NamedTuple
from urllib.parse import parse_qs, urlsplit

from anthropic.types import Message
from anthropic.types.messages import BatchCreateParams as MessageBatchCreateParams
from anthropic.types.messages import MessageBatch, MessageBatchIndividualResponse
from google.genai import types
from openai.types import Batch, BatchCreateParams, FileObject
from openai.types.chat import ChatCompletion
from openai.types.responses import Response
from pydantic import TypeAdapter

from tests.laws.oracle import check_request


class Received(NamedTuple):
    """One request that arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class StandIn:
    """The base of a vendor's stand-in. `before` and `after` are called with each request, around its processing."""

    routes: ClassVar[dict[str, str]] = {}
    """"METHOD /path/*" → the name of the method that answers. A `*` matches one part of the path."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.before: Callable[[Received], object] = lambda request: None
        self.after: Callable[[Received], object] = lambda request: None
        self.batches: dict[str, dict[str, Any]] = {}
        self.polls_until_end = 2
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                size = int(self.headers.get("content-length") or 0)
                headers = {name.lower(): text for name, text in self.headers.items()}
                request = Received(self.command, self.path, headers, self.rfile.read(size))
                stand_in.received.append(request)
                stand_in.before(request)
                status, body = stand_in.answer(request)
                stand_in.after(request)
                try:
                    self.send_response(status)
                    self.send_header("content-type", "application/json")
                    self.send_header("content-length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    pass  # the client was killed

            do_GET = do_POST = do_DELETE = answer  # names of http.server

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def __enter__(self) -> "StandIn":
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def calls(self) -> list[str]:
        """The requests as "METHOD /path", ids replaced by a star."""
        return [f"{each.method} {route}" for each in self.received for route, _ in [self._route(each)] if route]

    def _route(self, request: Received) -> tuple[str, list[str]]:
        parts = urlsplit(request.path).path.split("/")
        for key in self.routes:
            method, _, path = key.partition(" ")
            pattern = path.split("/")
            if method == request.method and len(parts) == len(pattern):
                stars = [part for part, wanted in zip(parts, pattern, strict=True) if wanted == "*"]
                if all(wanted in ("*", part) for part, wanted in zip(parts, pattern, strict=True)):
                    return path, stars
        return "", []

    def answer(self, request: Received) -> tuple[int, bytes]:
        """The status and the body for a request: 404 for an unknown path, 422 for what the types refuse."""
        route, stars = self._route(request)
        if not route:
            return 404, json.dumps({"error": {"message": f"no route {request.method} {request.path}"}}).encode()
        try:
            answered = getattr(self, self.routes[f"{request.method} {route}"])(request, *stars)
        except (AssertionError, ValueError, KeyError) as error:
            return 422, json.dumps({"error": {"message": str(error)}}).encode()
        except TimeoutError:
            return 500, json.dumps({"error": {"message": "failed"}}).encode()
        return 200, answered if isinstance(answered, bytes) else json.dumps(answered).encode()

    def is_over(self, batch: dict[str, Any]) -> bool:
        batch["polls"] += 1
        return bool(batch["polls"] >= self.polls_until_end)


class OpenAIStandIn(StandIn):
    """POST /files, and the paths of /batches."""

    routes: ClassVar = {
        "POST /files": "upload",
        "GET /files/*/content": "content",
        "POST /batches": "create",
        "GET /batches": "list",
        "GET /batches/*": "status",
        "POST /batches/*/cancel": "cancel",
    }

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, bytes] = {}
        self.page = 100

    def upload(self, request: Received) -> Any:
        head = f"Content-Type: {request.headers['content-type']}\r\n\r\n".encode()
        fields: dict[Any, bytes] = {
            part.get_param("name", header="content-disposition"): part.get_payload(decode=True)  # type: ignore[misc]
            for part in message_from_bytes(head + request.body).get_payload()  # type: ignore[union-attr]
        }
        assert fields["purpose"] == b"batch", fields["purpose"]
        for line in map(json.loads, fields["file"].splitlines()):
            assert line.keys() == {"custom_id", "method", "url", "body"} and line["method"] == "POST"
            dialect = {"/v1/chat/completions": "openai.chat", "/v1/responses": "openai.responses"}[line["url"]]
            assert "stream" not in line["body"]
            check_request(dialect, json.dumps(line["body"]).encode())
        file_id = f"file-{len(self.files)}"
        self.files[file_id] = fields["file"]
        stored = {"id": file_id, "bytes": len(fields["file"]), "created_at": 1, "filename": "batch.jsonl"}
        return dump(FileObject.model_validate({**stored, "object": "file", "purpose": "batch", "status": "processed"}))

    def create(self, request: Received) -> Any:
        fields = TypeAdapter(BatchCreateParams).validate_json(request.body, strict=True)
        lines = [json.loads(line) for line in self.files[fields["input_file_id"]].splitlines()]
        assert all(line["url"] == fields["endpoint"] for line in lines)
        batch_id = f"batch_{len(self.batches)}"
        self.batches[batch_id] = {**fields, "id": batch_id, "lines": lines, "polls": 0, "status": "validating"}
        return self._batch(self.batches[batch_id])

    def list(self, request: Received) -> Any:
        after = parse_qs(urlsplit(request.path).query).get("after", [""])[0]
        newest = sorted(self.batches, reverse=True)
        rest = newest[newest.index(after) + 1 :] if after else newest
        batches = [self._batch(self.batches[each]) for each in rest[: self.page]]
        return {"object": "list", "data": batches, "has_more": len(rest) > self.page}

    def status(self, request: Received, batch_id: str) -> Any:
        batch = self.batches[batch_id]
        if batch["status"] in ("validating", "cancelling") and self.is_over(batch):
            batch["status"] = "cancelled" if batch["status"] == "cancelling" else "completed"
            if any(line["custom_id"].startswith("late") for line in batch["lines"]):
                batch["status"] = "expired"
        return self._batch(batch)

    def cancel(self, request: Received, batch_id: str) -> Any:
        self.batches[batch_id]["status"] = "cancelling"
        return self._batch(self.batches[batch_id])

    def content(self, request: Received, file_id: str) -> bytes:
        kind, _, batch_id = file_id.partition("-")
        lines = self.batches[batch_id]["lines"]
        answers = (line_of(line) for line in reversed(lines) if is_answered(line["custom_id"]) == (kind == "output"))
        return b"".join(json.dumps(each).encode() + b"\n" for each in answers)

    def _batch(self, batch: dict[str, Any]) -> Any:
        keys = [line["custom_id"] for line in batch["lines"]]
        answered = sum(map(is_answered, keys))
        is_final = batch["status"] in ("completed", "expired", "cancelled")
        counts = {"total": len(keys), "completed": answered, "failed": len(keys) - answered}
        fields = {name: batch[name] for name in ("id", "input_file_id", "endpoint", "completion_window", "status")}
        fields |= {"object": "batch", "created_at": 1, "metadata": batch.get("metadata"), "request_counts": counts}
        fields["errors"] = batch.get("errors")
        if is_final:
            fields |= {"output_file_id": f"output-{batch['id']}"} if answered else {}
            fields |= {"error_file_id": f"error-{batch['id']}"} if answered < len(keys) else {}
        return dump(Batch.model_validate(fields, strict=True))


class AnthropicStandIn(StandIn):
    """The paths of /v1/messages/batches."""

    routes: ClassVar = {
        "POST /v1/messages/batches": "create",
        "GET /v1/messages/batches/*": "status",
        "POST /v1/messages/batches/*/cancel": "cancel",
        "GET /v1/messages/batches/*/results": "results",
    }

    def create(self, request: Received) -> Any:
        fields = json.loads(request.body)
        assert fields.keys() == MessageBatchCreateParams.__annotations__.keys() & {"requests"}
        for each in fields["requests"]:
            assert each.keys() == {"custom_id", "params"} and "stream" not in each["params"]
            check_request("anthropic.messages", json.dumps(each["params"]).encode())
        batch_id = f"msgbatch_{len(self.batches)}"
        self.batches[batch_id] = {**fields, "id": batch_id, "polls": 0, "status": "in_progress"}
        return self._batch(self.batches[batch_id])

    def status(self, request: Received, batch_id: str) -> Any:
        batch = self.batches[batch_id]
        if batch["status"] != "ended" and self.is_over(batch):
            batch["status"] = "ended"
        return self._batch(batch)

    def cancel(self, request: Received, batch_id: str) -> Any:
        self.batches[batch_id]["status"] = "canceling"
        return self._batch(self.batches[batch_id])

    def results(self, request: Received, batch_id: str) -> bytes:
        results = (
            self._result(each["custom_id"], each["params"]) for each in reversed(self.batches[batch_id]["requests"])
        )
        return b"".join(json.dumps(each).encode() + b"\n" for each in results)

    def _result(self, key: str, params: dict[str, Any]) -> Any:
        error = {"type": "invalid_request_error", "message": "Bad value"}
        kinds: dict[str, Any] = {
            "late": {"type": "expired"},
            "gone": {"type": "canceled"},
            "bad": {"type": "errored", "error": {"type": "error", "error": error, "request_id": f"req_{key}"}},
        }
        content = [{"type": "text", "text": f"re: {key}", "citations": None}]
        usage = {"input_tokens": 1000, "output_tokens": 100, "service_tier": "batch"}
        message = {
            "id": f"msg_{key}", "type": "message", "role": "assistant", "model": params["model"], "content": content,
            "stop_reason": "end_turn", "stop_sequence": None, "usage": usage,
        }  # fmt: skip
        succeeded = {"type": "succeeded", "message": dump(Message.model_validate(message))}
        outcome = next((each for start, each in kinds.items() if key.startswith(start)), succeeded)
        return dump(MessageBatchIndividualResponse.model_validate({"custom_id": key, "result": outcome}))

    def _batch(self, batch: dict[str, Any]) -> Any:
        keys, is_over = [each["custom_id"] for each in batch["requests"]], batch["status"] == "ended"
        counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
        names = {"bad": "errored", "late": "expired", "gone": "canceled"}
        for key in keys:
            kind = next((name for start, name in names.items() if key.startswith(start)), "succeeded")
            counts[kind if is_over else "processing"] += 1
        url = f"https://api.anthropic.com/v1/messages/batches/{batch['id']}/results"
        fields = {
            "id": batch["id"], "type": "message_batch", "processing_status": batch["status"],
            "request_counts": counts, "results_url": url if is_over else None,
            "created_at": "2026-08-19T14:44:51Z", "expires_at": "2026-08-20T14:44:51Z",
        }  # fmt: skip
        return dump(MessageBatch.model_validate(fields))


class GoogleStandIn(StandIn):
    """The paths of batches and files of the Gemini API."""

    routes: ClassVar = {
        "POST /upload/v1beta/files": "upload",
        "GET /download/v1beta/files/*": "content",
        "POST /v1beta/models/*": "create",
        "GET /v1beta/batches": "list",
        "GET /v1beta/batches/*": "status",
        "POST /v1beta/batches/*": "cancel",
    }

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, list[Any]] = {}

    def upload(self, request: Received) -> Any:
        assert request.headers["x-goog-upload-protocol"] == "multipart"
        head = f"Content-Type: {request.headers['content-type']}\r\n\r\n".encode()
        facts, file = (part.get_payload(decode=True) for part in message_from_bytes(head + request.body).get_payload())  # type: ignore[union-attr]
        types.File.model_validate(json.loads(facts)["file"])  # type: ignore[arg-type]
        name = f"files/{len(self.files)}"
        self.files[name] = list(map(json.loads, file.splitlines()))  # type: ignore[union-attr]
        return {"file": types.File(name=name, mime_type="application/jsonl").model_dump(**WIRE)}

    def create(self, request: Received, model: str) -> Any:
        assert model.endswith(":batchGenerateContent")
        batch = json.loads(request.body)["batch"]
        assert batch.keys() == {"displayName", "inputConfig"}
        source = batch["inputConfig"]
        if file := source.get("fileName"):
            requests = self.files[file]
        else:
            listed = source["requests"]["requests"]
            requests = [{"key": each["metadata"]["key"], "request": each["request"]} for each in listed]
        for each in requests:
            assert each["request"].pop("model") == f"models/{model.partition(':')[0]}"
            check_request("google.generate_content", json.dumps(each["request"]).encode())
        name = f"batches/{len(self.batches)}"
        fields = {"name": name, "displayName": batch["displayName"], "requests": requests, "file": file}
        self.batches[name] = {**fields, "polls": 0, "state": "BATCH_STATE_PENDING"}
        return self._batch(self.batches[name])

    def list(self, request: Received) -> Any:
        return {"operations": [self._batch(self.batches[each]) for each in sorted(self.batches, reverse=True)]}

    def status(self, request: Received, batch_id: str) -> Any:
        batch = self.batches[f"batches/{batch_id}"]
        if batch["state"] == "BATCH_STATE_PENDING" and self.is_over(batch):
            batch["state"] = "BATCH_STATE_SUCCEEDED"
        return self._batch(batch)

    def cancel(self, request: Received, method: str) -> Any:
        assert method.endswith(":cancel")
        return {}

    def content(self, request: Received, method: str) -> bytes:
        batch = self.batches[f"batches/{method.partition(':')[0].partition('-')[2]}"]
        return b"".join(json.dumps(each).encode() + b"\n" for each in self._results(batch))

    def _results(self, batch: dict[str, Any]) -> Any:
        for each in reversed(batch["requests"]):
            key = each["key"]
            named = {"key": key} if batch["file"] else {"metadata": {"key": key}}
            codes = {"bad": 3, "late": 4, "gone": 1}
            if code := next((code for start, code in codes.items() if key.startswith(start)), 0):
                yield {**named, "error": {"code": code, "message": "Bad value"}}
                continue
            content = types.Content(role="model", parts=[types.Part(text=f"re: {key}")])
            candidate = types.Candidate(content=content, finish_reason=types.FinishReason.STOP, index=0)
            usage = types.GenerateContentResponseUsageMetadata(
                prompt_token_count=1000, candidates_token_count=100, total_token_count=1100
            )
            reply = types.GenerateContentResponse(candidates=[candidate], usage_metadata=usage)
            yield {**named, "response": reply.model_dump(**WIRE)}

    def _batch(self, batch: dict[str, Any]) -> Any:
        names = ("name", "displayName", "state")
        stats = {"requestCount": str(len(batch["requests"]))}
        metadata: dict[str, Any] = {name: batch[name] for name in names} | {"batchStats": stats}
        if batch["state"] == "BATCH_STATE_SUCCEEDED":
            inlined = {"inlinedResponses": {"inlinedResponses": [*self._results(batch)]}}
            file = {"responsesFile": f"files/batch-{batch['name'].partition('/')[2]}"}
            metadata["output"] = file if batch["file"] else inlined
        return {"name": batch["name"], "metadata": metadata}


WIRE: Any = {"mode": "json", "by_alias": True, "exclude_none": True}


def is_answered(key: str) -> bool:
    return not key.startswith(("bad", "late", "gone"))


def dump(model: Any) -> Any:
    return model.model_dump(mode="json")


def line_of(line: dict[str, Any]) -> dict[str, Any]:
    """A line of the file of results, or of the file of errors."""
    key, body = line["custom_id"], line["body"]
    answer: dict[str, Any] = {"id": f"batch_req_{key}", "custom_id": key, "response": None, "error": None}
    if key.startswith(("late", "gone")):
        code = "batch_expired" if key.startswith("late") else "batch_cancelled"
        return answer | {"error": {"code": code, "message": "This request was not executed."}}
    if key.startswith("bad"):
        refused: Any = {"error": {"message": "Bad value", "type": "invalid_request_error", "param": None, "code": None}}
        return answer | {"response": {"status_code": 400, "request_id": f"req_{key}", "body": refused}}
    reply = _response(key, body) if "input" in body else _completion(key, body)
    return answer | {"response": {"status_code": 200, "request_id": f"req_{key}", "body": reply}}


def _completion(key: str, body: dict[str, Any]) -> Any:
    message = {"role": "assistant", "content": f"re: {key}", "refusal": None}
    choice = {"index": 0, "finish_reason": "stop", "logprobs": None, "message": message}
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    fields = {"id": f"chatcmpl-{key}", "object": "chat.completion", "created": 1, "model": body["model"]}
    return dump(ChatCompletion.model_validate({**fields, "choices": [choice], "usage": usage}, strict=True))


def _response(key: str, body: dict[str, Any]) -> Any:
    content = {"type": "output_text", "text": f"re: {key}", "annotations": []}
    message = {"type": "message", "id": f"msg_{key}", "role": "assistant", "status": "completed", "content": [content]}
    cached, reasoned = {"cached_tokens": 0, "cache_write_tokens": 0}, {"reasoning_tokens": 0}
    details = {"input_tokens_details": cached, "output_tokens_details": reasoned}
    fields = {
        "id": f"resp_{key}", "object": "response", "created_at": 1, "model": body["model"], "output": [message],
        "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "status": "completed",
        "usage": {"input_tokens": 1000, "output_tokens": 100, "total_tokens": 1100, **details},
    }  # fmt: skip
    return dump(Response.model_validate(fields))


def lines_of(body: bytes) -> Iterator[Any]:
    """The parsed lines of a body."""
    return map(json.loads, body.splitlines())
