"""Law 13: extra fields, headers and vendor tools go to their owner alone; elsewhere each is a loss."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
import sabir
from sabir.errors import RenderingRefused, SettingsInvalid

MODELS = {
    "anthropic.messages": "anthropic:claude-sonnet-4-5",
    "google.generate_content": "google:gemini-2.5-flash",
    "openai.chat": "openai.chat:gpt-4.1",
    "openai.responses": "openai.responses:gpt-5",
    "echo.plain": "echo:small",
}
REQUESTS: dict[str, dict[str, Any]] = {
    "anthropic.messages": {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9},
    "google.generate_content": {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
    "openai.chat": {"messages": [{"role": "user", "content": "Hi"}]},
    "openai.responses": {"input": "Hi"},
    "echo.plain": {"model": "small", "options": [], "settings": {}, "messages": [{"from": "user", "text": "Hi"}]},
}
BASH = {"type": "bash_20250124", "name": "bash"}
GRAMMAR = {"type": "custom", "custom": {"name": "sql"}}
FREE = {"type": "custom", "name": "sql"}
TOOLS: list[tuple[str, dict[str, Any], str]] = [
    ("anthropic.messages", {"tools": [BASH], "tool_choice": {"type": "tool", "name": "bash"}}, "option_choice"),
    ("google.generate_content", {"tools": [{"googleMaps": {}}]}, ""),
    ("openai.chat", {"tools": [GRAMMAR], "tool_choice": {"type": "custom", "custom": {"name": "sql"}}},
     "option_choice"),
    ("openai.responses", {"tools": [FREE], "tool_choice": {"type": "custom", "name": "sql"}}, "option_choice"),
    ("openai.responses", {"tools": [{"type": "image_generation"}], "tool_choice": {"type": "image_generation"}},
     "vendor.openai.tool_choice"),
]  # fmt: skip


def render(name: str, settings: sabir.Settings, **how: Any) -> sabir.Rendering:
    limit = sabir.Settings(max_output_tokens=9) if name == "anthropic.messages" else sabir.Settings()
    return sabir.adapter(MODELS[name]).render("Hi", settings=settings.laid_over(limit), **how)


def dropped(rendering: sabir.Rendering) -> set[str]:
    return {loss.path for loss in rendering.losses if loss.kind == "dropped"}


@pytest.mark.parametrize("there", MODELS)
@pytest.mark.parametrize("here", MODELS)
def test_an_unknown_field_goes_back_to_its_own_dialect_alone(here: str, there: str) -> None:
    settings = sabir.dialect(here).decode_history({**REQUESTS[here], "of2030": {"a": 1}}).settings
    rendering = render(there, settings)

    assert ("of2030" in json.loads(rendering.body_bytes)) is (here == there) is bool(rendering.unchecked)
    assert ("extra_body.of2030" in dropped(rendering)) is (here != there)


@pytest.mark.parametrize("there", MODELS)
@pytest.mark.parametrize(("here", "fields", "choice"), TOOLS, ids=str)
def test_a_vendor_tool_and_its_choice_are_losses_elsewhere(
    here: str, fields: dict[str, Any], choice: str, there: str
) -> None:
    settings = sabir.dialect(here).decode_history({**REQUESTS[here], **fields}).settings
    expected = {f"settings.{path}" for path in (f"vendor.{here.partition('.')[0]}.tools[0]", choice) if path[-1:]}

    if here == there:
        assert render(there, settings, strict={"dropped"}).body["tools"] == fields["tools"]
        return
    assert dropped(render(there, settings)) == expected
    with pytest.raises(RenderingRefused):
        render(there, settings, strict={"dropped"})


def test_a_section_with_own_tools_is_the_counterpart_of_others() -> None:
    settings = sabir.Settings(vendor={"openai": {"tools": [{"type": "web_search"}]}, "anthropic": {"tools": [BASH]}})
    others = sabir.Settings(vendor={"openai": {"tools": [{"type": "web_search"}]}, "anthropic": {"top_k": 4}})

    assert dropped(render("anthropic.messages", settings)) == set()
    assert "settings.vendor.openai.tools[0]" in dropped(render("anthropic.messages", others))


def test_a_choice_that_nobody_has_is_refused() -> None:
    settings = sabir.Settings(option_choice="bsah", vendor={"anthropic": {"tools": [BASH]}})

    with pytest.raises(SettingsInvalid, match="bsah"):
        render("openai.chat", settings)


@pytest.mark.parametrize(
    ("vendor", "lost"),
    [
        ({"tools": [{"type": "web_search"}]}, ["tools[0]"]),
        ({"tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}}, ["tools[0]", "tool_choice"]),
        ({"truncation": "auto", "reasoning": {"summary": "auto"}, "n": 2}, ["truncation", "reasoning"]),
        ({"tool_choice": {"type": "function", "name": "f"}}, ["tool_choice"]),
    ],
    ids=str,
)
def test_the_other_dialect_of_a_vendor_reports_what_it_does_not_have(
    vendor: dict[str, Any], lost: Sequence[str]
) -> None:
    option = sabir.Option.from_schema("f", "F.", {"type": "object"}) if "tools" not in vendor else None
    rendering = render("openai.chat", sabir.Settings(vendor={"openai": vendor}), options=[option] if option else [])

    assert dropped(rendering) == {f"settings.vendor.openai.{path}" for path in lost}
    assert rendering.body.get("n") == vendor.get("n")
    assert not {"truncation", "reasoning", "tool_choice"} & rendering.body.keys()


SENT = sabir.Settings(extra_body={"trace": "a1"}, extra_headers={"x-key": "sesame"})
LOST = {"extra_body.trace", "extra_headers.x-key"}


@pytest.mark.parametrize("given", ["fallback", "call"])
def test_fields_without_an_owner_go_to_the_first_member_alone(given: str) -> None:
    first, second, third = "openai.chat:gpt-4.1", "echo:small", "openai.chat:gpt-4.1"
    if given == "fallback":
        llm = sabir.fallback(first, second, third, settings=SENT)
        renderings = [member.render("Hi") for member in llm.members]
    else:
        seen: list[sabir.Rendering] = []
        members = [Seen(name, seen) for name in (first, second, third)]
        inner = sabir.fallback(*members[:2], fallback_on={RenderingRefused})
        with pytest.raises(RenderingRefused):
            sabir.fallback(inner, members[2]).render("Hi", settings=SENT)
        renderings = seen

    assert [("trace" in each.body, "x-key" in each.headers) for each in renderings] == [
        (True, True), (False, False), (False, False),
    ]  # fmt: skip
    assert [dropped(each) for each in renderings] == [set(), LOST, LOST]
    assert "sesame" not in str([each.losses for each in renderings])


class Seen:
    """An adapter that keeps its renderings and refuses them all."""

    def __init__(self, name: str, seen: list[sabir.Rendering]) -> None:
        self._adapter, self._seen = sabir.adapter(name), seen

    def render(self, *args: Any, **how: Any) -> sabir.Rendering:
        self._seen.append(self._adapter.render(*args, **how))
        raise RenderingRefused("not today", ())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._adapter, name)


@pytest.mark.parametrize(
    ("owner", "is_sent"),
    [("openai", True), ("openai.chat", True), ("openai:gpt-4.1", True), ("openai.chat:gpt-4.1", True), ("*", True),
     ("openai.responses", False), ("openai:gpt-5", False), ("echo", False), ("groq.chat", False)],
)  # fmt: skip
def test_a_key_names_a_target_as_an_adapter_is_named(owner: str, is_sent: bool) -> None:
    settings = sabir.Settings(extra_body_for={owner: {"trace": 1}}, extra_headers_for={owner: {"x-team": "sky"}})
    rendering = render("openai.chat", settings)

    assert ("trace" in rendering.body, "x-team" in rendering.headers) == (is_sent, is_sent)
    assert dropped(rendering) == (set() if is_sent else {"extra_body.trace", "extra_headers.x-team"})


def test_fields_for_each_target_lose_nothing() -> None:
    settings = sabir.Settings(extra_body_for={"openai": {"a": 1}, "echo": {}})

    assert [render(name, settings).losses for name in ("openai.chat", "echo.plain")] == [(), ()]


NESTED: list[tuple[str, sabir.Settings, str, dict[str, Any], set[str]]] = [
    ("google.generate_content", sabir.Settings(temperature=0.5, seed=1), "generationConfig",
     {"seed": 2, "of2030": 1}, {"extra_body.generationConfig.seed"}),
    ("openai.responses", sabir.Settings(reasoning_effort="low"), "reasoning", {"summary": "auto"}, set()),
    ("openai.responses", sabir.Settings(response_format={"type": "object", "properties": {}}), "text",
     {"verbosity": "low"}, set()),
    ("anthropic.messages", sabir.Settings(response_format={"type": "object", "properties": {}}), "output_config",
     {"effort": "low"}, set()),
]  # fmt: skip


@pytest.mark.parametrize(("name", "settings", "field", "extra", "lost"), NESTED, ids=str)
def test_a_nested_extra_field_joins_the_rendered_object(
    name: str, settings: sabir.Settings, field: str, extra: dict[str, Any], lost: set[str]
) -> None:
    without = render(name, settings).body[field]
    rendering = render(name, sabir.Settings(extra_body={field: extra}).laid_over(settings))

    assert rendering.body[field] == {**without, **extra}
    assert {path for path in dropped(rendering) if path.startswith("extra_body")} == lost


def test_entries_by_owner_are_mappings_that_settings_laid_over_others_keep() -> None:
    """Settings that were stored before there were owners have none."""
    upper, lower = (sabir.Settings(extra_body_for={name: {"a": 1}}) for name in ("openai", "echo"))
    stored = SENT.model_dump(mode="json", exclude={"extra_body_for", "extra_headers_for"})

    assert upper.laid_over(lower).extra_body_for.keys() == {"openai", "echo"}
    assert sabir.Settings.model_validate(stored) == SENT
    for field in ("extra_body_for", "extra_headers_for"):
        with pytest.raises(SettingsInvalid, match=rf"{field}\['openai'\] must be a mapping"):
            sabir.Settings(**{field: {"openai": 1}})


@pytest.mark.parametrize("words", ["hi", "Answer in JSON."])
def test_any_json_object_has_its_own_type_or_is_a_loss(words: str) -> None:
    """OpenAI refuses the type unless a message mentions JSON; then the schema of any object has the same meaning."""
    stored = {"messages": [{"role": "user", "content": words}], "response_format": {"type": "json_object"}}
    history = sabir.dialect("openai.chat").decode_history(stored)
    by_name = {name: sabir.adapter(MODELS[name]).render(words, settings=history.settings) for name in MODELS}
    schema = {"type": "json_schema", "name": "json_object", "schema": {"type": "object"}, "strict": False}
    by_type = {"type": "json_object"}
    inner = {name: value for name, value in schema.items() if name != "type"}

    is_mentioned = "JSON" in words
    chat, responses = by_name["openai.chat"].body, by_name["openai.responses"].body
    assert chat["response_format"] == (by_type if is_mentioned else {"type": "json_schema", "json_schema": inner})
    assert responses["text"] == {"format": by_type if is_mentioned else schema}
    assert by_name["google.generate_content"].body["generationConfig"] == {"responseMimeType": "application/json"}
    assert "settings.response_format" in dropped(by_name["anthropic.messages"])
    for name in ("openai.chat", "openai.responses", "google.generate_content"):
        assert by_name[name].losses == ()


UNREADABLE = '{"city": "Ro'
KEEPS = {"openai.chat", "openai.responses"}
WIRES = {
    **{name: model for name, model in MODELS.items() if name != "echo.plain"},
    "vllm.chat": "vllm:q",
    "ollama.chat": "ollama:q",
    "groq.chat": "groq:q",
    "local": "local:smollm2",
}


@pytest.mark.parametrize("name", WIRES)
def test_argument_text_that_is_no_object_is_sent_within_one(name: str) -> None:
    llm = sabir.adapter(WIRES[name])
    origin = sabir.Origin(**llm.target.model_dump())
    call = sabir.OptionCallPayload(
        invocation_id="call_1", option_name="f", raw_arguments=UNREADABLE, invalid_arguments=True
    )
    made = sabir.Message(policy="llm", origin=origin, payload=call)
    history = [sabir.user("Hi"), made, sabir.OptionResultBuilder.response_to(made).error("invalid_arguments", "bad")]
    rendering = llm.render(history)
    lost = [loss.path for loss in rendering.losses if loss.kind == "rewritten" and loss.message_id == made.id]
    body = rendering.body_bytes.decode()

    assert ("invalid_json" in body) is (name not in KEEPS)
    assert lost == ([] if name in KEEPS else ["payload.arguments"])
    assert "Ro" in body
