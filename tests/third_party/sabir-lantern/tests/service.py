"""A stand-in for the service "lantern", written from its description: it answers from rules, and checks every request.

with running() as url:        POST {url}/say, signed with KEYS; {"stream": true} is answered by lines of JSON
"""

import hashlib
import hmac
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

KEYS = {"lamp-7": "the-oil-of-this-test"}
"""Key id → secret."""
FIELDS = {"model", "brief", "talk", "tools", "temperature", "max_tokens", "stop_words", "effort", "pace", "stream"}
PARTS = {"human": {"text", "image", "result"}, "machine": {"text", "thought", "call", "glow"}}
LONGEST = 4_000
TROUBLES = {
    "many requests": (429, "slow_down", "seven seconds, please"),
    "room for one": (503, "crowded", "too many lamps are lit at this moment"),
    "forbidden": (400, "not_allowed", "this topic is not allowed here"),
}
"""Words of a question → status, code and text of the failure that they cause."""


class Refused(Exception):
    """A failure, with its status, code and text."""


def refuse_unless(condition: object, text: str, code: str = "bad_request", status: int = 400) -> None:
    if not condition:
        raise Refused(status, code, text)


def check_signature(headers: Any, body: bytes) -> None:
    scheme, _, proof = headers.get("authorization", "").partition(" ")
    key_id, _, digits = proof.partition(":")
    refuse_unless(scheme == "Lantern" and key_id in KEYS, "no key has this id", "unknown_key", 401)
    date = headers.get("x-lantern-date", "")
    age = abs(datetime.now(UTC) - parsedate_to_datetime(date))
    signed = b"\n".join([key_id.encode(), date.encode(), body])
    expected = hmac.new(KEYS[key_id].encode(), signed, hashlib.sha256).hexdigest()
    is_valid = age < timedelta(minutes=5) and hmac.compare_digest(digits, expected)
    refuse_unless(is_valid, "the signature is wrong", "bad_signature", 401)


def check(request: Any) -> None:
    """Refuse what the service's description does not allow."""
    refuse_unless(isinstance(request.get("talk"), list) and request["talk"], "talk needs a turn")
    unknown = sorted(request.keys() - FIELDS)
    refuse_unless(not unknown, f"there is no field {unknown}")
    limit = request.get("max_tokens", 1)
    refuse_unless(type(limit) is int and limit > 0, "max_tokens must be a whole number from 1")
    refuse_unless(request.get("effort", "deep") in ("quick", "deep"), "effort is quick or deep")
    refuse_unless(request["model"] in ("small", "tiny"), f"no model is called {request['model']}", "no_such_model", 404)
    check_talk(request["talk"])
    size = count(request)
    refuse_unless(size <= LONGEST, f"the talk has {size} words, the model reads {LONGEST}", "too_long")
    for words, failure in TROUBLES.items():
        if words in question(request).lower():
            raise Refused(*failure)


def check_talk(talk: list[Any]) -> None:
    called: list[str] = []
    for turn in talk:
        kinds = [part["kind"] for part in turn["parts"]]
        refuse_unless(kinds and set(kinds) <= PARTS[turn["role"]], f"a {turn['role']} cannot send {kinds}")
        results = [part["call"] for part in turn["parts"] if part["kind"] == "result"]
        refuse_unless(results == called, f"the calls {called} need their results, not {results}")
        called = [part["id"] for part in turn["parts"] if part["kind"] == "call"]
        for part in turn["parts"]:
            if part["kind"] == "thought":
                refuse_unless(part.get("seal") == seal(part["text"]), "a thought's seal is broken")
            if part["kind"] == "call":
                refuse_unless(isinstance(part["args"], dict), "args must be an object")
    refuse_unless(not called, f"the calls {called} have no results")


def answer(request: Any) -> dict[str, Any]:
    """Return the answer, which is the same for the same request."""
    mark = digest({name: request[name] for name in request if name != "stream"})
    parts, finish = reply(request, mark)
    if "effort" in request:
        thought = f"Somebody wants to know: {question(request)}"
        parts.insert(0, {"kind": "thought", "text": thought, "seal": seal(thought)})
    size = sum(len(json.dumps(part).split()) for part in parts)
    usage = {"in": count(request), "out": size, "cached": count(request) // 2 if len(request["talk"]) > 1 else 0}
    return {"id": f"say-{mark}", "model": request["model"], "parts": parts, "finish": finish, "usage": usage}


def reply(request: Any, mark: str) -> tuple[list[Any], str]:
    last, asked = request["talk"][-1]["parts"], question(request)
    results = [part for part in last if part["kind"] == "result"]
    if not results and request.get("tools") and re.search("weather|umbrella", asked):
        cities = re.findall(r"(?:\bin|\band in) ([A-Z]\w+)", asked) or ["Paris"]
        return [call(request["tools"][0], city, f"ask-{mark}-{at}") for at, city in enumerate(cities)], "asks"
    if "secret" in asked:
        return [{"kind": "text", "text": "I keep the light on that off."}], "blocked"
    text = f"By lantern light: {asked}"
    if results:
        text = " ".join(part["failed"]["about"] if "failed" in part else part["text"] for part in results)
    elif any(part["kind"] == "image" for part in last):
        text = "I see something red."
    for stop in request.get("stop_words", ()):
        text = text.partition(stop)[0]
    pieces = re.findall(r"\S+\s*", text)
    shown = "".join(pieces[: request.get("max_tokens")])
    glow = [{"kind": "glow", "lumen": 12}] if "glow" in asked else []
    return [*glow, {"kind": "text", "text": shown, "warmth": 0.5}], "done" if shown == text else "cut"


def call(tool: Any, city: str, call_id: str) -> dict[str, Any]:
    names = tool["args"].get("properties", {})
    return {"kind": "call", "id": call_id, "name": tool["name"], "args": dict.fromkeys(names, city), "trace": call_id}


def question(request: Any) -> str:
    """Return the texts of the last human turn that has a text."""
    for turn in reversed(request["talk"]):
        if texts := [part["text"] for part in turn["parts"] if part["kind"] == "text" and turn["role"] == "human"]:
            return " ".join(texts)
    return ""


def count(request: Any) -> int:
    return len(re.findall(r"\w+", json.dumps([request.get("brief", ""), request["talk"]])))


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


def seal(thought: str) -> str:
    return hashlib.sha256(f"sealed by lantern: {thought}".encode()).hexdigest()


def lines(whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the answer as the lines of a stream. A text grows word by word, and a seal comes at its end."""
    yield {"is": "begin", "id": whole["id"], "model": whole["model"]}
    for part in whole["parts"]:
        yield {"is": "part", "part": {name: value for name, value in part.items() if name not in ("text", "seal")}}
        yield from ({"is": "more", "text": piece} for piece in re.findall(r"\S+\s*", part.get("text", "")))
        if "seal" in part:
            yield {"is": "note", "part": {"seal": part["seal"]}}
        yield {"is": "flicker"}
    yield {"is": "end", "finish": whole["finish"], "usage": whole["usage"]}


class Handler(BaseHTTPRequestHandler):
    """Answers one HTTP request."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            refuse_unless(self.path == "/v1/say", "nothing is here", "no_such_path", 404)
            check_signature(self.headers, body)
            request = json.loads(body)
            check(request)
            whole = answer(request)
        except Refused as refused:
            status, code, text = refused.args
            self.send(status, text, "text/plain; charset=utf-8", {"x-lantern-error": code})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self.send(400, f"cannot read this: {error!r}", "text/plain", {"x-lantern-error": "bad_request"})
        else:
            is_stream = request.get("stream")
            texts = [json.dumps(each, ensure_ascii=False) for each in (lines(whole) if is_stream else [whole])]
            self.send(200, "\n".join([*texts, ""]), "application/x-ndjson" if is_stream else "application/json", {})

    def send(self, status: int, text: str, kind: str, further: dict[str, str]) -> None:
        data = text.encode()
        further |= {"retry-after": "7"} if status == 429 else {}
        self.send_response(status)
        for name, value in {"content-type": kind, "content-length": str(len(data)), **further}.items():
            self.send_header(name, value)
        self.send_header("x-lantern-request", f"lit-{digest(text)}")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: Any) -> None: ...


@contextmanager
def running() -> Iterator[str]:
    """Run the service on a free port of this machine, and yield its URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()
            thread.join()
