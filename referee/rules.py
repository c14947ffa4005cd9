"""What each vendor's API refuses: the rules of order, ids and schemas of its error messages, and its SDK's types.

    body of a request ──RULES[wire]──▶ the vendor's complaints; none means that the request is accepted

A rule is here only if a vendor's error message or documentation states it; what a library ought to do better is not a
rule. The text of a complaint is the vendor's, shortened. The types are the strict ones of `tests.laws.oracle`.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import SchemaValidator

from tests.laws.oracle import strict, validators

Body = dict[str, Any]
Complaints = Iterator[str]
CONTENTS = {"contents", "systemInstruction", "tools", "toolConfig", "generationConfig"}
SIGNED = {
    "anthropic.messages": "signature",
    "openai.responses": "encryptedContent",
    "google.generate_content": "thoughtSignature",
}
"""Wire → the field whose signature the vendor's server checks."""
ROOT_KEYWORDS = {"anyOf", "oneOf", "allOf", "not", "enum"}


def complaints(wire: str, body: Body, foreign: set[str]) -> list[str]:
    """Return why the wire's API refuses a request; `foreign` are signatures that other vendors created."""
    broken = [*RULES[wire](body), *_foreign(wire, body, foreign)]
    return list(dict.fromkeys(broken or type_complaints(wire, body)))


def _foreign(wire: str, body: Body, foreign: set[str]) -> Complaints:
    for each in _dictionaries(body):
        signed = next((value for name, value in each.items() if camel(name) == SIGNED.get(wire)), "")
        if any(str(signed).startswith(signature[:32]) for signature in foreign):
            yield f"invalid {SIGNED[wire]}: another vendor created it"


def type_complaints(wire: str, body: Body) -> list[str]:
    """Return where the body does not fit the types of the vendor's newest SDK.

    A missing or unknown field of OpenAI's and Anthropic's types is not a complaint: their APIs accept some of these.
    """
    fields = {name: value for name, value in body.items() if name != "stream"}
    if wire == "google.generate_content":
        fields = {camel(name): value for name, value in fields.items() if camel(name) in CONTENTS}
    try:
        _type_validator(wire).validate_python(fields, strict=False)
    except ValidationError as error:
        fault = max(error.errors(), key=lambda fault: len(fault["loc"]))
        return [f"not in the SDK's types: {'.'.join(map(str, fault['loc']))}: {fault['msg']}"]
    return []


@cache
def _type_validator(wire: str) -> SchemaValidator:
    from anthropic.types.beta import message_create_params as anthropic_params
    from openai.types.chat import completion_create_params as chat_params
    from openai.types.responses import response_create_params as responses_params

    if wire == "google.generate_content":
        return validators()[wire]
    kinds: dict[str, Any] = {
        "openai.chat": chat_params.CompletionCreateParamsNonStreaming,
        "openai.responses": responses_params.ResponseCreateParamsNonStreaming,
        "anthropic.messages": anthropic_params.MessageCreateParamsNonStreaming,
    }
    adapter: TypeAdapter[Any] = TypeAdapter(kinds[wire])
    return SchemaValidator(_lenient(strict(adapter.core_schema)))


def _lenient(schema: Any) -> Any:
    """Return a schema whose typed dictionaries require only the fields that tell them apart, and ignore others."""
    if isinstance(schema, (list, tuple)):
        return type(schema)(_lenient(each) for each in schema)
    if not isinstance(schema, dict):
        return schema
    lenient = {name: _lenient(each) for name, each in schema.items()}
    if lenient.get("type") != "typed-dict":
        return lenient
    fields = {
        name: {**field, "required": field.get("required", True) and len(field["schema"].get("expected", ())) == 1}
        for name, field in lenient["fields"].items()
    }
    lenient.pop("extras_schema", None)
    return {**lenient, "fields": fields, "extra_behavior": "ignore"}


def camel(name: str) -> str:
    """Return a field's name as Google's API writes it; the API accepts both spellings."""
    return re.sub(r"_([a-z])", lambda letter: letter[1].upper(), name)


def chat(body: Body) -> Complaints:
    """Tool messages follow their calls immediately and completely."""
    waiting: list[str] = []
    for item in body["messages"]:
        if item["role"] == "tool":
            if item["tool_call_id"] in waiting:
                waiting.remove(item["tool_call_id"])
            else:
                yield "messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
            if any(part["type"] != "text" for part in item["content"] if isinstance(part, dict)):
                yield "a message with role 'tool' takes text parts only"
            continue
        yield from _unanswered(waiting, "an assistant message with 'tool_calls' must be followed by tool messages")
        waiting = []
        for call in item.get("tool_calls") or ():
            waiting.append(call["id"])
            if not 1 <= len(call["id"]) <= 64:
                yield f"'tool_calls[].id': string too long, {len(call['id'])} characters"
    yield from _unanswered(waiting, "an assistant message with 'tool_calls' must be followed by tool messages")
    yield from _openai_schemas([tool["function"] for tool in body.get("tools", ())])


def responses(body: Body) -> Complaints:
    """Every call has exactly one output; ids are short."""
    if isinstance(body["input"], str):
        return
    calls = [item for item in body["input"] if item.get("type") == "function_call"]
    outputs = [item for item in body["input"] if item.get("type") == "function_call_output"]
    called, answered = [call["call_id"] for call in calls], [output["call_id"] for output in outputs]
    for call in calls:
        if not 1 <= len(call["call_id"]) <= 64:
            yield f"'input[].call_id': string too long, {len(call['call_id'])} characters"
        if not str(call.get("id") or "fc").startswith("fc") or len(call.get("id") or "") > 64:
            yield f"invalid 'input[].id': {call['id'][:20]}…"
    yield from (f"no tool output found for function call {each}" for each in set(called) - set(answered))
    yield from (f"no tool call found for function call output {each}" for each in set(answered) - set(called))
    yield from (f"duplicate function_call_output for call_id {each}" for each in _repeated(answered))
    for item, following in zip(body["input"], [*body["input"][1:], None], strict=True):
        if item.get("type") == "reasoning" and (following is None or following.get("role") in ("user", "system")):
            yield "item of type 'reasoning' was provided without its required following item"
    yield from _openai_schemas([tool for tool in body.get("tools", ()) if tool["type"] == "function"])


def messages(body: Body) -> Complaints:
    """The turn after calls begins with all results; nothing is empty or blank; ids and names match patterns."""
    turns: list[tuple[str, list[Body]]] = []
    for item in body["messages"]:
        blocks = item["content"] if isinstance(item["content"], list) else [{"type": "text", "text": item["content"]}]
        if item["role"] == "system":
            yield "role 'system' is not supported on this model"
        if not blocks:
            yield "all messages must have non-empty content"
        if any(block.get("text") == "" for block in blocks):
            yield "text content blocks must be non-empty"
        elif blocks and not any(block.get("text", "other").strip() for block in blocks):
            yield "text content blocks must contain non-whitespace text"
        if turns and turns[-1][0] == item["role"]:
            turns[-1][1].extend(blocks)
        else:
            turns.append((item["role"], list(blocks)))
    yield from _anthropic_calls(turns)
    for tool in body.get("tools", ()):
        schema = tool.get("input_schema", {})
        if ROOT_KEYWORDS & set(schema) - {"not", "enum"}:
            yield "input_schema does not support oneOf, allOf, or anyOf at the top level"
        for name in schema.get("properties", {}):
            if not re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name):
                yield f"property keys should match pattern '^[a-zA-Z0-9_.-]{{1,64}}$': {name}"


def _anthropic_calls(turns: list[tuple[str, list[Body]]]) -> Complaints:
    waiting: list[str] = []
    every: list[str] = []
    for _, blocks in turns:
        answers = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        yield from _unanswered(
            [each for each in waiting if each not in answers],
            "`tool_use` ids were found without `tool_result` blocks immediately after",
        )
        yield from (f"unexpected `tool_use_id` in `tool_result`: {each}" for each in set(answers) - set(waiting))
        yield from (f"each tool_use must have a single result: {each}" for each in _repeated(answers))
        if waiting and [block["type"] for block in blocks[: len(answers)]] != ["tool_result"] * len(answers):
            yield "`tool_result` blocks must come first in the content"
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        every += waiting
        for call in waiting:
            if not re.fullmatch(r"[a-zA-Z0-9_-]+", call):
                yield f"tool_use.id: string should match pattern '^[a-zA-Z0-9_-]+$': {call}"
    yield from _unanswered(waiting, "`tool_use` ids were found without `tool_result` blocks immediately after")
    yield from (f"`tool_use` ids must be unique: {each}" for each in _repeated(every))


def generate_content(body: Body) -> Complaints:
    """Results follow their calls, as many as there are; calls follow the user; the current turn's calls are signed."""
    previous: list[Body] = []
    previous_role = ""
    contents = [(each.get("role"), [_camel_keys(part) for part in each["parts"]]) for each in body["contents"]]
    asked = max((n for n, (role, parts) in enumerate(contents) if role == "user" and _is_asked(parts)), default=0)
    for number, (role, parts) in enumerate(contents):
        calls = [part for part in parts if "functionCall" in part]
        results = [part for part in parts if "functionResponse" in part]
        earlier = [part for part in previous if "functionCall" in part]
        if not parts or any(part.keys() <= {"thought", "thoughtSignature"} for part in parts):
            yield "must include at least one parts field, each with one field of data"
        if len(results) != len(earlier):
            yield "the number of function response parts must equal the number of function call parts"
        if calls and previous_role == "model":
            yield "function call turn must come immediately after a user turn or after a function response turn"
        if calls and previous_role == "":
            yield "function call turn must come immediately after a user turn or after a function response turn"
        if calls and number > asked and "thoughtSignature" not in calls[0]:
            yield "function call is missing a thought_signature"
        previous, previous_role = parts, role
    if contents and any("functionCall" in part for part in previous):
        yield "the number of function response parts must equal the number of function call parts"


def _is_asked(parts: list[Body]) -> bool:
    """Return whether a user's content begins a turn; results alone continue one."""
    return any("functionResponse" not in part for part in parts)


def _camel_keys(part: Body) -> Body:
    return {camel(name): value for name, value in part.items()}


def _unanswered(waiting: list[str], text: str) -> Complaints:
    if waiting:
        yield f"{text}: {', '.join(waiting)}"


def _repeated(names: list[str]) -> set[str]:
    return {name for name in names if names.count(name) > 1}


def _openai_schemas(tools: list[Body]) -> Complaints:
    for tool in tools:
        schema = tool.get("parameters") or {}
        if keywords := sorted(ROOT_KEYWORDS & set(schema)):
            yield f"schema must have type 'object' and not have {', '.join(keywords)} at the top level"
        if any(each.get("type") == "array" and "items" not in each for each in _dictionaries(schema)):
            yield "array schema missing items"


def _dictionaries(schema: Any) -> Iterator[Body]:
    if isinstance(schema, dict):
        yield schema
        for each in schema.values():
            yield from _dictionaries(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from _dictionaries(each)


RULES: dict[str, Callable[[Body], Complaints]] = {
    "openai.chat": chat,
    "openai.responses": responses,
    "anthropic.messages": messages,
    "google.generate_content": generate_content,
}
