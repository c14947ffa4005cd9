"""The hand-written loops of the limit: one wire each, frozen pydantic messages, orjson, and nothing in general.

    messages ──items──▶ dicts ──orjson──▶ the request        answer ──decode──▶ Reply        events ──fold──▶ Reply

As fast as a good engineer writes them for the one wire, without tricks: what they leave out (losses, pairing, media,
other wires, errors) is what a library has to justify.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import orjson
from pydantic import BaseModel, ConfigDict, Field

from benchmarks import work
from benchmarks.contenders import hand_items as items
from benchmarks.work import MAX_TOKENS, MODELS, OPTIONS, Entry, Given


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class Thought(Frozen):
    """Reasoning, with its maker's seal; it goes back to its maker alone."""

    is_own: bool
    text: str
    seal: str


class Text(Frozen):
    """A text of a role, with the image beside it, what was thought before it, and the id of its item."""

    kind: Literal["text"] = "text"
    role: Literal["system", "user", "assistant"]
    text: str
    image: str = ""
    thought: Thought | None = None
    item: str = ""


class Call(Frozen):
    """A call; the arguments are JSON text, ready for every wire."""

    kind: Literal["call"] = "call"
    id: str
    name: str
    arguments: str
    thought: Thought | None = None
    item: str = ""


class Result(Frozen):
    kind: Literal["result"] = "result"
    id: str
    name: str
    text: str


Message = Annotated[Text | Call | Result, Field(discriminator="kind")]


class Reply(Frozen):
    messages: tuple[Message, ...]
    finish: str
    input_tokens: int
    output_tokens: int

    @property
    def text(self) -> str:
        return "".join(message.text for message in self.messages if message.kind == "text")

    @property
    def calls(self) -> list[Call]:
        return [message for message in self.messages if message.kind == "call"]


def messages_of(given: Given) -> list[Text | Call | Result]:
    return [message_of(entry, has_items=given.talk == work.AGENTS) for entry in work.entries_of(given)]


def message_of(entry: Entry, *, has_items: bool = False) -> Text | Call | Result:
    """An entry of the conversation as a message; a server's own items have ids."""
    told = entry.get("reasoning") or entry.get("elsewhere")
    thought = Thought(is_own="reasoning" in entry, text=told["text"], seal=told["seal"]) if told else None
    has_items = has_items and "elsewhere" not in entry
    match entry["kind"]:
        case "call":
            arguments = orjson.dumps(entry["arguments"]).decode()
            item = f"fc_{entry['id']}" if has_items else ""
            return Call(id=entry["id"], name=entry["name"], arguments=arguments, thought=thought, item=item)
        case "result":
            return Result(id=entry["id"], name=entry["name"], text=entry["text"])
        case "text":
            item = "msg_bench01" if has_items else ""
            return Text(role="assistant", text=entry["text"], thought=thought, item=item)
        case role:
            return Text(role=role, text=entry["text"], image=entry.get("image", ""))


class Delta:
    """By how much a streamed text grew: what whoever watches a stream is given."""

    __slots__ = ("index", "text")

    def __init__(self, index: int, text: str) -> None:
        self.index = index
        self.text = text


def joined(deltas: Iterable[Delta]) -> str:
    return "".join([delta.text for delta in deltas])


class Wire(NamedTuple):
    """One wire: what stands before the messages, the loop over them, and what reads an answer and a stream."""

    field: str
    head: Callable[[str], Entry]
    """Takes the system's text."""
    items: Callable[[Iterable[Text | Call | Result]], list[Entry]]
    decode: Callable[[bytes], Reply]
    fold: Callable[[Iterable[Entry]], Reply]
    hoists: bool = True
    """Whether the system's text stands in the head."""

    def request(self, messages: Sequence[Text | Call | Result], *, streaming: bool = False) -> bytes:
        rest: Sequence[Text | Call | Result] = messages
        system = ""
        if self.hoists and messages[0].kind == "text" and messages[0].role == "system":
            system, rest = messages[0].text, messages[1:]
        body = self.head(system)
        if streaming and "model" in body:
            body["stream"] = True
        body[self.field] = self.items(rest)
        return orjson.dumps(body)


# OpenAI's Chat Completions.


def _chat_decode(body: bytes) -> Reply:
    found = orjson.loads(body)
    choice, usage = found["choices"][0], found["usage"]
    message = choice["message"]
    made: list[Entry] = (
        [{"kind": "text", "role": "assistant", "text": message["content"]}] if message["content"] else []
    )
    for call in message.get("tool_calls") or ():
        made.append({"kind": "call", "id": call["id"], **call["function"]})
    return _reply(made, choice["finish_reason"], usage["prompt_tokens"], usage["completion_tokens"])


def _chat_fold(events: Iterable[Entry]) -> Reply:
    texts: list[Delta] = []
    calls: list[Entry] = []
    finish, usage = "", {}
    for event in events:
        usage = event.get("usage") or usage
        for choice in event["choices"]:
            delta = choice["delta"]
            finish = choice["finish_reason"] or finish
            if text := delta.get("content"):
                texts.append(Delta(0, text))
            for call in delta.get("tool_calls") or ():
                function = call["function"]
                if "id" in call:
                    calls.append({"kind": "call", "id": call["id"], "name": function["name"], "arguments": ""})
                calls[call["index"]]["arguments"] += function["arguments"]
    made = [{"kind": "text", "role": "assistant", "text": joined(texts)}, *calls]
    return _reply(made, finish, usage["prompt_tokens"], usage["completion_tokens"])


# OpenAI's Responses.


def _responses_decode(body: bytes) -> Reply:
    return _responses_whole(orjson.loads(body))


def _responses_whole(found: Entry) -> Reply:
    made: list[Entry] = []
    for item in found["output"]:
        if item["type"] == "message":
            text = "".join(part["text"] for part in item["content"])
            made.append({"kind": "text", "role": "assistant", "text": text})
        else:
            made.append({"kind": "call", "id": item["call_id"], "name": item["name"], "arguments": item["arguments"]})
    usage = found["usage"]
    return _reply(made, found["status"], usage["input_tokens"], usage["output_tokens"])


def _responses_fold(events: Iterable[Entry]) -> Reply:
    texts: list[Delta] = []
    for event in events:
        if event["type"] == "response.output_text.delta":
            texts.append(Delta(0, event["delta"]))
        elif event["type"] == "response.completed":
            return _responses_whole(event["response"])
    raise ValueError("the stream has no end")


# Anthropic's Messages.


def _anthropic_decode(body: bytes) -> Reply:
    found = orjson.loads(body)
    made: list[Entry] = []
    thought: Entry | None = None
    for block in found["content"]:
        if block["type"] == "thinking":
            thought = {"is_own": True, "text": block["thinking"], "seal": block["signature"]}
        else:
            made.append({**_anthropic_block(block, block.get("input")), "thought": thought})
            thought = None
    usage = found["usage"]
    return _reply(made, found["stop_reason"], usage["input_tokens"], usage["output_tokens"])


def _anthropic_block(block: Entry, given: Any) -> Entry:
    if block["type"] == "text":
        return {"kind": "text", "role": "assistant", "text": block["text"]}
    text = given if isinstance(given, str) else orjson.dumps(given).decode()
    return {"kind": "call", "id": block["id"], "name": block["name"], "arguments": text}


def _anthropic_fold(events: Iterable[Entry]) -> Reply:
    blocks: list[tuple[Entry, list[Delta]]] = []
    finish, usage = "", {}
    for event in events:
        match event["type"]:
            case "content_block_delta":
                delta = event["delta"]
                text = delta["text"] if delta["type"] == "text_delta" else delta["partial_json"]
                blocks[event["index"]][1].append(Delta(event["index"], text))
            case "content_block_start":
                blocks.append((event["content_block"], []))
            case "message_start":
                usage = event["message"]["usage"]
            case "message_delta":
                usage |= event["usage"]
                finish = event["delta"]["stop_reason"]
    made = [_anthropic_block({**block, "text": joined(pieces)}, joined(pieces)) for block, pieces in blocks]
    return _reply(made, finish, usage["input_tokens"], usage["output_tokens"])


# Google's generateContent.


def _google_decode(body: bytes) -> Reply:
    return _google_fold([orjson.loads(body)])


def _google_fold(events: Iterable[Entry]) -> Reply:
    texts: list[Delta] = []
    calls: list[Entry] = []
    finish, usage = "", {}
    for event in events:
        candidate = event["candidates"][0]
        finish, usage = candidate.get("finishReason", finish), event["usageMetadata"]
        for part in candidate["content"]["parts"]:
            if "text" in part:
                texts.append(Delta(0, part["text"]))
            else:
                made = part["functionCall"]
                arguments = orjson.dumps(made["args"]).decode()
                call = {"kind": "call", "id": f"call_{len(calls)}", "name": made["name"], "arguments": arguments}
                if seal := part.get("thoughtSignature"):
                    call["thought"] = {"is_own": True, "text": "", "seal": seal}
                calls.append(call)
    said = [{"kind": "text", "role": "assistant", "text": joined(texts)}] if texts else []
    return _reply([*said, *calls], finish, usage["promptTokenCount"], usage["candidatesTokenCount"])


def _reply(messages: list[Entry], finish: str, input_tokens: int, output_tokens: int) -> Reply:
    return Reply.model_validate(
        {"messages": messages, "finish": finish, "input_tokens": input_tokens, "output_tokens": output_tokens}
    )


def events_of(chunks: Iterable[bytes]) -> Iterator[Entry]:
    """The JSON objects of a stream of server-sent events."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line.startswith(b"data: {"):
                yield orjson.loads(line[6:])


def _chat_head(system: str) -> Entry:
    tools = [{"type": "function", "function": option} for option in OPTIONS]
    return {"model": MODELS["openai.chat"], "tools": tools}


def _responses_head(system: str) -> Entry:
    return {"model": MODELS["openai.responses"], "tools": [{"type": "function", **option} for option in OPTIONS]}


def _anthropic_head(system: str) -> Entry:
    tools = [
        {"name": each["name"], "description": each["description"], "input_schema": each["parameters"]}
        for each in OPTIONS
    ]
    return {"model": MODELS["anthropic.messages"], "max_tokens": MAX_TOKENS, "system": system, "tools": tools}


def _google_head(system: str) -> Entry:
    declared = [
        {"name": each["name"], "description": each["description"], "parametersJsonSchema": each["parameters"]}
        for each in OPTIONS
    ]
    return {"systemInstruction": {"parts": [{"text": system}]}, "tools": [{"functionDeclarations": declared}]}


HAND: dict[str, Wire] = {
    "openai.chat": Wire("messages", _chat_head, items.chat, _chat_decode, _chat_fold, hoists=False),
    "openai.responses": Wire(
        "input", _responses_head, items.responses, _responses_decode, _responses_fold, hoists=False
    ),
    "anthropic.messages": Wire("messages", _anthropic_head, items.anthropic, _anthropic_decode, _anthropic_fold),
    "google.generate_content": Wire("contents", _google_head, items.google, _google_decode, _google_fold),
}


def wire_of(given: Given) -> Wire:
    """The wire of a task, whose loop may be another for another model."""
    wire = HAND[given.wire]
    return wire._replace(items=items.gemini_3) if given.other_model else wire
