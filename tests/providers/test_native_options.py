"""Native options at each vendor: the declared tool, checked by the SDK's own types, and what a stored request gives."""

import json
from typing import Any

import pytest
import sabir

from tests.laws.oracle import check_request

SEARCH = sabir.web_search(domains=["a.org"], max_uses=3)
CODE = sabir.code_execution()
SERVER = sabir.mcp_server("https://mcp.example.org/sse", authorization="token-7c41", allowed_tools=["ask"])
MCP = "mcp_example_org"
CLAUDE, GEMINI, CHAT, RESPONSES = "anthropic.messages", "google.generate_content", "openai.chat", "openai.responses"
TOGETHER = {"includeServerSideToolInvocations": True}


@sabir.option
def search(query: str) -> str:
    """Search."""
    return query


def render(name: str, *options: Any, model: str, **settings: Any) -> sabir.Rendering:
    return sabir.dialect(name).render(
        [sabir.user("?")], model=model, options=options, settings=sabir.Settings(max_output_tokens=100, **settings)
    )


WIRES: list[tuple[str, str, Any, Any, list[str]]] = [
    (CLAUDE, "claude-sonnet-5", SEARCH, {"tools": [
        {"type": "web_search_20250305", "name": "web_search", "allowed_domains": ["a.org"], "max_uses": 3}]}, []),
    (CLAUDE, "claude-sonnet-5", CODE, {"tools": [{"type": "code_execution_20250825", "name": "code_execution"}]}, []),
    (CLAUDE, "claude-sonnet-5", SERVER, {
        "mcp_servers": [{"type": "url", "name": MCP, "url": SERVER.url, "authorization_token": "token-7c41"}],
        "tools": [{"type": "mcp_toolset", "mcp_server_name": MCP, "default_config": {"enabled": False},
                   "configs": {"ask": {"enabled": True}}}]}, []),
    (RESPONSES, "gpt-5.4", SEARCH, {
        "tools": [{"type": "web_search", "filters": {"allowed_domains": ["a.org"]}}],
        "include": ["reasoning.encrypted_content", "web_search_call.action.sources"]}, ["options[0].max_uses"]),
    (RESPONSES, "gpt-5.4", CODE, {
        "tools": [{"type": "code_interpreter", "container": {"type": "auto"}}],
        "include": ["reasoning.encrypted_content", "code_interpreter_call.outputs"]}, []),
    (RESPONSES, "gpt-5.4", SERVER, {"tools": [
        {"type": "mcp", "server_label": MCP, "server_url": SERVER.url, "allowed_tools": ["ask"],
         "authorization": "token-7c41", "require_approval": "never"}]}, []),
    (GEMINI, "gemini-3-flash", SEARCH, {"tools": [{"googleSearch": {}}]},
     ["options[0].domains", "options[0].max_uses"]),
    (GEMINI, "gemini-3-flash", CODE, {"tools": [{"codeExecution": {}}]}, []),
    (GEMINI, "gemini-3-flash", SERVER, {"tools": [{"mcpServers": [
        {"name": MCP, "streamableHttpTransport": {
            "url": SERVER.url, "headers": {"Authorization": "Bearer token-7c41"}}}]}]}, ["options[0].allowed_tools"]),
    *((CHAT, "gpt-4o", option, {}, ["options[0]"]) for option in (SEARCH, CODE, SERVER)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "model", "option", "fields", "lost"), WIRES)
def test_each_vendors_own_tool_is_declared(name: str, model: str, option: Any, fields: Any, lost: list[str]) -> None:
    rendering = render(name, option, model=model)

    assert {field: rendering.body[field] for field in fields} == fields
    assert [loss.path for loss in rendering.losses if loss.path.startswith("options")] == lost
    check_request(name, rendering.body_bytes)


@pytest.mark.parametrize(("name", "model", "option", "fields", "lost"), [row for row in WIRES if row[0] != CHAT])
def test_a_stored_declaration_is_the_option_again(
    name: str, model: str, option: Any, fields: Any, lost: list[str]
) -> None:
    body = render(name, option, model=model).body_bytes
    history = sabir.dialect(name).decode_history(json.loads(body))
    again = sabir.dialect(name).render(
        history.messages, model=model, options=history.options, settings=history.settings
    )

    assert [each.name for each in history.options] == [option.name]
    assert json.loads(again.body_bytes) == json.loads(body)
    assert "token-7c41" not in repr(history)


def test_a_request_with_an_mcp_server_has_anthropics_beta_too() -> None:
    rendering = render(CLAUDE, SERVER, model="claude-sonnet-5", vendor={"anthropic": {"betas": ["mine-2026"]}})

    assert rendering.headers["anthropic-beta"] == "mine-2026,mcp-client-2025-11-20"


def test_before_gemini_3_a_tool_of_google_and_functions_exclude_each_other() -> None:
    older, newer = (render(GEMINI, search, CODE, model=model) for model in ("gemini-2.5-flash", "gemini-3-flash"))

    assert [loss.path for loss in older.losses] == ["options[1]"]
    assert (newer.losses, newer.body["toolConfig"]) == ((), TOGETHER)


@pytest.mark.parametrize(
    ("name", "model", "choice"),
    [
        (CLAUDE, "claude-sonnet-4-5", {"tool_choice": {"type": "tool", "name": "code_execution"}}),
        (RESPONSES, "gpt-5.4", {"tool_choice": {"type": "code_interpreter"}}),
        (GEMINI, "gemini-3-flash", {}),
    ],
)
def test_a_tool_can_be_required_where_the_vendor_allows_it(name: str, model: str, choice: Any) -> None:
    rendering = render(name, CODE, model=model, option_choice="code_execution")

    assert {field: rendering.body[field] for field in choice} == choice
    assert ("settings.option_choice" in [loss.path for loss in rendering.losses]) is not bool(choice)


GATEWAYS: list[tuple[str, str, Any]] = [
    ("xai.responses", "grok-4.3", {"tools": [{"type": "web_search", "allowed_domains": ["a.org"]}]}),
    ("openrouter.chat", "openai/gpt-4o", {"tools": [
        {"type": "openrouter:web_search", "parameters": {"allowed_domains": ["a.org"], "max_uses": 3}}]}),
    ("openrouter.responses", "openai/gpt-4o", {"tools": [
        {"type": "openrouter:web_search", "parameters": {"allowed_domains": ["a.org"], "max_uses": 3}}]}),
    ("groq.chat", "groq/compound", {
        "compound_custom": {"tools": {"enabled_tools": ["web_search"]}},
        "search_settings": {"include_domains": ["a.org"]}}),
    ("groq.chat", "openai/gpt-oss-120b", {"tools": [{"type": "browser_search"}]}),
]  # fmt: skip


@pytest.mark.parametrize(("wire", "model", "fields"), GATEWAYS)
def test_a_gateways_own_search_is_declared_in_its_form(wire: str, model: str, fields: Any) -> None:
    rendering = sabir.adapter(f"{wire}:{model}", api_key="k").render(sabir.user("?"), options=[SEARCH])

    assert {field: rendering.body[field] for field in fields} == fields


@pytest.mark.parametrize("wire", ["deepseek:deepseek-chat", "groq.chat:llama-3.3-70b-versatile", "mistral:m"])
def test_a_gateway_without_a_search_gets_the_function_given_for_it(wire: str) -> None:
    rendering = sabir.adapter(wire, api_key="k").render(sabir.user("?"), options=[sabir.web_search(otherwise=search)])

    assert "search" in str(rendering.body["tools"]) and "web_search" not in str(rendering.body["tools"])
