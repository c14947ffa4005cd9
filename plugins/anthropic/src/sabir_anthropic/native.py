"""The vendor's own tools: their declarations in a request, and the typed fields of their calls and results.

    NativeOption ──NATIVE──▶ `tools`, `mcp_servers`
    server_tool_use, mcp_tool_use ──▶ NativeCallPart        …_tool_result ──▶ NativeResultPart

A call and its result are two blocks with one id. Blocks of the tool search, which only loads declarations, stay opaque.

https://platform.claude.com/docs/en/agents-and-tools/tool-use/server-tools
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
    list_or_empty,
    object_or_empty,
    text_or_empty,
    without_fields,
)

NAME = "anthropic.messages"
WEB_SEARCH, CODE_EXECUTION = "web_search_20250305", "code_execution_20250825"
"""The versions of the tools that all current models accept. `vendor={"anthropic": {"type": …}}` replaces them."""
MCP_BETA = "mcp-client-2025-11-20"
"""The beta that a request with MCP servers needs. https://platform.claude.com/docs/en/agents-and-tools/mcp-connector"""
BETAS = "anthropic-beta"
"""The header with the names of betas."""
SERVER_CALL_TYPES = frozenset({"server_tool_use", "mcp_tool_use"})
"""Types of blocks with calls that the vendor's server answers itself."""
RESULT_SUFFIX = "_tool_result"
"""Suffix of the types of blocks that contain the results of calls in SERVER_CALL_TYPES."""
TOOLS: Mapping[str, str] = {
    "bash_code_execution": "code_execution", "text_editor_code_execution": "code_execution",
    **{name: name for name in ("advisor", "code_execution", "web_fetch", "web_search")}, "mcp": "mcp_server",
}  # fmt: skip
"""The vendor's name of a tool → sabir's name. The name is in a call's `name`, and before RESULT_SUFFIX in the type of
its result. Blocks of other tools are opaque.
"""


def _web_search(option: NativeOption, own: Mapping[str, JSONValue], scope: RequestScope) -> Mapping[str, Any]:
    fields = {
        "allowed_domains": list(option.domains),
        "blocked_domains": list(option.blocked_domains),
        "max_uses": option.max_uses,
    }
    sent = {name: content for name, content in fields.items() if content}
    return {"tools": [{"type": WEB_SEARCH, "name": "web_search", **sent, **own}]}


def _code_execution(option: NativeOption, own: Mapping[str, JSONValue], scope: RequestScope) -> Mapping[str, Any]:
    return {"tools": [{"type": CODE_EXECUTION, "name": "code_execution", **own}]}


def _toolset(option: NativeOption, own: Mapping[str, JSONValue], scope: RequestScope) -> Mapping[str, Any]:
    """Return the server and its toolset. The user's parameters are fields of the toolset."""
    scope.headers[BETAS] = MCP_BETA
    token = {"authorization_token": option.authorization} if option.authorization else {}
    toolset: dict[str, Any] = {"type": "mcp_toolset", "mcp_server_name": option.name}
    if option.allowed_tools:
        toolset["default_config"] = {"enabled": False}
        toolset["configs"] = {name: {"enabled": True} for name in option.allowed_tools}
    return {
        "mcp_servers": [{"type": "url", "name": option.name, "url": option.url, **token}],
        "tools": [{**toolset, **own}],
    }


def _choose(option: NativeOption) -> JSONValue:
    return {"type": "tool", "name": option.kind}


NATIVE: Mapping[str, NativeTool] = {
    "web_search": NativeTool(_web_search, frozenset({"domains", "blocked_domains", "max_uses"}), _choose),
    "code_execution": NativeTool(_code_execution, choice=_choose),
    "mcp_server": NativeTool(_toolset, frozenset({"allowed_tools", "authorization"})),
}
"""Kind of a native option → how the API declares the tool. The API cannot require a call of an MCP server."""


def read_declaration(tool: Fields, servers: Mapping[str, Fields], provider: str) -> dict[str, Any] | None:
    """Return the fields of the NativeOption for a declaration in a stored request; None if no option can express it.

    `servers` are the request's MCP servers by name. `provider` is the name under which further fields are stored.
    """
    kind, name = text_or_empty(tool.get("type")), text_or_empty(tool.get("name"))
    fields: dict[str, Any]
    if kind.startswith("web_search_") and name == "web_search":
        known = {"domains": tool.get("allowed_domains"), "blocked_domains": tool.get("blocked_domains")}
        fields = {
            "name": name,
            "max_uses": tool.get("max_uses"),
            **{key: content or () for key, content in known.items()},
        }
        own = without_fields(tool, "name", *(key for key in _SEARCH_FIELDS if tool.get(key)))
        own = without_fields(own, "type") if kind == WEB_SEARCH else own
    elif kind.startswith("code_execution_") and name == "code_execution":
        fields, own = {"name": name}, without_fields(tool, "name", *(("type",) if kind == CODE_EXECUTION else ()))
    else:
        return _read_toolset(tool, servers, provider)
    return {"kind": name, **fields, "vendor": {provider: own} if own else None}


_SEARCH_FIELDS = ("allowed_domains", "blocked_domains", "max_uses")


def _read_toolset(tool: Fields, servers: Mapping[str, Fields], provider: str) -> dict[str, Any] | None:
    """Return the fields of a NativeOption for an MCP toolset and its server; None if an option cannot express them."""
    server = servers.get(text_or_empty(tool.get("mcp_server_name"))) if tool.get("type") == "mcp_toolset" else None
    if server is None or server.keys() - {"type", "name", "url", "authorization_token"} or server.get("type") != "url":
        return None
    own, allowed = without_fields(tool, "type", "mcp_server_name"), tuple[str, ...]()
    configs = object_or_empty(tool.get("configs"))
    is_list = all(config == {"enabled": True} for config in configs.values())
    if configs and is_list and tool.get("default_config") == {"enabled": False}:
        own, allowed = without_fields(own, "default_config", "configs"), tuple(configs)
    token = server.get("authorization_token")
    fields = {"kind": "mcp_server", "name": server.get("name"), "url": server.get("url"), "allowed_tools": allowed}
    return {**fields, **({"authorization": token} if token else {}), "vendor": {provider: own} if own else None}


def native_tool(block: Fields) -> str:
    """Return sabir's name of the tool whose call or result a block is; "" for any other block."""
    kind = text_or_empty(block.get("type"))
    if kind in SERVER_CALL_TYPES:
        return TOOLS.get("mcp" if kind == "mcp_tool_use" else text_or_empty(block.get("name")), "")
    return TOOLS.get(kind.removesuffix(RESULT_SUFFIX), "") if kind.endswith(RESULT_SUFFIX) else ""


def decode_native(block: Fields, scope: DecodeScope) -> NativeCallPart | NativeResultPart | None:
    """Return the part for a call of the vendor's own tool, or for its result; None for any other block."""
    tool = native_tool(block)
    if not tool:
        return None
    is_call = block.get("type") in SERVER_CALL_TYPES
    pair_id = text_or_empty(block.get("id" if is_call else "tool_use_id")) or None
    shared: dict[str, Any] = {"tool": tool, "pair_id": pair_id, "dialect": NAME, "raw": block}
    if is_call:
        return NativeCallPart(**shared, **_call_fields(block, tool))
    outcome = NativeResultPart(**shared, **_read_result(block.get("content"), tool))
    if tool == "mcp_server" and block.get("is_error"):
        return outcome.model_copy(update={"output": None, "error": outcome.output or "error"})
    return outcome


def _call_fields(block: Fields, tool: str) -> dict[str, Any]:
    """Return the typed fields of a call. Arguments that the fields contain are not repeated as `arguments`."""
    arguments = object_or_empty(block.get("input"))
    query, name = text_or_empty(arguments.get("query")), text_or_empty(block.get("name"))
    code = text_or_empty(arguments.get("command" if name == "bash_code_execution" else "code"))
    fields = {
        "queries": (query,) if query else (),
        "url": text_or_empty(arguments.get("url")),
        "code": code if tool == "code_execution" and name != "text_editor_code_execution" else "",
        "name": name if name != tool else "",
        "server": text_or_empty(block.get("server_name")),
    }
    typed = {name: content for name, content in fields.items() if content}
    return typed if not arguments or typed.keys() & {"queries", "url", "code"} else {**typed, "arguments": arguments}


def _read_result(content: JSONValue, tool: str) -> dict[str, Any]:
    """Return the typed fields of a result's content: pages, the output of code, texts, or an error."""
    fields = object_or_empty(content)
    if code := text_or_empty(fields.get("error_code")):
        return {"error": ": ".join(filter(None, (code, text_or_empty(fields.get("error_message")))))}
    if tool == "web_search":
        return {"sources": tuple(_reference(each) for each in _objects(content))}
    if tool == "web_fetch":
        document = object_or_empty(fields.get("content"))
        source = object_or_empty(document.get("source"))
        text = text_or_empty(source.get("data")) if source.get("type") == "text" else ""
        return {"sources": (_reference({**document, "url": fields.get("url")}, text),)} if fields else {}
    if tool == "code_execution":
        return _read_execution(fields)
    texts = [content] if isinstance(content, str) else [text_or_empty(each.get("text")) for each in _objects(content)]
    return {"output": "\n".join(texts) or text_or_empty(fields.get("text")) or None}


def _read_execution(fields: Fields) -> dict[str, Any]:
    """Return the output, the error and the files of code, or the text of a file that the model read or changed."""
    if fields.get("type") in ("bash_code_execution_result", "code_execution_result", "encrypted_code_execution_result"):
        error = text_or_empty(fields.get("stderr"))
        failed = fields.get("return_code") not in (0, None)
        created = (text_or_empty(each.get("file_id")) for each in _objects(fields.get("content")))
        files = tuple(NativeReference(file_id=file_id) for file_id in created if file_id)
        output = text_or_empty(fields.get("stdout"))
        if error and not failed:
            output, error = f"{output}{error}", ""
        elif failed and not error:
            error = f"exit code {fields.get('return_code')}"
        return {"output": output or None, "error": error or None, "files": files}
    lines = [text_or_empty(line) for line in list_or_empty(fields.get("lines"))]
    text = text_or_empty(fields.get("content")) or "\n".join(lines)
    if not text and "is_file_update" in fields:
        text = "the file was changed" if fields["is_file_update"] else "the file was created"
    return {"output": text or None}


def _reference(fields: Fields, text: str = "") -> NativeReference:
    url, title = text_or_empty(fields.get("url")), text_or_empty(fields.get("title"))
    return NativeReference(url=url or None, title=title or None, text=text or None)


def _objects(content: JSONValue) -> Iterator[Fields]:
    return (each for each in list_or_empty(content) if isinstance(each, dict))
