"""Google's own tools: their declarations in a request, and the typed fields of their calls and results.

    NativeOption ──NATIVE──▶ `tools`
    executableCode, toolCall ──▶ NativeCallPart        codeExecutionResult, toolResponse ──▶ NativeResultPart
    groundingMetadata, urlContextMetadata ──▶ a call and a result without `raw`, before the other blocks

Older models report a search only in the metadata of the answer. Requests have no field for this, so these parts are not
sent back.

https://ai.google.dev/gemini-api/docs/tools
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sabir import NativeCallPart, NativeOption, NativeReference, NativeResultPart
from sabir.authoring import (
    Fields,
    JSONValue,
    NativeTool,
    RequestScope,
    encode_json,
    list_or_empty,
    object_or_empty,
    text_or_empty,
    without_fields,
)

from sabir_google.encode import generation

NAME = "google.generate_content"
CALLS = ("executableCode", "toolCall")
"""Fields of a part that contain a call of Google's own tools."""
RESULTS = ("codeExecutionResult", "toolResponse")
"""Fields of a part that contain the result of such a call."""
TOOLS: Mapping[str, str] = {
    "FILE_SEARCH": "file_search", "GOOGLE_SEARCH_IMAGE": "web_search", "GOOGLE_SEARCH_WEB": "web_search",
    "URL_CONTEXT": "web_fetch",
}  # fmt: skip
"""Google's `toolType` → sabir's name of the tool. For other tools, Google's name in lower case is used."""
OUTCOME_OK = "OUTCOME_OK"
SUGGESTIONS = "search_suggestions"
"""Field of a search's response with HTML for the user's page."""
TOGETHER = {"includeServerSideToolInvocations": True}
"""Field of `toolConfig` that a request with both functions and Google's own tools needs.
https://ai.google.dev/gemini-api/docs/tool-combination
"""


VERTEX = "vertex"
"""Quirk of a user's client for Vertex AI. Without this quirk, the service is the Gemini API."""


BEARER = "Bearer "


def _declare(scope: RequestScope, **tool: Any) -> Mapping[str, Any] | str:
    """Return the fields for a tool. Before Gemini 3, the API accepts its own tools only without functions."""
    if not scope.options or VERTEX in scope.quirks:  # Vertex AI has no field for the combination
        return {"tools": [tool]}
    model = scope.target.model
    if generation(model) in (1, 2):
        return f"{model} accepts its own tools only without functions, and functions are offered too"
    return {"tools": [tool], "toolConfig": TOGETHER}


def _google_search(option: NativeOption, own: Mapping[str, JSONValue], scope: RequestScope) -> Mapping[str, Any] | str:
    blocked = {"excludeDomains": list(option.blocked_domains)} if option.blocked_domains else {}
    return _declare(scope, googleSearch={**blocked, **own})


def _code_execution(option: NativeOption, own: Mapping[str, JSONValue], scope: RequestScope) -> Mapping[str, Any] | str:
    return _declare(scope, codeExecution={**own})


def _mcp_transport(option: NativeOption, own: Mapping[str, JSONValue], scope: RequestScope) -> Mapping[str, Any] | str:
    token = {"Authorization": f"{BEARER}{option.authorization}"} if option.authorization else {}
    headers = {**token, **option.headers}
    transport = {"url": option.url, **({"headers": headers} if headers else {}), **own}
    return _declare(scope, mcpServers=[{"name": option.name, "streamableHttpTransport": transport}])


NATIVE: Mapping[str, NativeTool] = {
    "web_search": NativeTool(_google_search),
    "code_execution": NativeTool(_code_execution),
    "mcp_server": NativeTool(_mcp_transport, frozenset({"authorization", "headers"})),
}
"""Kind of a native option → how the Gemini API declares the tool."""
VERTEX_NATIVE: Mapping[str, NativeTool] = {
    "web_search": NativeTool(_google_search, frozenset({"blocked_domains"})),
    "code_execution": NATIVE["code_execution"],
}
"""Kind of a native option → how Vertex AI declares the tool."""


def read_declarations(tool: Fields, provider: str) -> tuple[list[dict[str, Any]], Fields]:
    """Return the fields of a NativeOption for each of Google's tools in a stored declaration, and the other fields."""
    natives: list[dict[str, Any]] = []
    for wire, kind in (("googleSearch", "web_search"), ("codeExecution", "code_execution")):
        if isinstance(own := tool.get(wire), dict):
            natives.append({"kind": kind, "name": kind, "vendor": {provider: own} if own else None})
            tool = without_fields(tool, wire)
    servers = [_read_server(object_or_empty(each), provider) for each in list_or_empty(tool.get("mcpServers"))]
    if servers and all(servers):
        natives += filter(None, servers)
        tool = without_fields(tool, "mcpServers")
    return natives, tool


def _read_server(server: Fields, provider: str) -> dict[str, Any] | None:
    """Return the fields of a NativeOption for an MCP server; None if the server has other fields."""
    transport = object_or_empty(server.get("streamableHttpTransport"))
    if server.keys() != {"name", "streamableHttpTransport"} or not transport.get("url"):
        return None
    headers, own = object_or_empty(transport.get("headers")), without_fields(transport, "url", "headers")
    token = text_or_empty(headers.get("Authorization"))
    secrets: dict[str, Any] = {"headers": headers} if headers else {}
    if token.startswith(BEARER):
        others = without_fields(headers, "Authorization")
        secrets = {"authorization": token.removeprefix(BEARER), **({"headers": others} if others else {})}
    fields = {"kind": "mcp_server", "name": server["name"], "url": transport["url"], **secrets}
    return {**fields, "vendor": {provider: own} if own else None}


def decode_native(part: Fields) -> NativeCallPart | NativeResultPart | None:
    """Return the part for a call of Google's own tools, or for its result; None for any other part."""
    name = next((name for name in (*CALLS, *RESULTS) if name in part), "")
    fields = object_or_empty(part.get(name)) if name else {}
    if not fields:
        return None
    kind = text_or_empty(fields.get("toolType"))
    tool = TOOLS.get(kind, kind.lower() or "tool") if name in ("toolCall", "toolResponse") else "code_execution"
    shared: dict[str, Any] = {"tool": tool, "dialect": NAME, "raw": part}
    shared["pair_id"] = text_or_empty(fields.get("id")) or None
    if name in CALLS:
        code = text_or_empty(fields.get("code"))
        return NativeCallPart(**shared, **({"code": code} if code else _call_arguments(fields.get("args"))))
    if name == "toolResponse":
        response = without_fields(object_or_empty(fields.get("response")), SUGGESTIONS)
        return NativeResultPart(**shared, output=encode_json(response) if response else None)
    output, outcome = text_or_empty(fields.get("output")) or None, text_or_empty(fields.get("outcome"))
    failed = {"error": output or outcome} if outcome not in ("", OUTCOME_OK) else {"output": output}
    return NativeResultPart(**shared, **failed)


def _call_arguments(arguments: JSONValue) -> dict[str, Any]:
    fields = object_or_empty(arguments)
    queries = tuple(query for query in list_or_empty(fields.get("queries")) if isinstance(query, str))
    return {"queries": queries} if queries else {"arguments": fields} if fields else {}


def read_metadata(candidate: Fields, blocks: Sequence[object]) -> list[NativeCallPart | NativeResultPart]:
    """Return the calls and results that only the metadata of a candidate reports: pages that Google read, and a search.

    A search that is among the blocks is not returned again.
    """
    pages = list_or_empty(object_or_empty(candidate.get("urlContextMetadata")).get("urlMetadata"))
    urls = [url for page in pages if (url := text_or_empty(object_or_empty(page).get("retrievedUrl")))]
    parts = _pair("web_fetch", {"arguments": {"urls": urls}}, tuple(NativeReference(url=url) for url in urls))
    if any(isinstance(block, NativeCallPart) and block.tool in ("web_search", "file_search") for block in blocks):
        return parts
    grounding = object_or_empty(candidate.get("groundingMetadata"))
    queries = tuple(query for query in list_or_empty(grounding.get("webSearchQueries")) if isinstance(query, str))
    sources = read_sources(candidate)
    if urls and not queries:
        return parts
    chunks = map(object_or_empty, list_or_empty(grounding.get("groundingChunks")))
    is_web = bool(queries) or not any("retrievedContext" in chunk for chunk in chunks)
    return [*parts, *_pair("web_search" if is_web else "file_search", {"queries": queries}, sources)]


def _pair(
    tool: str, call: dict[str, Any], sources: tuple[NativeReference, ...]
) -> list[NativeCallPart | NativeResultPart]:
    """Return a call and its result that only the metadata reports; [] without queries and sources."""
    if not sources and not any(call.get("queries", ())):
        return []
    shared: dict[str, Any] = {"tool": tool, "dialect": NAME, "pair_id": f"{tool}_of_the_answer"}
    return [NativeCallPart(**shared, **call), NativeResultPart(**shared, sources=sources)]


def read_sources(candidate: Fields) -> tuple[NativeReference, ...]:
    """Return the pages and passages of files that a candidate's answer is based on."""
    chunks = map(
        object_or_empty, list_or_empty(object_or_empty(candidate.get("groundingMetadata")).get("groundingChunks"))
    )
    pages = (object_or_empty(next(filter(None, chunk.values()), None)) for chunk in chunks)
    texts = ([text_or_empty(each.get(name)) or None for name in ("uri", "title", "text")] for each in pages)
    return tuple(NativeReference(url=url, title=title, text=text) for url, title, text in texts if url or title or text)


def add_sources(blocks: Sequence[Any], candidate: Fields) -> list[Any]:
    """Return the blocks of a candidate, with the sources of its metadata added to the result of its last search."""
    sources = read_sources(candidate)
    searches = [at for at, block in enumerate(blocks) if isinstance(block, NativeResultPart) and is_search(block)]
    if not sources or not searches:
        return list(blocks)
    last = searches[-1]
    return [*blocks[:last], blocks[last].model_copy(update={"sources": sources}), *blocks[last + 1 :]]


def is_search(block: object) -> bool:
    """Return whether a block is the result of a search, whose sources only the metadata contains."""
    return isinstance(block, NativeResultPart) and block.tool in ("web_search", "file_search")
