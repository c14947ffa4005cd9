"""Walkers over generateContent that know nothing of the plugin, and what a request and its rendering may differ in.

chunks   ──accumulated──▶ the response that they add up to: neighbouring plain texts joined, figures and metadata merged
request  ──normal──▶ ┐
                     ├ equal, once what the losses name is taken out of what was sent
rendered ──normal──▶ ┘

spelling                                fields of the vendor's in snake case are those in camel case, enums in any case
nulls, empty objects, empty texts       say nothing; so do a role of the system's, and calls without arguments
base64                                  of bytes in the alphabet for URLs is that in the standard one
role function, no role                  are the user's
one object of tools, a text of parts    are lists of one
declarations                            are those of one tool, before the vendor's own; `parameters` are a JSON schema
results beside other parts              are a content of their own, before the others'
neighbouring contents of the model's    are one
an object beside a result's media       is JSON text, if the losses say so
a call's signature                      where it has none and its step is the first, may be the documented dummy
safety settings, modalities …           as they are
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from sabir.base.failures import Loss
from sabir.base.values import encode_json
from sabir.contract.dialect import DecodedHistory
from sabir.errors import AuthenticationFailed, CallError, InvalidRequest, ModelNotFound, PermissionDenied, RateLimited
from sabir.vocabulary.reply import Reply
from sabir_google.dialect import GENERATE_CONTENT

from tests.vendor.support import Exchange, Wire, sent_back, unequal, without_losses

DUMMY = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
_VERBATIM = {
    "args", "response", "responseJsonSchema", "responseSchema", "labels", "properties", "parametersJsonSchema",
    "thoughtSignature",
}  # fmt: skip
STATUSES: dict[str, type[CallError]] = {
    "FAILED_PRECONDITION": InvalidRequest,
    "INVALID_ARGUMENT": InvalidRequest,
    "NOT_FOUND": ModelNotFound,
    "PERMISSION_DENIED": PermissionDenied,
    "RESOURCE_EXHAUSTED": RateLimited,
}
_ENUMS = {"mode", "thinkingLevel", "type"}


def accumulated(events: Iterable[Any]) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    candidates: dict[int, dict[str, Any]] = {}
    for event in events:
        if not isinstance(event, dict):
            continue
        for name, value in event.items():
            if name == "usageMetadata":
                whole[name] = {**whole.get(name, {}), **value}
            elif name != "candidates":
                whole[name] = value
        for candidate in event.get("candidates", ()):
            held = candidates.setdefault(candidate.get("index", 0), {"content": {"parts": []}})
            for name, value in candidate.items():
                if name == "content":
                    for part in value.get("parts", ()):
                        join(held["content"]["parts"], part)
                elif isinstance(value, dict):
                    held[name] = {**held.get(name, {}), **value}
                else:
                    held[name] = value
    return {**whole, **({"candidates": list(candidates.values())} if candidates else {})}


def join(parts: list[Any], part: dict[str, Any]) -> None:
    """Add a part; a plain text to one of its kind before it."""
    plain = [each.keys() <= {"text", "thought"} for each in (parts[-1:] or [{"": ""}]) + [part]]
    if part in ({}, {"text": ""}):
        return
    if all(plain) and parts[-1].get("thought") == part.get("thought"):
        parts[-1] = {**parts[-1], "text": parts[-1]["text"] + part["text"]}
    else:
        parts.append(part)


def supports(response: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for candidate in response.get("candidates", ()):
        yield from (candidate.get("groundingMetadata") or {}).get("groundingSupports", ())


def normal(body: dict[str, Any]) -> dict[str, Any]:
    head = camelled(body)
    head["contents"] = _joined(each for content in head["contents"] if content for each in _contents(content))
    if "systemInstruction" in head:
        parts = head["systemInstruction"]["parts"]
        parts = [part for part in (parts if isinstance(parts, list) else [parts]) if part != {"text": ""}]
        head["systemInstruction"] = {"parts": parts}
    tools = head.pop("tools", None) or []
    found = {**bare(head), "tools": list(_tools([tools] if isinstance(tools, dict) else tools))}
    return {"contents": [], **found}


def camelled(value: Any) -> Any:
    """A JSON value whose fields are in camel case, but for what is the user's own."""
    if isinstance(value, list):
        return [camelled(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for name, each in value.items():
        first, *rest = name.split("_")
        spelled = first + "".join(word.capitalize() for word in rest)
        found[spelled] = each if spelled in _VERBATIM else camelled(each)
        if spelled in _ENUMS and isinstance(each, str):
            found[spelled] = each.upper()
    return found


def _contents(content: dict[str, Any]) -> Iterator[dict[str, Any]]:
    role = "model" if content.get("role") == "model" else "user"
    parts = [_part(part) for part in content["parts"]]
    parts = [part for part in parts if part and part != {"text": ""}]
    results = [part for part in parts if "functionResponse" in part]
    others = [part for part in parts if "functionResponse" not in part]
    yield from ({"role": role, "parts": each} for each in (results, others) if each)


def _joined(contents: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for content in contents:
        if content["role"] == "model" and found and found[-1]["role"] == "model":
            found[-1] = {"role": "model", "parts": [*found[-1]["parts"], *content["parts"]]}
        else:
            found.append(content)
    for content in found:
        first = next((part for part in content["parts"] if "functionCall" in part), {})
        if first.get("thoughtSignature") == DUMMY:
            del first["thoughtSignature"]
    return found


def _part(part: dict[str, Any] | None) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(part or {}))
    for data in (found, *found.get("functionResponse", {}).get("parts", ())):
        if "inlineData" in data:
            data["inlineData"]["data"] = data["inlineData"]["data"].replace("-", "+").replace("_", "/")
    if "functionCall" in found:
        found["functionCall"].setdefault("args", {})
    return found


def _tools(tools: list[Any]) -> Iterator[dict[str, Any]]:
    declared = [each for tool in tools if tool for each in tool.get("functionDeclarations") or ()]
    yield from (_declaration(each) for each in declared)
    for tool in tools:
        if rest := {name: value for name, value in (tool or {}).items() if name != "functionDeclarations"}:
            yield rest


def _declaration(declared: dict[str, Any]) -> dict[str, Any]:
    schemas = ("parameters", "parametersJsonSchema")
    found = {name: value for name, value in declared.items() if value and name not in schemas}
    schema = declared.get("parametersJsonSchema") or declared.get("parameters")
    return {**found, "schema": _schema(schema or {"type": "object", "properties": {}})}


def _schema(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_schema(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: _schema(value) for name, value in schema.items()}
    kind = found.get("type")
    if isinstance(kind, str):
        found["type"] = [kind.lower(), "null"] if found.pop("nullable", None) is True else kind.lower()
    return found


def bare(value: Any) -> Any:
    """A JSON value without nulls, and without what is empty because of them; what is the user's own stays."""
    if isinstance(value, list):
        return [bare(each) for each in value if each is not None]
    if not isinstance(value, dict):
        return value
    kept = {name: each if name in _VERBATIM or name == "schema" else bare(each) for name, each in value.items()}
    return {name: each for name, each in kept.items() if name in _VERBATIM or each not in (None, {}, [], "")}


def returned(response: dict[str, Any], reply: Reply) -> list[str]:
    """Where the parts that go back are not those that came, in their order, with their signatures."""
    candidates = response.get("candidates") or [{}]
    parts = [part for part in (candidates[0].get("content") or {}).get("parts", ()) if part and part != {"text": ""}]
    sent = sent_back(GENERATE_CONTENT, reply).body["contents"]
    for part in parts:
        if "functionCall" in part:
            part["functionCall"] = {"args": {}, **part["functionCall"]}
    while parts and parts[-1].get("thought"):
        parts.pop()
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    answers = [part["functionResponse"] for part in sent[2]["parts"]] if calls else []
    named = [[(each["name"], each.get("id")) for each in listed] for listed in (calls, answers)]
    return unequal(("parts", parts, [dict(part) for part in sent[1]["parts"]] if parts else []), ("calls", *named))


def refusal(exchange: Exchange) -> type[CallError]:
    """Wire-rules §6: the details decide before the status."""
    told = exchange.response["error"]
    return AuthenticationFailed if "API key not valid" in told["message"] else STATUSES[told["status"]]


def restored(
    request: dict[str, Any], body: dict[str, Any] | None, history: DecodedHistory, losses: tuple[Loss, ...]
) -> tuple[Any, Any]:
    """Both in the wire's spelling; an object beside a result's media as text, if the losses say so."""
    sent = without_losses(camelled(request), history.losses)
    for loss in history.losses:
        if loss.kind == "rewritten" and loss.path.endswith(".functionResponse.response"):
            _, content, _, part, *_ = loss.path.replace("[", ".").replace("]", "").split(".")
            response = sent["contents"][int(content)]["parts"][int(part)]["functionResponse"]
            response["response"] = {"output": encode_json(response["response"])}
    expected = normal(sent)
    if body is None:
        return expected["contents"], []
    if any(loss.path == "contents" for loss in losses) and body["contents"].pop() != NOTHING_SAID:
        return NOTHING_SAID, body
    return expected, normal(body)


NOTHING_SAID = {"role": "user", "parts": [{"text": "…"}]}
WIRE = Wire(
    dialect=GENERATE_CONTENT,
    counts=(321, 119, 14, 420),
    added_up=lambda exchange: accumulated(exchange.events or ()),
    returned=returned,
    refusal=refusal,
    restored=restored,
    beside=(
        "candidates[].index",
        *(f"candidates[].content.{path}" for path in ("role", "parts[].thought", "parts[].inlineData.mimeType")),
    ),
    is_decoded_when_added_up=False,
)
