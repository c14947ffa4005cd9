"""What a request and its rendering back may differ in, in one place; it shares no code with the readers of histories.

sent     ──normal──▶ ┐
                     ├ equal, once what the losses name is taken out of what was sent
rendered ──normal──▶ ┘

null fields, stream, stream_options         say nothing, or how the call was made
store, include                              rendering has its own defaults
max_tokens                                  is max_completion_tokens
a format of type text                       is the default
functions, function_call                    are tools and tool_choice
tools                                       `strict` unless it is stated, what a strict schema leaves out; options first
developer                                   is system
a string                                    is one text part; an assistant's neighbouring texts are one message
no content, null, an empty one              of an assistant that calls: the same
type message, detail auto, no annotations   hold without being said
instructions, a string input                are messages
the name of a tool's result                 is its call's, and so are its namespace and its caller
the index of a call                         is its place
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from sabir.base.failures import Loss
from sabir.contract.dialect import DecodedHistory

from tests.vendor.support import lost, without_losses

SETTINGS = {"settings.stop", "settings.temperature", "settings.top_p"}
_SAYS_NOTHING = {"detail": "auto", "type": "message"}
_TEXTS = ("input_text", "output_text", "text")
_ANNOTATIONS = {"$schema", "additionalProperties", "default", "examples", "strict"}


def normal(body: dict[str, Any], field: str, missing: list[Any]) -> dict[str, Any]:
    head = {name: value for name, value in body.items() if name not in ("stream", "stream_options", "store", "include")}
    if "max_tokens" in head:
        head["max_completion_tokens"] = head.pop("max_tokens")
    functions = [{"type": "function", "function": function} for function in head.pop("functions", None) or ()]
    if "function_call" in head:
        head["tool_choice"] = head.pop("function_call")
    tools = [_tool(tool) for tool in [*(head.pop("tools", None) or ()), *functions]]
    for name in ("text", "response_format"):
        head[name] = _without_text_type(_schema(_without_description(head.get(name))))
    stop = head.get("stop")
    head["stop"] = [stop] if isinstance(stop, str) else stop
    items = list(_items(head.pop(field, None) or [], head.pop("instructions", None)))
    kept = [item for item in items if item is not None and not _is_lost(item, missing)]
    # Reasoning that cannot be found again takes the ids with it that are bound to it.
    is_bound = any(isinstance(each, dict) and each.get("type") == "reasoning" for each in missing)
    messages = [_message(item, is_bound) for item in kept]
    options_first = sorted(tools, key=lambda tool: tool.get("type") != "function")
    found: dict[str, Any] = _without_nulls({**head, "tools": options_first or None, field: list(_joined(messages))})
    return found


def _without_text_type(form: Any) -> Any:
    """Return a format without the type `text`, which is the default."""
    if not isinstance(form, dict):
        return form
    if form.get("type") == "text":
        return None
    return {name: value for name, value in form.items() if value != {"type": "text"}} or None


def restored(
    field: str, request: dict[str, Any], body: dict[str, Any] | None, history: DecodedHistory, losses: tuple[Loss, ...]
) -> tuple[Any, Any]:
    """What was stored and what is rendered, in one form, and which functions are said to be strict."""
    sent = without_losses(request, history.losses)
    for loss in losses:
        if loss.path in SETTINGS:
            sent.pop(loss.path.removeprefix("settings."))
    if any(loss.path == "settings.reasoning_effort" for loss in losses):  # the nearest one is sent
        for each in filter(None, (sent, body)):
            each.pop("reasoning_effort", None)
            each["reasoning"] = {key: part for key, part in (each.get("reasoning") or {}).items() if key != "effort"}
    expected = normal(sent, field, lost(history, (loss for loss in losses if loss.kind != "withheld"), "state"))
    if body is None:
        return expected[field], []
    strict = {name: stated for name, stated in stated_strict(body).items() if name in stated_strict(sent)}
    return (expected, stated_strict(sent)), (normal(body, field, []), strict)


def stated_strict(body: dict[str, Any]) -> dict[str, bool]:
    """Name of a function → whether it is strict, where the request says so."""
    declared = [tool.get("function") or tool for tool in body.get("tools") or () if tool.get("type") == "function"]
    return {each["name"]: each["strict"] for each in declared if each.get("strict") is not None}


def _items(given: Any, instructions: Any) -> Iterator[Any]:
    if instructions:
        yield {"role": "system", "content": instructions}
    yield from [{"role": "user", "content": given}] if isinstance(given, str) else given


def _is_lost(item: dict[str, Any], lost: list[Any]) -> bool:
    return item in lost or item.get("call_id") in lost or item.get("tool_call_id") in lost


def _without_description(form: Any) -> Any:
    """A response format without an empty description."""
    found = json.loads(json.dumps(form))
    for place in (found, (found or {}).get("json_schema"), (found or {}).get("format")):
        if isinstance(place, dict) and place.get("description") == "":
            del place["description"]
    return found


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    if tool.get("type") != "function":
        return tool
    declared = dict(tool.get("function") or tool)
    declared.pop("type", None)
    if not declared.get("description"):
        declared.pop("description", None)
    parameters = declared.get("parameters") or {"type": "object", "properties": {}}
    return {"type": "function", **declared, "parameters": _schema(parameters), "strict": None}


def _schema(schema: Any, is_map: bool = False) -> Any:
    """A schema without what strict mode adds or leaves out; `is_map` says that its keys are names."""
    if isinstance(schema, list):
        return [_schema(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: value for name, value in schema.items() if is_map or name not in _ANNOTATIONS}
    return {
        name: sorted(value) if name == "required" and not is_map else _schema(value, name in ("properties", "$defs"))
        for name, value in kept.items()
        if is_map or not (name == "required" and value == [])
    }


def _message(item: dict[str, Any], is_bound: bool) -> dict[str, Any]:
    found = {name: value for name, value in item.items() if value is not None and _SAYS_NOTHING.get(name) != value}
    if is_bound and item.get("type", "message") in ("message", "function_call"):
        found.pop("id", None)
    for name in ("content", "output"):
        if isinstance(found.get(name), str):
            found[name] = [{"type": "text", "text": found[name]}] if found[name] else []
        if isinstance(found.get(name), list) and found.get("type") != "reasoning":
            found[name] = [_part(part) for part in found[name]]
    if found.get("role") == "developer" and "tools" not in found:
        found["role"] = "system"
    if found.get("role") == "tool":
        found.pop("name", None)
    if found.get("type") == "function_call_output":
        found = {name: value for name, value in found.items() if name not in ("name", "namespace", "caller")}
    for place, call in enumerate(found.get("tool_calls", ())):
        if call.pop("index", None) not in (None, place):
            raise ValueError(f"the call {call} says that it stands elsewhere than at {place}")
    if found.get("annotations") == []:
        found.pop("annotations")
    return found


def _part(part: dict[str, Any]) -> dict[str, Any]:
    found = {
        name: value for name, value in part.items() if value not in (None, []) and _SAYS_NOTHING.get(name) != value
    }
    if isinstance(found.get("image_url"), dict):
        found["image_url"] = {name: value for name, value in found["image_url"].items() if value not in (None, "auto")}
    return {**found, "type": "text"} if found.get("type") in _TEXTS else found


def _joined(messages: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Neighbouring messages of an assistant as one, and its content always an array."""
    last: dict[str, Any] | None = None
    for each in messages:
        is_plain = each.get("role") == "assistant" and not each.keys() & {"id", "status", "phase"}
        message = {**each, "content": each.get("content", [])} if is_plain else each
        if is_plain and last is not None and not (last.keys() | message.keys()) & {"audio"}:
            calls = [*last.get("tool_calls", ()), *message.get("tool_calls", ())]
            last = {
                **last,
                "content": [*last["content"], *message["content"]],
                **({"tool_calls": calls} if calls else {}),
            }
            continue
        if last is not None:
            yield last
        last = message if is_plain else None
        if not is_plain:
            yield message
    if last is not None:
        yield last


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {name: _without_nulls(item) for name, item in value.items()}
        return {name: item for name, item in kept.items() if item is not None and item != {}}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
