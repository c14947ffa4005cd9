"""Tools that vendors of compatible Chat Completions endpoints run themselves. OpenAI's own API has none.

    NativeOption ──NATIVE_BY_QUIRK──▶ fields of the request
    `executed_tools` of a message (Groq) ──▶ NativeCallPart, NativeResultPart, without `raw`

The endpoints do not accept calls of their own tools in requests, so these parts are not sent back. The answer that is
sent back contains what the model learned from them.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from sabir import NativeCallPart, NativeOption, NativeReference, NativeResultPart
from sabir.authoring import (
    DecodeScope,
    Fields,
    JSONValue,
    NativeTool,
    RequestScope,
    decode_json,
    list_or_empty,
    object_or_empty,
    text_or_empty,
)

EXECUTED = "executed_tools"
"""Field of a message with the calls that the endpoint executed."""
TOOLS: Mapping[str, str] = {
    "browser_search": "web_search", "code_interpreter": "code_execution", "function": "web_search", "mcp": "mcp_server",
    "python": "code_execution", "search": "web_search", "visit": "web_fetch",
}  # fmt: skip
"""Type of an executed tool → sabir's name of the tool. A tool of another type has the endpoint's name."""
OPENROUTER_PARAMETERS: Mapping[str, str] = {
    "domains": "allowed_domains", "blocked_domains": "excluded_domains", "max_uses": "max_uses",
}  # fmt: skip
"""Field of a NativeOption → parameter of OpenRouter's web search."""


def _openrouter_search(option: NativeOption, own: Mapping[str, JSONValue], scope: RequestScope) -> Mapping[str, Any]:
    """Declare the web search of OpenRouter. `own` are the user's further parameters."""
    contents = {wire: getattr(option, name) for name, wire in OPENROUTER_PARAMETERS.items()}
    parameters = {
        name: list(content) if isinstance(content, tuple) else content for name, content in contents.items() if content
    }
    parameters |= own
    return {"tools": [{"type": "openrouter:web_search", **({"parameters": parameters} if parameters else {})}]}


def _compound_search(option: NativeOption, own: Mapping[str, JSONValue], scope: RequestScope) -> Mapping[str, Any]:
    """Turn on the web search of Groq's compound models, with the option's domains as `search_settings`."""
    domains = {"include_domains": list(option.domains), "exclude_domains": list(option.blocked_domains)}
    search = {**{name: content for name, content in domains.items() if content}, **own}
    return {**_compound("web_search"), **({"search_settings": search} if search else {})}


def _compound(tool: str) -> dict[str, Any]:
    """Return the field that makes a compound model of Groq use only this tool."""
    return {"compound_custom": {"tools": {"enabled_tools": [tool]}}}


OPENROUTER_NATIVE: Mapping[str, NativeTool] = {
    "web_search": NativeTool(_openrouter_search, frozenset(OPENROUTER_PARAMETERS)),
}
"""https://openrouter.ai/docs/guides/features/server-tools/web-search"""
NATIVE_BY_QUIRK: Mapping[str, Mapping[str, NativeTool]] = {
    "openrouter_tools": OPENROUTER_NATIVE,
    "groq_compound": {
        "web_search": NativeTool(_compound_search, frozenset({"domains", "blocked_domains"})),
        "code_execution": NativeTool(lambda option, own, scope: _compound("code_interpreter")),
    },
    "groq_tools": {
        "web_search": NativeTool(lambda option, own, scope: {"tools": [{"type": "browser_search", **own}]}),
        "code_execution": NativeTool(lambda option, own, scope: {"tools": [{"type": "code_interpreter", **own}]}),
    },
}
"""Quirk → the endpoint's own tools. https://console.groq.com/docs/tool-use/built-in-tools"""


def decode_executed(message: Fields, scope: DecodeScope) -> Iterator[NativeCallPart | NativeResultPart]:
    """Yield the calls that the endpoint executed itself, each with its result."""
    for number, each in enumerate(map(object_or_empty, list_or_empty(message.get(EXECUTED)))):
        kind = text_or_empty(each.get("type"))
        if not kind:
            continue
        tool = TOOLS.get(kind, kind)
        shared: dict[str, Any] = {"tool": tool, "dialect": scope.target.dialect, "pair_id": f"executed_{number}"}
        yield NativeCallPart(**shared, **_call_fields(each, kind if tool != kind else ""))
        pages = object_or_empty(each.get("search_results")).get("results")
        sources = tuple(map(_source, map(object_or_empty, list_or_empty(pages))))
        output = text_or_empty(each.get("output"))
        yield NativeResultPart(**shared, sources=sources, output=None if sources else output or None)


def _call_fields(executed: Fields, kind: str) -> dict[str, Any]:
    """Return the typed fields of a call: query, URL or code, else its arguments. `kind` is the call's `name`, or ""."""
    try:
        arguments = object_or_empty(decode_json(text_or_empty(executed.get("arguments"))))
    except ValueError:
        arguments = {}
    query, url, code = (text_or_empty(arguments.get(name)) for name in ("query", "url", "code"))
    typed = {"queries": (query,) if query else (), "url": url, "code": code, "name": kind}
    fields = {name: content for name, content in typed.items() if content}
    return fields if query or url or code or not arguments else {**fields, "arguments": arguments}


def _source(outcome: Fields) -> NativeReference:
    url, title, text = (text_or_empty(outcome.get(name)) or None for name in ("url", "title", "content"))
    return NativeReference(url=url, title=title, text=text)
