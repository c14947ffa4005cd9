"""What version 2 of the plugin contract asks of sabir's own plugins."""

import json
from importlib.resources import files
from typing import Any

import pytest
import sabir
from sabir.authoring import Access, Row
from sabir.errors import ConnectionFailed, SettingsInvalid
from sabir_openai.embeddings import QUIRKS as EMBEDDING_QUIRKS
from sabir_testing.loopback import unreachable

STATUSES = [status for status in sabir.providers() if status.distribution.startswith("sabir-")]
PLUGINS = sorted({(status.name, status.distribution, status.dialects) for status in STATUSES})
URL_VARIABLES = [
    (f"{name}.{dialects[0]}", variable)
    for name, _, dialects in PLUGINS
    for variable in getattr(sabir.provider(name, dialects[0]), "url_variables", ())
]
KEYS: dict[str, Any] = {
    "bedrock": {"api_key": "k", "aws_region": "eu-west-1"},
    "vertex": {"region": "eu", "project_id": "p", "access_token": "t"},
}


@pytest.mark.parametrize(("name", "distribution", "dialects"), PLUGINS, ids=[f"{row[1]} {row[0]}" for row in PLUGINS])
def test_each_plugin_declares_its_quirks(name: str, distribution: str, dialects: tuple[str, ...]) -> None:
    """Those of the provider, and of all rows for its models."""
    for short_name in dialects:
        provider = sabir.provider(name, short_name)
        dialect = provider.dialect(short_name)
        quirks = {*provider.quirks(Access()), *getattr(provider, "elsewhere", ())}
        quirks |= {quirk for info in sabir.models(name, short_name) for quirk in info.quirks}

        assert provider.api_version == 2
        assert quirks <= dialect.quirks.keys()
        assert set(dialect.tables.variants) <= dialect.quirks.keys()


@pytest.mark.parametrize("package", ["sabir_openai", "sabir_anthropic"])
def test_each_rows_quirks_are_declared(package: str) -> None:
    dialect = sabir.provider("openai" if package == "sabir_openai" else "anthropic").dialect("chat")
    declared = {**dialect.quirks, **EMBEDDING_QUIRKS}
    rows = Row.load_all_packaged(package)
    names = {
        quirk for row in rows.values() for quirk in (*row.quirks, *(add for each in row.entries for add in each.adds))
    }

    assert len(rows) == sum(path.name.endswith(".toml") for path in files(package).joinpath("gateways").iterdir())
    assert names <= declared.keys()


@pytest.mark.parametrize(("name", "variable"), URL_VARIABLES)
def test_an_error_about_an_endpoint_names_its_variable(
    name: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "no-url.example")
    with pytest.raises(SettingsInvalid, match=rf"which is not an http\(s\) URL; check {variable}$"):
        sabir.adapter(f"{name}:m")
    with unreachable() as url:
        monkeypatch.setenv(variable, url)
        key = KEYS.get(name.partition(".")[0], "test")
        with sabir.adapter(f"{name}:m", api_key=key, settings=sabir.Settings(retries={"attempts": 1})) as llm:
            with pytest.raises(ConnectionFailed, match=f"check the network and {variable}"):
                llm.complete_sync("Hi")


@pytest.mark.parametrize("name", sorted({name.partition(".")[0] for name, _ in URL_VARIABLES}))
def test_an_error_about_a_base_url_names_the_argument(name: str) -> None:
    with pytest.raises(SettingsInvalid, match=r"which is not an http\(s\) URL; check base_url$"):
        dialect = next(dialects[0] for each, _, dialects in PLUGINS if each == name)
        sabir.adapter(f"{name}.{dialect}:m", base_url="no-url.example")


ARGUMENTS = {"zeta": 1, "alpha": {"y": 1, "b": [{"q": 1, "a": 2}]}, "mid": "x"}
TEXT = json.dumps(ARGUMENTS)
TOOL = {"name": "f", "description": "", "parameters": {"type": "object", "properties": {"zeta": {}}}}
CALLS: dict[str, dict[str, Any]] = {
    "anthropic.messages": {
        "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "f", "input": ARGUMENTS}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]},
        ],
        "tool_choice": {"type": "tool", "name": "f"},
        "system": "Be brief.",
        "tools": [{"name": "f", "input_schema": TOOL["parameters"]}],
        "max_tokens": 9,
        "model": "claude-sonnet-4-5",
    },
    "google.generate_content": {
        "contents": [
            {"role": "user", "parts": [{"text": "Hi"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": ARGUMENTS}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "ok"}}}]},
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "tools": [{"functionDeclarations": [TOOL]}],
    },
    "openai.chat": {
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant",
             "tool_calls": [{"type": "function", "id": "t1", "function": {"name": "f", "arguments": TEXT}}]},
            {"role": "tool", "tool_call_id": "t1", "content": "ok"},
        ],
        "tools": [{"type": "function", "function": TOOL}],
        "model": "gpt-4o",
    },
    "openai.responses": {
        "tool_choice": {"type": "function", "name": "f"},
        "input": [
            {"role": "user", "content": "Hi"},
            {"type": "function_call", "call_id": "t1", "name": "f", "arguments": TEXT},
            {"type": "function_call_output", "call_id": "t1", "output": "ok"},
        ],
        "instructions": "Be brief.",
        "tools": [{"type": "function", **TOOL}],
        "model": "gpt-4o",
    },
}  # fmt: skip
TARGETS = {
    "anthropic.messages": "anthropic:claude-sonnet-4-5", "google.generate_content": "google:gemini-2.5-pro",
    "openai.chat": "openai.chat:gpt-4o", "openai.responses": "openai:gpt-4o", "echo.plain": "echo:m",
}  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", CALLS)
def test_a_calls_arguments_keep_the_order_of_their_keys(source: str, target: str) -> None:
    """From a stored request to a request in any API."""
    history = sabir.dialect(source).decode_history(json.dumps(CALLS[source]).encode())
    (call,) = (message.call for message in history.messages if message.call)
    body = sabir.adapter(TARGETS[target]).render(history.messages, options=history.options).body_bytes
    sent = body.decode().replace('\\"', '"').replace(" ", "")

    assert json.dumps(dict(call.arguments)) == TEXT
    assert TEXT.replace(" ", "") in sent


@pytest.mark.parametrize("source", CALLS)
def test_the_order_of_a_requests_fields_decides_no_meaning(source: str) -> None:
    """The system text and the options are read first, wherever they are."""
    fields = CALLS[source]
    read = sabir.dialect(source).decode_history
    histories = [read(json.dumps(dict(each)).encode()) for each in (fields.items(), reversed(fields.items()))]

    for history in histories:
        assert [message.policy for message in history.messages][:2] == ["system", "user"]
        assert history.settings.option_choice == "f"


def test_fields_without_a_place_are_listed_in_the_requests_order() -> None:
    """So are two fields for one setting: the first of the request counts."""
    read = sabir.dialect("openai.chat").decode_history
    rest = {
        "zeta": 1,
        "response_format": {"type": "unknown"},
        "alpha": 2,
        "messages": [{"role": "user", "content": "a"}],
    }
    older = read(json.dumps({"max_tokens": 5, "max_completion_tokens": 7, **rest}).encode())
    newer = read(json.dumps({"max_completion_tokens": 7, "max_tokens": 5, **rest}).encode())

    assert list(older.settings.extra_body_for["openai.chat"]) == [
        "max_completion_tokens",
        "zeta",
        "response_format",
        "alpha",
    ]
    assert (older.settings.max_output_tokens, newer.settings.max_output_tokens) == (5, 7)
