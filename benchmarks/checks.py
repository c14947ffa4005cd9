"""Whether a contender did the work: what it sent and read says what everybody's says.

evidence ──check──▶ ""            the same as all others
                └─▶ "entry 3: …"  where it differs; the contender is then left out, by name and with this reason

body ──normalised──▶ facts ◀──expected── messages         what a request says, whoever wrote it: equal for equal work
"""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from benchmarks import answers, work
from benchmarks.contenders.doing import CREATED
from benchmarks.work import Entry, Given, compact, known_id


def differs(task: str, given: Given, evidence: Any) -> str:
    """Where the evidence differs from what it should be; "" where it does not."""
    return _CHECKS[task](given, evidence)


def refused(task: str, given: Given, evidence: Any) -> int:
    """How many ids a request has that the wire refuses: it is measured, and the page says so."""
    body = evidence[0] if task == "call" else evidence
    return refused_ids(given.wire, body) if task in ("render", "call") and body else 0


def _request(given: Given, body: Any) -> str:
    return _facts(given, work.entries_of(given), body)


def _call(given: Given, evidence: Any) -> str:
    body, text = evidence
    return (body and _request(given, body)) or _same("reply", answers.reply_text(), text)


def _shared(given: Given, bodies: Any) -> str:
    asked = [[*work.entries_of(given), entry] for entry in work.last_messages()]
    wrong = (_facts(given, entries, body) for entries, body in zip(asked, bodies, strict=True))
    return next(filter(None, wrong), "")


def _loop(given: Given, evidence: Any) -> str:
    *earlier, last = work.turns(given)
    sent = [*work.start(), *(entry for entries in earlier for entry in entries)]
    is_plain = given.talk != work.AGENTS
    wrong = is_plain and _same("number of messages", len(sent) + len(last), evidence["messages"])
    return wrong or (_facts(given, sent, evidence["body"]) if evidence["body"] else "")


def _facts(given: Given, entries: list[work.Entry], body: Any) -> str:
    right, found = expected(given.wire, entries), normalised(given.wire, body)
    for number, (one, other) in enumerate(zip(right, found, strict=False)):
        if tuple(one) != tuple(other):
            return f"entry {number}: {other!r:.80} instead of {one!r:.80}"
    return _same("number of entries", len(right), len(found))


def _texts(given: Given, evidence: Any) -> str:
    texts = evidence if isinstance(evidence, list) else [evidence]
    return next((wrong for text in texts if (wrong := _same("reply", answers.reply_text(), text))), "")


def _records(given: Given, evidence: Any) -> str:
    """As many as there should be; the last ones hold the conversation's messages, each in its place."""
    right = json.loads(work.stored((given.size + work.BATCH + 3) // 4 * 4))[given.size : given.size + work.BATCH]
    for expected, body in zip(right, map(json.loads, evidence["bodies"]), strict=True):
        found = [(body["sequence"], _said(message["payload"])) for message in body["messages"]]
        if wrong := _same("record", [(right.index(expected) + given.size, expected["payload"])], found):
            return wrong
    return _same("number of records", given.size + work.BATCH, evidence["count"])


def _said(value: Any) -> Any:
    """A stored value without the fields that say nothing."""
    if isinstance(value, dict):
        return {name: _said(each) for name, each in value.items() if each not in (None, False, [])}
    return [_said(each) for each in value] if isinstance(value, list) else value


def _replies(count: int, evidence: Any) -> str:
    return _same("replies", [answers.reply_text()], evidence["texts"]) or _same("number", count, evidence["count"])


def _progress(size: int) -> dict[str, Any]:
    """That all threads were in progress together, none far behind, and all ended."""
    return {"together": size, "completed": size, "phases": [size] * 3, "begun": size}


def _phases() -> dict[str, Any]:
    return {"phases": [*work.PHASES], "text": answers.reply_text()}


def _same(what: str, right: object, found: object) -> str:
    return "" if right == found else f"{what}: {found!r:.80} instead of {right!r:.80}"


_CHECKS: dict[str, Callable[[Given, Any], str]] = {
    "render": _request,
    "render_warm": lambda given, body: _request(given._replace(size=given.size + 2), body),
    "shared": _shared,
    "call": _call,
    "loop": _loop,
    "fresh": _call,
    "stub_loop": _loop,
    "create": lambda given, messages: _same("number of messages", CREATED, len(messages)),
    "message_memory": lambda given, found: _same("number of messages", given.size, found["json"]),
    "decode": lambda given, found: _same("reply", answers.answered(given.wire), found),
    "stream": lambda given, found: _same("reply", answers.streamed(given.wire, given.size), found),
    "loopback": _texts,
    "send": lambda given, found: "" if answers.reply_text() in found["text"] else "the answer was not read",
    "conversation": lambda given, found: _texts(given, found["text"]),
    "ask": lambda given, found: _texts(given, found["text"]),
    "memory": lambda given, found: _same("fields", {"held", "json"}, set(found)),
    "history": lambda given, count: _same("number of messages", given.size, count),
    "append": lambda given, found: _same("append", {"count": given.size + 1, "text": answers.reply_text()}, found),
    "policy": _texts,
    "checkpoint": _records,
    "durable_step": lambda given, found: _replies(work.STEPS, found),
    "remote": lambda given, found: _replies(work.ASKED * given.concurrency, found),
    "throughput": lambda given, found: _replies(given.size, found),
    "actor_message": _texts,
    "actor_heartbeat": lambda given, found: _same("threads", _progress(given.size), found),
    "actor_phase": lambda given, found: _same("phases", _phases(), found),
    "actor_workers": lambda given, found: _same("threads", {"completed": work.THREADS, "workers": given.size}, found),
    "actor_memory": lambda given, found: _same("threads", {given.wire.partition(",")[0]: given.size}, found["states"]),
}


Fact = tuple[Any, ...]

NO_SIGNATURES = ("", "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I", "skip/thought/signature/validator")
"""What Google documents for a signature that there is not, as bytes or as a text; it says nothing."""
_REFUSED = {
    "openai.chat": re.compile(r".{65,}"),
    "openai.responses": re.compile(r".{65,}"),
    "anthropic.messages": re.compile(r".*[^a-zA-Z0-9_-]"),
}
"""Wire → the ids of calls that it refuses."""


def expected(wire: str, entries: list[Entry]) -> list[Fact]:
    """What a request of these messages must say, comparable with `normalised`."""
    facts: list[Fact] = []
    for entry in entries:
        if told := entry.get("reasoning"):
            facts.append(("reasoning", told["text"], told["seal"].rstrip("=")))
        match entry["kind"]:
            case "call":
                facts.append(("call", known_id(wire, entry["id"]), entry["name"], entry["arguments"]))
            case "result":
                facts.append(("result", known_id(wire, entry["id"]), _known_name(wire, entry["name"]), entry["text"]))
            case kind:
                facts.append(({"text": "assistant"}.get(kind, kind), entry["text"]))
        if "image" in entry:
            facts.append(("image", entry["image"]))
    return _paired(facts)


def normalised(wire: str, body: bytes | str | Mapping[str, Any]) -> list[Fact]:
    """What a request's messages say.

    (role, text), ("image", URL), ("reasoning", text, seal), ("call", id, name, arguments), ("result", id, name, text).
    Ids are numbers: what a wire makes of one is its own, but a result has its call's. They are None on Google's wire,
    and results' names None on the others, which have none. Neighbouring texts of one message are joined. A mapping may
    be a part of a request: its messages and its system alone.
    """
    return _paired(list(_READERS[wire](_fields(body))))


def refused_ids(wire: str, body: bytes | str | Mapping[str, Any]) -> int:
    """How many calls of a request have an id that the wire refuses."""
    if wire not in _REFUSED:
        return 0
    calls = [fact for fact in _READERS[wire](_fields(body)) if fact[0] == "call"]
    return sum(bool(_REFUSED[wire].match(str(fact[1]))) for fact in calls)


def _fields(body: bytes | str | Mapping[str, Any]) -> Mapping[str, Any]:
    fields: Mapping[str, Any] = json.loads(body) if isinstance(body, bytes | str) else body
    return fields


def _paired(facts: list[Fact]) -> list[Fact]:
    """The facts with the number of its call for every id that a call has."""
    ids = [fact[1] for fact in facts if fact[0] == "call" and fact[1] is not None]
    numbers = {identifier: number for number, identifier in enumerate(ids)}
    return [
        (kind, numbers.get(rest[0], rest[0]), *rest[1:]) if kind in ("call", "result") else (kind, *rest)
        for kind, *rest in facts
    ]


def _chat_facts(body: Mapping[str, Any]) -> Iterator[Fact]:
    for message in body["messages"]:
        role = {"developer": "system"}.get(message["role"], message["role"])
        text = _joined(message.get("content"))
        if role == "tool":
            yield "result", message["tool_call_id"], None, text
        elif text:
            yield role, text
        for block in _blocks(message.get("content"), "image_url"):
            yield "image", block["image_url"]["url"]
        for made in message.get("tool_calls") or ():
            function = made["function"]
            yield "call", made["id"], function["name"], json.loads(function["arguments"])


def _responses_facts(body: Mapping[str, Any]) -> Iterator[Fact]:
    if body.get("instructions"):
        yield "system", body["instructions"]
    for item in body["input"]:
        match item.get("type", "message"):
            case "message":
                yield {"developer": "system"}.get(item["role"], item["role"]), _joined(item["content"])
                for block in _blocks(item["content"], "input_image"):
                    yield "image", block["image_url"]
            case "function_call":
                yield "call", item["call_id"], item["name"], json.loads(item["arguments"])
            case "function_call_output":
                yield "result", item["call_id"], None, _joined(item["output"])
            case "reasoning":
                yield "reasoning", _joined(item.get("summary")), (item.get("encrypted_content") or "").rstrip("=")
            case kind:
                yield (kind,)


def _anthropic_facts(body: Mapping[str, Any]) -> Iterator[Fact]:
    if body.get("system"):
        yield "system", _joined(body["system"])
    for message in body["messages"]:
        content = message["content"]
        blocks: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks:
            match block["type"]:
                case "text":
                    yield message["role"], block["text"]
                case "image":
                    yield "image", f"data:{block['source']['media_type']};base64,{block['source']['data']}"
                case "thinking":
                    yield "reasoning", block["thinking"], block["signature"].rstrip("=")
                case "tool_use":
                    yield "call", block["id"], block["name"], block["input"]
                case "tool_result":
                    yield "result", block["tool_use_id"], None, _joined(block.get("content"))
                case kind:
                    yield (kind,)


def _google_facts(body: Mapping[str, Any]) -> Iterator[Fact]:
    instruction = body.get("systemInstruction") or body.get("system_instruction")
    if instruction:
        yield "system", _joined(instruction["parts"])
    for content in body["contents"]:
        role = {"model": "assistant"}.get(content["role"], content["role"])
        for part in content["parts"]:
            made = part.get("functionCall") or part.get("function_call")
            came = part.get("functionResponse") or part.get("function_response")
            shown = part.get("inlineData") or part.get("inline_data")
            seal = _standard(part.get("thoughtSignature") or part.get("thought_signature") or "")
            if seal not in NO_SIGNATURES:
                yield "reasoning", "", seal
            if made:
                yield "call", None, made["name"], made["args"]
            elif came:
                yield "result", None, came["name"], _only_text(came["response"])
            elif shown:
                data = _standard(shown["data"])
                mime = shown.get("mimeType") or shown.get("mime_type")
                yield "image", f"data:{mime};base64,{data}{'=' * (-len(data) % 4)}"
            else:
                yield role, part["text"]


_READERS: dict[str, Callable[[Mapping[str, Any]], Iterator[Fact]]] = {
    "openai.chat": _chat_facts,
    "openai.responses": _responses_facts,
    "anthropic.messages": _anthropic_facts,
    "google.generate_content": _google_facts,
}


def _known_name(wire: str, name: str) -> str | None:
    return name if wire == "google.generate_content" else None


def _joined(content: Any) -> str:
    """The text of a string, or of a list of blocks that hold some."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(block if isinstance(block, str) else block.get("text", "") for block in content)


def _blocks(content: Any, kind: str) -> list[Any]:
    return [block for block in content if block.get("type") == kind] if isinstance(content, list) else []


def _standard(encoded: str | bytes) -> str:
    """Bytes in base64, of whichever alphabet, in the standard one and without padding."""
    given = encoded if isinstance(encoded, str) else b64encode(encoded).decode()
    return given.replace("-", "+").replace("_", "/").rstrip("=")


def _only_text(response: Mapping[str, Any]) -> str:
    """What a function response says, whatever its one field is called."""
    values = list(response.values())
    return values[0] if len(values) == 1 and isinstance(values[0], str) else compact(response)
