"""Who answers while recordings are made, for want of a key: a third-party mock, and where that differs, shapes made up.

    aimock     its emulation of /v2/chat: texts, calls, results, limits      none of it is Cohere's own service
    invented   this file: calls, thoughts and errors in the vendor's documented shapes, which aimock gives in others

aimock gives thoughts as a block of text, a plan only where it streams, and errors as another vendor's object. It is
run from the folder that npm installed it in: `npm install --prefix $AIMOCK @copilotkit/aimock@1.43.0`.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

AIMOCK, KEY = "1.43.0", "recording-key"
USAGE = {"input_tokens": 14, "output_tokens": 21}
STORY = "Tell me at length what the weather is like."
INVENTED = (
    "option_call", "parallel_calls", "reasoning", "reasoning_loop", "bad_key", "missing_model", "bad_request",
    "context_overflow", "rate_limited", "overloaded",
)  # fmt: skip
"""Questions that this file answers."""


def _entry(question: str, content: str, **match: Any) -> dict[str, Any]:
    response = {"content": content, "usage": USAGE, "id": "mock-1"}
    return {"match": {"userMessage": question, **match}, "response": response}


FIXTURES: list[dict[str, Any]] = [
    _entry("weather in Paris", "It rains in Paris, at 18 °C.", hasToolResult=True),
    _entry("weather in Paris", "I cannot know that."),
    _entry("my name", "Your name is Ada."),
    _entry("at night", "I keep the light burning."),
    _entry("colour", "It is red."),
    _entry("Eiffel Tower", '{"city": "Paris", "country": "France"}'),
]
FIXTURES.append(_entry(STORY, "It is very"))
FIXTURES[-1]["response"]["finishReason"] = "length"


def provenance(question: str) -> Mapping[str, str]:
    """What a recording says of who answered."""
    if question in INVENTED:
        return {"server": "invented after the vendor's documented shapes, not a vendor's own service", "version": "1"}
    return {"server": "aimock, a third-party mock, not a vendor's own service", "version": AIMOCK}


@contextmanager
def address(question: str) -> Iterator[str]:
    """The URL of whoever answers that question."""
    with _invented() if question in INVENTED else _aimock() as url:
        yield url


@contextmanager
def _aimock() -> Iterator[str]:
    node, folder = shutil.which("node"), os.environ.get("AIMOCK", "")
    program = Path(folder) / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"
    assert node and program.exists(), f"recording needs node, and aimock under AIMOCK={folder!r}; see {__file__}"
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"fixtures": FIXTURES}, file)
        file.flush()
        how = ["--host", "127.0.0.1", "--port", "0", "--strict", "--validate-on-load", "--fixtures", file.name]
        environment = {"PATH": os.environ["PATH"], "AIMOCK_API_KEYS": KEY}
        with subprocess.Popen([node, program, *how], stdout=subprocess.PIPE, text=True, env=environment) as process:
            assert process.stdout is not None
            try:
                yield next(found[1] for line in process.stdout if (found := re.search(r"(http://127\S+:\d+)", line)))
            finally:
                process.terminate()


THOUGHT = "91 is 7 times 13, so that it has other divisors than itself and one."
PLAN = "The weather decides. I will look it up."
ERRORS: Mapping[str, tuple[int, str]] = {
    "many requests": (429, "you are past the per minute request limit, please wait and try again later"),
    "one more": (503, "the service is not available; try again later"),
    "word word": (400, "too many tokens: the prompt has more of them than the model takes"),
}


def _answer(asked: dict[str, Any], key: str) -> tuple[int, dict[str, Any]]:
    """The status and the message that are due."""
    said = json.dumps(asked["messages"])
    if key != f"Bearer {KEY}":
        return 401, {"message": "invalid api token"}
    if asked["model"] == "missing":
        return 404, {"message": "model 'missing' not found, make sure the correct model ID was used"}
    if not isinstance(asked.get("temperature", 0), int | float):
        return 400, {"message": "invalid request: temperature must be a number"}
    for words, (status, message) in ERRORS.items():
        if words in said:
            return status, {"message": message}
    if "prime" in said:
        blocks = [{"type": "thinking", "thinking": THOUGHT}, {"type": "text", "text": "No: 91 is 7 × 13."}]
        return 200, {"finish_reason": "COMPLETE", "message": {"content": blocks}}
    if asked["messages"][-1]["role"] == "tool":
        source = {"type": "tool", "id": "weather_0:0", "tool_output": {"content": "18 °C, rain in Paris"}}
        cited = {
            "start": 8,
            "end": 13,
            "text": "rains",
            "sources": [source],
            "content_index": 0,
            "type": "TEXT_CONTENT",
        }
        blocks = [{"type": "text", "text": "Yes, it rains in Paris."}]
        return 200, {"finish_reason": "COMPLETE", "message": {"content": blocks, "citations": [cited]}}
    calls = [_call(at, city) for at, city in enumerate(("Paris", "Rome")) if city in said]
    return 200, {"finish_reason": "TOOL_CALL", "message": {"tool_plan": PLAN, "tool_calls": calls}}


def _call(at: int, city: str) -> dict[str, Any]:
    function = {"name": "weather", "arguments": json.dumps({"city": city})}
    return {"id": f"weather_{at}", "type": "function", "function": function}


def _events(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A message in the vendor's events. https://docs.cohere.com/docs/streaming"""
    yield {"type": "message-start", "id": "made-up-1", "delta": {"message": {"role": "assistant"}}}
    for word in re.findall(r"\S+\s*", message.get("tool_plan", "")):
        yield {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": word}}}
    for index, block in enumerate(message.get("content", ())):
        kind = block["type"]
        yield {"type": "content-start", "index": index, "delta": {"message": {"content": {"type": kind, kind: ""}}}}
        for word in re.findall(r"\S+\s*", block[kind]):
            yield {"type": "content-delta", "index": index, "delta": {"message": {"content": {kind: word}}}}
        yield {"type": "content-end", "index": index}
    for index, citation in enumerate(message.get("citations", ())):
        yield {"type": "citation-start", "index": index, "delta": {"message": {"citations": citation}}}
        yield {"type": "citation-end", "index": index}
    for index, call in enumerate(message.get("tool_calls", ())):
        begun = {**call, "function": {"name": call["function"]["name"], "arguments": ""}}
        yield {"type": "tool-call-start", "index": index, "delta": {"message": {"tool_calls": begun}}}
        for more in re.findall(r".{1,6}", call["function"]["arguments"]):
            yield {
                "type": "tool-call-delta",
                "index": index,
                "delta": {"message": {"tool_calls": {"function": {"arguments": more}}}},
            }
        yield {"type": "tool-call-end", "index": index}


class _Handler(BaseHTTPRequestHandler):
    """Answers /v2/chat."""

    def do_POST(self) -> None:
        """One request."""
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        status, found = _answer(asked, self.headers["authorization"])
        end = {"usage": {"billed_units": USAGE, "tokens": {**USAGE, "input_tokens": 96}, "cached_tokens": 64}}
        if status == 200 and asked.get("stream"):
            last = {"finish_reason": found["finish_reason"], **end}
            events = [*_events(found["message"]), {"type": "message-end", "id": "made-up-1", "delta": last}]
            body = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events)
            self._say(status, body, "text/event-stream")
            return
        more = {**end, "message": {"role": "assistant", **found["message"]}} if status == 200 else {}
        self._say(status, json.dumps({"id": "made-up-1", **found, **more}), "application/json")

    def _say(self, status: int, body: str, kind: str) -> None:
        data = body.encode()
        self.send_response(status)
        headers = {"content-type": kind, "content-length": str(len(data))}
        for name, value in {**headers, **({"retry-after": "7"} if status == 429 else {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def _invented() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
