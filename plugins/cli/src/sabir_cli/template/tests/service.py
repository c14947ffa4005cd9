"""A fake of Acme's service: it has the API `acme.chat`, and its answers depend on the words of the question.

    with running() as url:        url ─▶ sabir.adapter("acme:small", base_url=url, api_key="any")

Delete this file when your cassettes are recorded from the real service. Only `live` in test_acme.py uses it.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

FIELDS = {
    "model", "instructions", "turns", "tools", "choice", "limit", "temperature", "top_p", "stops", "seed", "effort",
    "parallel", "cache", "shape", "tier", "stream",
}  # fmt: skip
LONGEST = 4_000
"""The maximum number of words in a request."""
FAILURES = {
    "slow down": (429, "slow_down", "too many requests"),
    "overload": (503, "overloaded", "too many others ask at this moment"),
    "forbidden": (400, "forbidden_topic", "this may not be asked"),
}
"""Text in the question → HTTP status, code and message of the failure that it causes."""


class Refused(Exception):
    """Raised for an error of the service. Its arguments are the HTTP status, the code and the message."""


def check(request: Any, key: str) -> None:
    """Raise Refused for a request that a strict service refuses. `key` is the header Authorization."""
    if key in ("", "Bearer wrong"):
        raise Refused(401, "unknown_key", "the key is not known")
    if not isinstance(request, dict) or not isinstance(request.get("turns"), list) or not request["turns"]:
        raise Refused(400, "bad_request", "turns must be an array of at least one turn")
    if unknown := sorted(request.keys() - FIELDS):
        raise Refused(400, "bad_request", f"unknown field {unknown[0]}")
    if type(limit := request.get("limit", 1)) is not int or limit < 1:
        raise Refused(400, "bad_request", "limit must be a whole number of at least 1")
    if request.get("model") == "missing":
        raise Refused(404, "unknown_model", "there is no model of that name")
    if words(request) > LONGEST:
        raise Refused(400, "too_long", f"{words(request)} words; the model reads {LONGEST}")
    check_turns(request["turns"])
    for word, failure in FAILURES.items():
        if word in question(request).lower():
            raise Refused(*failure)


def check_turns(turns: list[Any]) -> None:
    """Raise Refused if a turn is empty, if a call has no result in the next turn or a result no call in the previous
    turn, or if a thought has a wrong signature.
    """
    called: list[str] = []
    for turn in [*turns, {"by": "user", "parts": []}]:
        if not turn["parts"] and turn in turns:
            raise Refused(400, "bad_request", "a turn is empty")
        answered = [part["id"] for part in turn["parts"] if part["type"] == "result"]
        if sorted(answered) != sorted(called):
            raise Refused(400, "bad_request", f"calls {called} are answered by results {answered}")
        called = [part["id"] for part in turn["parts"] if part["type"] == "call"]
        for part in turn["parts"]:
            if part["type"] == "thought" and part.get("signature") != sign(part["text"]):
                raise Refused(400, "bad_request", "a thought has a signature that is not this service's")


def answer(request: Any) -> dict[str, Any]:
    """Return the answer to a request. It is the same for the same request, streamed or not."""
    name = digest(json.dumps({field: request[field] for field in request if field != "stream"}, sort_keys=True))
    parts, finish = say(request, name)
    if request.get("effort", "none") != "none":
        thought = f"The user says: {question(request)}"
        parts.insert(0, {"type": "thought", "text": thought, "signature": sign(thought)})
    spoken = [len(f"{part.get('text', '')} {part.get('arguments', '')}".split()) for part in parts]
    thinking = spoken[0] if parts[0]["type"] == "thought" else 0
    usage = {"input": words(request), "output": sum(spoken), "thinking": thinking}
    return {"id": f"answer-{name}", "model": request["model"], "parts": parts, "finish": finish, "usage": usage}


def say(request: Any, name: str) -> tuple[list[Any], str]:
    """Return the parts of an answer and its finish reason, which depend on the question. `name` is used in ids of
    calls.
    """
    message, last = question(request), request["turns"][-1]
    if calls := choose(request, name):
        return calls, "calls"
    if "refuse" in message.lower():
        return [{"type": "refusal", "text": "I may not help with that."}], "refused"
    text = f"You said: {message}"
    if last["by"] == "option":
        text = " ".join(outcome(result) for result in last["parts"])
    elif shape := request.get("shape"):
        text = json.dumps(fill(shape["schema"], shape["schema"]))
    elif any(part["type"] == "image" for part in last["parts"]):
        text = "It shows a red dot."
    text, finish = cut(text, request)
    searches = [{"type": "search", "words": message, "hits": 1}] if "search" in message.lower() else []
    return [*searches, {"type": "text", "text": text}], finish


def cut(text: str, request: Any) -> tuple[str, str]:
    """Return the text up to the first stop text and up to the limit, which is counted in words, and the finish
    reason.
    """
    for stop in request.get("stops", ()):
        text = text.partition(stop)[0]
    allowed = re.findall(r"\S+\s*", text)[: request.get("limit")]
    return ("".join(allowed), "limit") if "".join(allowed) != text else (text, "done")


def choose(request: Any, name: str) -> list[Any]:
    """Return calls of an option, one for each city in the question, if the request forces a call or the question is
    about the weather; otherwise [].
    """
    offered, choice = request.get("tools", []), request.get("choice", "auto")
    if not offered or choice == "none" or request["turns"][-1]["by"] == "option":
        return []
    named = [tool for tool in offered if isinstance(choice, dict) and tool["name"] == choice["name"]]
    tool = (named or offered)[0]
    if choice == "auto" and not re.search("weather|umbrella", question(request)):
        return []
    cities = re.findall(r"(?:\bin|\band) ([A-Z]\w+)", question(request)) or ["Paris"]
    chosen = cities[:1] if request.get("parallel") is False else cities
    return [
        {"type": "call", "id": f"call-{name}-{number}", "name": tool["name"], "arguments": arguments(tool, city)}
        for number, city in enumerate(chosen)
    ]


def arguments(tool: Any, city: str) -> str:
    """Return the argument text of a call, from the option's schema. Its unusual spaces show whether the text is later
    sent back unchanged.
    """
    schema = tool.get("parameters") or {}
    return json.dumps(fill(schema, schema, city), separators=(", ", " : "))


def fill(schema: Any, root: Any, text: str = "red") -> Any:
    """Return a value that matches a JSON schema: every string is `text`, every number 18. `root` has the
    definitions.
    """
    if "$ref" in schema:
        return fill(root["$defs"][schema["$ref"].rpartition("/")[2]], root, text)
    if "enum" in schema or "const" in schema:
        return schema.get("const") or schema["enum"][0]
    if "anyOf" in schema:
        return fill(schema["anyOf"][0], root, text)
    if schema.get("type") == "array":
        return [fill(schema.get("items", {}), root, text)]
    if schema.get("type", "object") == "object":
        return {name: fill(each, root, text) for name, each in schema.get("properties", {}).items()}
    return {"integer": 18, "number": 18.0, "boolean": True, "null": None}.get(schema["type"], text)


def outcome(result: Any) -> str:
    """Return the texts of a result, or its error, as one text."""
    if error := result.get("error"):
        return f"That failed: {error['message']}"
    return " ".join(part["text"] if part["type"] == "text" else f"(an {part['type']})" for part in result["parts"])


def question(request: Any) -> str:
    """Return the texts of the user's last turn."""
    turns = [turn for turn in request["turns"] if turn["by"] == "user"]
    return " ".join(part["text"] for part in turns[-1]["parts"] if part["type"] == "text") if turns else ""


def words(request: Any) -> int:
    """Return the number of words in the request's instructions and turns, which this service counts as tokens."""
    return len(re.findall(r"\w+", json.dumps([request.get("instructions", ""), request["turns"]])))


def digest(text: str) -> str:
    """Return a short hash of a text, for use in ids."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def sign(thought: str) -> str:
    """Return the signature of a thought, by which the service recognizes its own thoughts."""
    return hashlib.sha256(f"signed: {thought}".encode()).hexdigest()


def events(whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the events of a streamed answer. The pieces of its parts alternate, as those of parallel calls do."""
    yield {"type": "start", "id": whole["id"], "model": whole["model"]}
    growing = []
    for index, part in enumerate(whole["parts"]):
        field = "arguments" if part["type"] == "call" else "text"
        late = {name: part[name] for name in ("signature",) if name in part}
        begun = {name: value for name, value in part.items() if name not in (field, *late)}
        growing.append((index, re.findall(r"\S+\s*|\s+", part.get(field, "")), late))
        yield {"type": "open", "index": index, "part": begun}
    for step in range(max(len(pieces) for _, pieces, _ in growing)):
        for index, pieces, _ in growing:
            if step < len(pieces):
                yield {"type": "more", "index": index, "text": pieces[step]}
    for index, _, late in growing:
        yield {"type": "close", "index": index, **late}
    yield {"type": "end", "finish": whole["finish"], "usage": whole["usage"]}


class Handler(BaseHTTPRequestHandler):
    """Answers one HTTP request."""

    def do_POST(self) -> None:
        """Answer a request: /chat with an answer or a stream, /count with the number of words."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            request = json.loads(body)
            check(request, self.headers.get("Authorization", ""))
            if self.path.endswith("/count"):
                self.respond(200, json.dumps({"tokens": words(request)}))
            elif request.get("stream"):
                lines = (f"data: {json.dumps(event, ensure_ascii=False)}\n\n" for event in events(answer(request)))
                self.respond(200, "".join(lines), "text/event-stream")
            else:
                self.respond(200, json.dumps(answer(request), ensure_ascii=False))
        except Refused as refused:
            status, code, message = refused.args
            self.respond(status, json.dumps({"error": {"code": code, "message": message}}))
        except (ValueError, KeyError, TypeError, IndexError) as error:
            self.respond(400, json.dumps({"error": {"code": "bad_request", "message": repr(error)}}))

    def respond(self, status: int, text: str, kind: str = "application/json") -> None:
        """Send a status and a body."""
        data = text.encode()
        self.send_response(status)
        headers = {"Content-Type": kind, "Content-Length": str(len(data)), "x-request-id": f"request-{digest(text)}"}
        for name, value in (headers | ({"Retry-After": "7"} if status == 429 else {})).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Do not log requests."""


@contextmanager
def running() -> Iterator[str]:
    """Run the service in the `with` block, on a free port of this machine, and yield its URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()
            thread.join()
