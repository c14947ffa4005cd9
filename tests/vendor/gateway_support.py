"""Recorded exchanges with gateways, and a walker over Chat Completions that shares no code with the plugins.

    host ──HOSTS──▶ row ──▶ Place (row, dialect, model)
    stream ──added_up──▶ the body that its chunks add up to ──▶ what it says: texts, reasoning, calls, figures, reasons

Of a request, it says what a row may change without a loss.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import sabir
from sabir.calling.adapter import ModelAdapter
from sabir.contract.dialect import DecodedHistory, Rendering
from sabir.contract.scope import DecodeScope
from sabir.vocabulary.settings import Target

from tests.vendor.openai_history_support import normal
from tests.vendor.support import Exchange, exchanges, leaves, without_losses

FILES = {
    "more/openai.chat_at_gateways": "openai.chat",
    "more/mistral.chat": "openai.chat",
    "more/openai.responses_at_gateways": "openai.responses",
}
"""File of exchanges → the dialect in which they are."""
HOSTS = {
    "127.0.0.1:11434": "ollama", "ai-gateway.vercel.sh": "vercel", "api.cerebras.ai": "cerebras",
    "api.deepseek.com": "deepseek", "api.groq.com": "groq", "api.mistral.ai": "mistral",
    "api.perplexity.ai": "perplexity", "api.together.ai": "together", "api.together.xyz": "together",
    "api.venice.ai": "venice", "api.x.ai": "xai", "api.z.ai": "zai", "llama.cpp": "llamacpp",
    "localhost:11434": "ollama", "ollama.com": "ollama", "openrouter.ai": "openrouter",
    "router.huggingface.co": "huggingface",
}  # fmt: skip
"""Host of an exchange → the row of its gateway; every other host is an unknown endpoint of OpenAI's dialects."""
REASONING = ("reasoning_content", "reasoning")
"""Fields of a message with its reasoning; two of them repeat each other."""
_GROWN = ("delta", "message", "logprobs", "text")
"""Fields of a choice's piece that add to it, or that repeat all text so far."""


def row_of(exchange: Exchange) -> str:
    """Return the name of the row of the exchange's gateway; "openai" for one without a row."""
    return HOSTS.get(exchange.host, "openai")


def is_refused(exchange: Exchange) -> bool:
    """Return whether the answer is an error, in its status, in its body or in its stream."""
    return exchange.status >= 400 or any(error_of(each) for each in exchange.events or [exchange.response])


def error_of(value: Any) -> Any:
    """Return what an answer, or an event of it, says about a failure; None without one."""
    return value.get("error") if isinstance(value, dict) else None


def recorded(dialect: str) -> list[Exchange]:
    return [each for file, spoken in FILES.items() if spoken == dialect for each in exchanges(file)]


@cache
def adapter_of(row: str, dialect: str, model: str) -> ModelAdapter:
    base_url = "https://gateway.example/v1" if row == "openai" else None
    return sabir.adapter(f"{row}.{dialect.partition('.')[2]}:{model or 'unknown'}", api_key="k", base_url=base_url)


def scope_of(exchange: Exchange, dialect: str) -> DecodeScope:
    return DecodeScope(Target(provider=row_of(exchange), dialect=dialect, model=exchange.model or "unknown")).counted()


def added_up(exchange: Exchange) -> dict[str, Any]:
    """Return the body of an answer, or the one that the chunks of its stream add up to."""
    if exchange.events is None:
        body: dict[str, Any] = exchange.response
        return body
    whole: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    for chunk in (event for event in exchange.events if isinstance(event, dict)):
        whole |= {name: value for name, value in chunk.items() if name != "choices" and value not in (None, "")}
        for piece in chunk.get("choices") or ():
            choice = choices.setdefault(piece["index"], {"index": piece["index"], "message": {}})
            choice |= {name: value for name, value in piece.items() if name not in _GROWN and value}
            if piece.get("logprobs"):
                logs = choice.setdefault("logprobs", {})
                for name, entries in piece["logprobs"].items():
                    logs[name] = entries if entries is None else [*(logs.get(name) or ()), *entries]
            _grow(choice["message"], piece.get("delta") or {})
    return {**whole, "choices": [choices[index] for index in sorted(choices)]}


def _grow(message: dict[str, Any], delta: dict[str, Any]) -> None:
    for name, value in delta.items():
        if value is None:
            continue
        if name == "tool_calls":
            for call in value:
                _grow_call(message.setdefault(name, []), call)
        elif name == "reasoning_details":
            for detail in value:
                _grow_detail(message.setdefault(name, []), detail)
        elif name == "content":
            message[name] = _grown_content(message.get(name), value)
        elif name in (*REASONING, "refusal"):
            message[name] = message.get(name, "") + value
        else:
            message[name] = value


def _grown_content(before: Any, more: Any) -> Any:
    """Return content with more of it: a text, or a list of parts once any part is no text."""
    if isinstance(before, str | None) and isinstance(more, str):
        return (before or "") + more
    parts = [{"type": "text", "text": before}] if isinstance(before, str) and before else list(before or ())
    for part in [{"type": "text", "text": more}] * bool(more) if isinstance(more, str) else more:
        last = parts[-1] if parts else {}
        if part["type"] == last.get("type") == "text":
            parts[-1] = {**last, "text": last["text"] + part["text"]}
        elif part["type"] == last.get("type") == "thinking":
            texts = [each["text"] for each in (*last["thinking"], *part["thinking"])]
            parts[-1] = {**last, **part, "thinking": [{"type": "text", "text": "".join(texts)}]}
        else:
            parts.append(part)
    return parts


def _grow_call(calls: list[dict[str, Any]], delta: dict[str, Any]) -> None:
    """Add a piece of a call: to the call of its index, or else of its id; one without both is a new call."""
    index, call_id = delta.get("index"), delta.get("id")
    known = [each for each in calls if (each["index"] == index if index is not None else each["id"] == call_id)]
    if call_id and known and known[-1]["id"] not in ("", call_id):
        known = []  # another call at the same index
    function = delta.get("function") or {}
    if not known:
        calls.append({"index": index, "id": "", "function": {"name": "", "arguments": ""}})
        known = calls
    call = known[-1]
    call["id"] = call["id"] or call_id or ""
    call["function"]["name"] = call["function"]["name"] or function.get("name") or ""
    call["function"]["arguments"] += function.get("arguments") or ""
    call |= {name: value for name, value in delta.items() if name not in ("index", "id", "function") and value}


def _grow_detail(details: list[dict[str, Any]], piece: dict[str, Any]) -> None:
    """Add a piece of a detail of reasoning to the detail of its type and index."""
    same = [each for each in details if (each["type"], each.get("index")) == (piece["type"], piece.get("index"))]
    if not same or piece.get("data") or (same[-1].get("signature") and not piece.get("signature")):
        details.append(dict(piece))
        return
    for name, value in piece.items():
        if name in ("text", "summary"):
            same[-1][name] = same[-1].get(name, "") + value
        elif value or name not in same[-1]:
            same[-1][name] = value


def said_by(message: dict[str, Any]) -> dict[str, Any]:
    """Return what a message of the wire says, in the terms of `read_from`."""
    content = message.get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    thoughts = [inner.get("text", "") for part in parts if part["type"] == "thinking" for inner in part["thinking"]]
    calls = []
    for call in message.get("tool_calls") or ():
        text = call["function"].get("arguments") or "{}"
        calls.append((call.get("id") or "", call["function"]["name"], _parsed(text)))
    return {
        "text": "".join(part["text"] for part in parts if part["type"] == "text"),
        "reasoning": next((message[name] for name in REASONING if message.get(name)), "") + "".join(thoughts),
        "refusal": message.get("refusal") or "",
        "calls": calls,
        "cited": len(message.get("annotations") or ()),
    }


def _parsed(text: Any) -> Any:
    try:
        value = json.loads(text) if isinstance(text, str) else text
        return {} if value is None else value
    except ValueError:
        return text


def read_from(messages: Iterable[sabir.Message]) -> dict[str, Any]:
    """Return what the messages of a reply say, in the terms of `said_by`."""
    parts = [part for message in messages if message.call is None for part in message.parts]
    calls = [message.call for message in messages if message.call is not None]

    def texts(kind: str) -> str:
        return "".join(part.text for part in parts if part.kind == kind)

    return {
        "text": texts("text"),
        "reasoning": texts("reasoning"),
        "refusal": texts("refusal"),
        "calls": [
            (
                each.invocation_id,
                each.option_name,
                each.raw_arguments if each.invalid_arguments else dict(each.arguments),
            )
            for each in calls
        ],
        "cited": sum(len(part.citations) for part in parts if part.kind == "text"),
    }


def usages(exchange: Exchange) -> Iterator[dict[str, Any]]:
    for each in exchange.events or [exchange.response]:
        found = each if isinstance(each, dict) else {}
        found = found.get("response") or found
        for usage in (found.get("usage"), (found.get("x_groq") or {}).get("usage")):
            if usage:
                yield usage


def figures(usage: dict[str, Any]) -> dict[str, int]:
    """Return the figures of a usage that have a place of their own in a reply, by the reply's names; zeros left out."""
    read = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
    made = usage.get("completion_tokens_details") or usage.get("output_tokens_details") or {}
    found: dict[str, list[Any]] = {
        "cache_read_tokens": [
            read.get("cached_tokens"), usage.get("cached_tokens"), usage.get("prompt_cache_hit_tokens"),
            usage.get("num_cached_tokens"),
        ],
        "cache_write_tokens": [read.get("cache_write_tokens")],
        "reasoning_tokens": [made.get("reasoning_tokens"), usage.get("reasoning_tokens")],
        "total_tokens": [usage.get("total_tokens")],
    }  # fmt: skip
    return {name: max(filter(None, values)) for name, values in found.items() if any(values)}


# --- requests: what a row may change without a loss ---


def canonical(body: dict[str, Any]) -> dict[str, Any]:
    """Return a request in the form that all requests of the same meaning have at gateways.

    A row's renames (`max_tokens`, `random_seed`) and spellings that mean the same: `any` and `required`, a tool without
    its type, `strict: false`, an image or a sound as a string, texts in a list or as one, the default `prefix`,
    `null` as no arguments.
    """
    body = json.loads(json.dumps(body))
    if "random_seed" in body:
        body["seed"] = body.pop("random_seed")
    if body.get("tool_choice") == "any":
        body["tool_choice"] = "required"
    for tool in body.get("tools") or ():
        tool.setdefault("type", "function")
        for place in (tool, tool.get("function") or {}):
            if place.get("strict") is False:
                del place["strict"]
    for message in body.get("messages") or ():
        if message.get("prefix") is False:
            del message["prefix"]
        for call in message.get("tool_calls") or ():
            if call["function"].get("arguments") == "null":
                call["function"]["arguments"] = "{}"
        content = message.get("content")
        if isinstance(content, list):
            parts = [_canonical_part(part) for part in content]
            is_text = all(part.get("type") == "text" for part in parts)
            separator = "" if message["role"] == "assistant" else "\n\n"
            message["content"] = separator.join(part["text"] for part in parts) if is_text else parts
    return body


def _canonical_part(part: Any) -> dict[str, Any]:
    part = {"type": "text", "text": part} if isinstance(part, str) else {**part}
    kind = part.get("type")
    inner = part.get(kind)
    if kind == "image_url" and isinstance(inner, str):
        part[kind] = {"url": inner}
    if kind == "input_audio":
        part[kind] = inner if isinstance(inner, str) else inner["data"]
    if kind == "file" and isinstance(inner, dict):
        part[kind] = {name: value for name, value in inner.items() if name != "filename"}
    return part


SETTINGS = {
    "tool_choice": "option_choice", "response_format": "response_format", "reasoning_effort": "reasoning_effort",
    "reasoning": "reasoning_effort", "parallel_tool_calls": "parallel_options", "stop": "stop", "seed": "seed",
    "max_completion_tokens": "max_output_tokens", "max_output_tokens": "max_output_tokens",
}  # fmt: skip
"""Field of a request → the setting that is sent in it."""


def unreported(exchange: Exchange, dialect: str, history: DecodedHistory, rendering: Rendering) -> Iterator[str]:
    """Yield the values of a recorded request that its rendering has not, and that no loss names.

    A value of a message may also be in the message that a loss names. What a rendering adds is in no request that was
    recorded, so that it needs a loss too, but for the endpoint's own defaults.
    """
    field = "messages" if dialect == "openai.chat" else "input"
    sent = without_losses(exchange.request or {}, history.losses)
    before, after = (normal(canonical(body), field, []) for body in (sent, dict(rendering.body)))
    expected, got = (Counter((_place(path), value) for path, value in leaves(body)) for body in (before, after))
    paths = {loss.path for loss in rendering.losses}
    lossy = {loss.message_id for loss in rendering.losses} - {None}
    named = "".join(message.model_dump_json() for message in history.messages if message.id in lossy)

    def has_loss(path: str) -> bool:
        name = path.partition(".")[0].partition("[")[0]
        vendor = f"settings.vendor.{row_of(exchange)}.{name}"
        return not paths.isdisjoint({f"settings.{SETTINGS.get(name, name)}", vendor})

    for (path, value), _ in (expected - got).items():
        name = path.partition(".")[0].partition("[")[0]
        is_schema = name in ("tools", "response_format") and any(each.startswith(_SCHEMAS) for each in paths)
        is_named = name == field and json.dumps(value, ensure_ascii=False).strip('"')[:60] in named
        is_structure = name == field and path.endswith((".type", ".role")) and bool(lossy)
        if not (has_loss(path) or is_schema or is_named or is_structure):
            yield f"{path}: {value!r:.80} is gone"
    for (path, value), _ in (got - expected).items():
        if not (has_loss(path) or (path.startswith(field) and lossy) or path.startswith("include")):
            yield f"{path}: {value!r:.80} is new"


_SCHEMAS = ("options[", "settings.response_format")


def _place(path: str) -> str:
    return path.partition(".parameters.")[0]
