"""The vendor's own tools of the Responses API: their declarations, and the typed fields of their items.

    NativeOption ──NATIVE──▶ `tools`, `include`
    web_search_call, file_search_call, code_interpreter_call, mcp_call ──▶ NativeCallPart, NativeResultPart

One item contains a call and its result. The item is the `raw` of the call, and the result has none.

https://developers.openai.com/api/docs/guides/tools
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sabir import NativeCallPart, NativeOption, NativeReference, NativeResultPart
from sabir.authoring import (
    Fields,
    JSONValue,
    NativeTool,
    RequestScope,
    decode_json,
    encode_json,
    list_or_empty,
    object_or_empty,
    text_or_empty,
    unknown_fields,
    without_fields,
)

from sabir_openai.settings import is_openai

NAME = "openai.responses"
INCLUDED: Mapping[str, str] = {
    "web_search": "web_search_call.action.sources", "code_interpreter": "code_interpreter_call.outputs",
}  # fmt: skip
"""Type of a tool → the value of `include` without which its results are not in the response. To leave them out, pass
`vendor={"openai": {"include": []}}`.
"""
APPROVAL = "require_approval"
"""Field of an MCP server. sabir sends "never", because the other vendors ask for no approval, and OpenAI's default
would stop every reply before the first call.
"""
MCP_FIELDS = frozenset({"allowed_tools", "authorization", "headers"})
"""Fields of a NativeOption that the declaration of an MCP server can contain."""


def _web_search(option: NativeOption, own: Mapping[str, JSONValue], scope: RequestScope) -> Mapping[str, Any]:
    filters = {"filters": {"allowed_domains": list(option.domains)}} if option.domains else {}
    return _with_include({"type": "web_search", **filters}, own)


def _code_interpreter(option: NativeOption, own: Mapping[str, JSONValue], scope: RequestScope) -> Mapping[str, Any]:
    return _with_include({"type": "code_interpreter", "container": {"type": "auto"}}, own)


def _with_include(tool: Mapping[str, JSONValue], own: Mapping[str, JSONValue]) -> Mapping[str, Any]:
    """Return the fields for a tool. The user's parameter "include" replaces the value of INCLUDED."""
    include = own.get("include", [INCLUDED[str(tool["type"])]])
    return {"tools": [{**tool, **without_fields(own, "include")}], "include": list_or_empty(include)}


def _mcp_tool(option: NativeOption, own: Mapping[str, JSONValue], scope: RequestScope) -> Mapping[str, Any]:
    """Declare an MCP server. At OpenAI, no call waits for an approval unless the user's parameters require it."""
    fields = {
        "allowed_tools": list(option.allowed_tools),
        "authorization": option.authorization,
        "headers": dict(option.headers),
    }
    sent = {name: content for name, content in fields.items() if content}
    approval = {APPROVAL: "never"} if is_openai(scope) else {}  # xAI has no such field
    server = {"type": "mcp", "server_label": option.name, "server_url": option.url, **sent, **approval, **own}
    return {"tools": [unknown_fields(server, ())]}


def _choose_mcp_server(option: NativeOption) -> JSONValue:
    return {"type": "mcp", "server_label": option.name}


def _choose_search(option: NativeOption) -> JSONValue:
    return {"type": "allowed_tools", "mode": "required", "tools": [{"type": "web_search"}]}


NATIVE: Mapping[str, NativeTool] = {
    "web_search": NativeTool(_web_search, frozenset({"domains"}), _choose_search),
    "code_execution": NativeTool(_code_interpreter, choice=lambda option: {"type": "code_interpreter"}),
    "mcp_server": NativeTool(_mcp_tool, MCP_FIELDS, _choose_mcp_server),
}
"""Kind of a native option → how OpenAI's API declares the tool."""


def _xai_search(option: NativeOption, own: Mapping[str, JSONValue], scope: RequestScope) -> Mapping[str, Any]:
    domains = {"allowed_domains": list(option.domains), "excluded_domains": list(option.blocked_domains)}
    return {"tools": [{"type": "web_search", **{name: content for name, content in domains.items() if content}, **own}]}


XAI_NATIVE: Mapping[str, NativeTool] = {
    "web_search": NativeTool(
        _xai_search, frozenset({"domains", "blocked_domains"}), lambda option: {"type": "web_search"}
    ),
    "code_execution": NativeTool(
        lambda option, own, scope: {"tools": [{"type": "code_interpreter", **own}]},
        choice=lambda option: {"type": "code_interpreter"},
    ),
    "mcp_server": NativeTool(_mcp_tool, MCP_FIELDS, _choose_mcp_server),
}
"""Kind of a native option → how xAI's API declares the tool. https://docs.x.ai/developers/tools/overview"""


def read_declaration(tool: Fields, include: JSONValue, provider: str) -> dict[str, Any] | None:
    """Return the fields of the NativeOption for a declaration in a stored request; None if no option can express it.

    `include` is the request's field, and `provider` the name under which further fields of the tool are stored.
    """
    kind = text_or_empty(tool.get("type"))
    fields: dict[str, Any] = {}
    own = without_fields(tool, "type")
    if kind == "web_search":
        fields = {"kind": kind, "name": kind}
        filters = object_or_empty(tool.get("filters"))
        if filters.keys() == {"allowed_domains"} and filters["allowed_domains"]:
            fields["domains"], own = filters["allowed_domains"], without_fields(own, "filters")
    elif kind == "code_interpreter":
        fields = {"kind": "code_execution", "name": "code_execution"}
        own = without_fields(own, "container") if tool.get("container") == {"type": "auto"} else own
    elif kind == "mcp" and tool.get("server_url"):
        fields = {"kind": "mcp_server", "name": tool.get("server_label"), "url": tool["server_url"]}
        fields |= {name: tool[name] for name in MCP_FIELDS if tool.get(name) and _has_only_texts(tool[name])}
        own = without_fields(own, "server_label", "server_url", *fields)
        own = without_fields(own, APPROVAL) if tool.get(APPROVAL) == "never" else {APPROVAL: None, **own}
    else:
        return None
    if kind in INCLUDED and INCLUDED[kind] not in list_or_empty(include):
        own["include"] = []
    return {**fields, "vendor": {provider: own} if own else None}


def _has_only_texts(content: JSONValue) -> bool:
    """Return whether a field of an MCP server is a text, a list of texts or an object of texts."""
    contents = content.values() if isinstance(content, dict) else content if isinstance(content, list) else [content]
    return all(isinstance(each, str) for each in contents)


def decode_native(block: Fields) -> list[NativeCallPart | NativeResultPart]:
    """Return the call that an item contains, and its result if the item has one. [] for any other item."""
    tool, read_call, read_result = READERS.get(text_or_empty(block.get("type")), ("", None, None))
    if read_call is None or read_result is None:
        return []
    outcome, item_id = read_result(block), text_or_empty(block.get("id"))
    pair: dict[str, Any] = {"pair_id": item_id} if outcome and item_id else {}
    parts: list[NativeCallPart | NativeResultPart] = [
        NativeCallPart(tool=tool, dialect=NAME, raw=block, **pair, **read_call(block))
    ]
    return [*parts, NativeResultPart(tool=tool, dialect=NAME, **pair, **outcome)] if pair else parts


def _search_call(block: Fields) -> dict[str, Any]:
    action = object_or_empty(block.get("action"))
    kind, pattern = text_or_empty(action.get("type")), text_or_empty(action.get("pattern"))
    queries = _strings(action.get("queries")) or _strings([action.get("query")]) or _strings([pattern])
    return {"queries": queries, "url": action.get("url") or None, "name": kind if kind not in ("", "search") else None}


def _search_result(block: Fields) -> dict[str, Any]:
    sources = (text_or_empty(each.get("url")) for each in _objects(object_or_empty(block.get("action")).get("sources")))
    return _filled(sources=tuple(NativeReference(url=url) for url in sources if url), error=_failure(block))


def _file_search_call(block: Fields) -> dict[str, Any]:
    return {"queries": _strings(block.get("queries"))}


def _file_search_result(block: Fields) -> dict[str, Any]:
    """Return the passages that a file search found, and its error."""
    sources = tuple(
        NativeReference(
            title=text_or_empty(each.get("filename")) or None,
            text=text_or_empty(each.get("text")) or None,
            file_id=text_or_empty(each.get("file_id")) or None,
        )
        for each in _objects(block.get("results"))
    )
    return _filled(sources=sources, error=_failure(block))


def _code_call(block: Fields) -> dict[str, Any]:
    return {"code": text_or_empty(block.get("code")) or None}


def _code_result(block: Fields) -> dict[str, Any]:
    outputs = list(_objects(block.get("outputs")))
    files = tuple(NativeReference(url=url) for each in outputs if (url := text_or_empty(each.get("url"))))
    logs = "".join(text_or_empty(each.get("logs")) for each in outputs)
    return _filled(output=logs, files=files, error=_failure(block))


def _mcp_call(block: Fields) -> dict[str, Any]:
    """Return the server, the tool and the arguments of a call. Arguments that are not a JSON object are left out."""
    fields: dict[str, Any] = {
        "server": text_or_empty(block.get("server_label")) or None,
        "name": text_or_empty(block.get("name")) or None,
    }
    try:
        arguments = decode_json(text_or_empty(block.get("arguments")))
    except ValueError:
        arguments = None
    return {**fields, "arguments": arguments} if isinstance(arguments, dict) else fields


def _mcp_result(block: Fields) -> dict[str, Any]:
    """Return the output of a call, or its error as text."""
    error = block.get("error")
    fields = object_or_empty(error)
    text = text_or_empty(fields.get("message")) or (encode_json(fields) if fields else text_or_empty(error))
    return _filled(output=text_or_empty(block.get("output")), error=text or _failure(block))


def _failure(block: Fields) -> str:
    return "the call failed" if block.get("status") == "failed" else ""


def _filled(**fields: Any) -> dict[str, Any]:
    return {name: content for name, content in fields.items() if content}


def _strings(texts: JSONValue) -> tuple[str, ...]:
    return tuple(text for text in list_or_empty(texts) if isinstance(text, str) and text)


def _objects(contents: JSONValue) -> Iterator[Fields]:
    return (unknown_fields(each, ()) for each in list_or_empty(contents) if isinstance(each, dict))


Read = Callable[[Fields], dict[str, Any]]
READERS: Mapping[str, tuple[str, Read, Read]] = {
    "web_search_call": ("web_search", _search_call, _search_result),
    "file_search_call": ("file_search", _file_search_call, _file_search_result),
    "code_interpreter_call": ("code_execution", _code_call, _code_result),
    "mcp_call": ("mcp_server", _mcp_call, _mcp_result),
}
"""Type of an item → sabir's name of the tool, and the functions that read the fields of the call and of the result."""
