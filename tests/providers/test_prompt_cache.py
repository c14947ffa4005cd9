"""How each wire and gateway sends `prompt_cache`, and that its markers change nothing else."""

import json
import re
from typing import Any

import pytest
import sabir
from hypothesis import given
from sabir.contract.dialect import Rendering
from sabir.errors import RenderingRefused
from sabir.vocabulary.messages import Message
from sabir_testing.histories.samples import LOOKUP, call_message, message_by, result_message

from tests.laws.histories import histories

TALK = [sabir.system("Be brief."), sabir.user("Rain?"), sabir.assistant("Yes."), sabir.user("Tomorrow?")]
LOOP = [*TALK, call_message("c1", {"kit_word": "sun"}), result_message("c1", "page 3"), sabir.assistant("3.")]
CLAUDE, ROUTED = "anthropic:claude-sonnet-5", "openrouter:anthropic/claude-sonnet-4.6"
MARKING = (CLAUDE, ROUTED, "openrouter:qwen/qwen3-max")
SHORT, HOUR = {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}
MARKER = re.compile(rb',"cache_control":\{"type":"ephemeral"(?:,"ttl":"(?:5m|1h)")?\}')


def render(model: str, talk: list[Message] = TALK, options: Any = (), **settings: Any) -> Rendering:
    adapter = sabir.adapter(model, api_key="k")
    return adapter.render(talk, options=options, settings=sabir.Settings(max_output_tokens=9, **settings))


def marked(rendering: Rendering) -> dict[str, Any]:
    """Path → marker."""
    return dict(_marks(json.loads(rendering.body_bytes), ""))


def _marks(node: Any, path: str) -> Any:
    pairs = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in pairs:
        if key == "cache_control":
            yield path, value
        yield from _marks(value, f"{path}.{key}".lstrip("."))


def lost(rendering: Rendering) -> list[tuple[str, str]]:
    return [(loss.kind, loss.path) for loss in rendering.losses]


DOWN, NOT = [("downgraded", "settings.prompt_cache")], [("dropped", "settings.prompt_cache")]
SAME = [("rewritten", "settings.prompt_cache")]


@pytest.mark.parametrize(
    ("model", "talk", "options", "places"),
    [
        (CLAUDE, TALK, (), ["messages.1.content.0", "system.0"]),
        (CLAUDE, TALK, (LOOKUP,), ["messages.1.content.0", "system.0"]),
        (CLAUDE, TALK[1:], (LOOKUP,), ["messages.1.content.0", "tools.0"]),
        (CLAUDE, TALK[:2], (), ["system.0"]),
        (CLAUDE, TALK[1:2], (), []),
        (CLAUDE, LOOP, (), ["messages.4.content.0", "system.0"]),
        (ROUTED, TALK, (LOOKUP,), ["messages.2.content.0", "tools.0"]),
        (ROUTED, TALK[:2], (), ["messages.0.content.0"]),
        (ROUTED, LOOP, (), ["messages.5.content.0"]),
        ("openrouter.responses:anthropic/claude-sonnet-4.6", TALK, (), [""]),
        ("moonshot.messages:kimi-k3", TALK, (), [""]),
    ],
)
def test_markers_are_at_the_end_of_the_closed_turns_and_of_what_is_before_them(
    model: str, talk: list[Message], options: Any, places: list[str]
) -> None:
    for lifetime, marker in ((True, SHORT), ("1h", HOUR)):
        rendering = render(model, talk, options, prompt_cache=lifetime)
        assert dict(sorted(marked(rendering).items())) == dict.fromkeys(places, marker)
        assert not [loss for loss in lost(rendering) if loss[1] == "settings.prompt_cache"]


@pytest.mark.parametrize(
    ("model", "lifetime", "fields", "losses"),
    [
        ("openai:gpt-5.1", True, {"prompt_cache_key"}, []),
        ("openai:gpt-5.1", "5m", {"prompt_cache_key"}, []),
        ("openai:gpt-5.1-2025-11-13", "1h", {"prompt_cache_key", "prompt_cache_retention"}, SAME),
        ("openai.chat:gpt-4o", "1h", {"prompt_cache_key"}, DOWN),
        ("openai:gpt-5.6-sol", "1h", {"prompt_cache_key"}, DOWN),
        ("mistral:mistral-large-latest", "1h", {"prompt_cache_key"}, DOWN),
        ("venice:qwen3-5-9b", "1h", {"prompt_cache_key", "prompt_cache_retention"}, SAME),
        ("vercel.chat:anthropic/claude-sonnet-4", True, {"providerOptions"}, []),
        ("vercel.responses:anthropic/claude-sonnet-4", "1h", {"caching", "cache_ttl"}, []),
        ("openrouter:qwen/qwen3-max", "1h", set(), DOWN),
        *((name, True, set(), []) for name in (
            "deepseek:deepseek-v4-flash", "deepseek.messages:deepseek-v4-flash", "xai:grok-4.3", "xai.chat:grok-4.3",
            "groq:x", "cerebras:x", "fireworks:x", "zai:glm-5", "zai.messages:glm-5", "vllm:x", "llamacpp:x",
            "ollama:x", "lmstudio:x", "local:smollm2", "openrouter:openai/gpt-5", "openrouter:google/gemini-2.5-pro",
        )),
        ("deepseek:deepseek-v4-flash", "5m", set(), DOWN),
        ("deepseek.messages:deepseek-v4-flash", "1h", set(), DOWN),
        *((name, lifetime, set(), NOT) for lifetime in (True, "1h") for name in (
            "huggingface:x/y", "perplexity:sonar", "together:x", "openrouter:somebody/else", "google:gemini-2.5-flash",
        )),
    ],
)  # fmt: skip
def test_a_key_a_field_nothing_or_a_loss(model: str, lifetime: Any, fields: set[str], losses: Any) -> None:
    plain, rendering = (render(model, **settings) for settings in ({}, {"prompt_cache": lifetime}))

    assert set(rendering.body) - set(plain.body) == fields  # type: ignore[arg-type]
    assert [loss for loss in lost(rendering) if loss not in lost(plain)] == losses


def test_the_key_of_a_conversation_stays_and_differs_from_others() -> None:
    def key(talk: list[Message]) -> Any:
        return render("openai:gpt-5.1", talk, prompt_cache=True).body["prompt_cache_key"]  # type: ignore[index,call-overload]

    assert key(TALK) == key(TALK[:2]) == key([*TALK, sabir.assistant("No.")])
    assert len({key(TALK), key(TALK[1:]), key([TALK[0], sabir.user("Snow?")])}) == 3


@pytest.mark.parametrize(
    ("vendor", "lifetime", "places", "losses"),
    [
        ({"cache_breakpoints": ["closed"]}, "1h", {"closed": SHORT, "system": HOUR}, []),
        ({"cache_breakpoints": [{"at": "system", "ttl": "1h"}]}, True, {"closed": SHORT, "system": HOUR}, []),
        ({"cache_breakpoints": [{"at": "end", "ttl": "1h"}]}, True, {"closed": HOUR, "system": HOUR, "end": HOUR}, []),
        ({"cache_breakpoints": ["system"]}, "1h", {"closed": SHORT, "system": SHORT}, DOWN),
        ({"cache_breakpoints": ["options", "end"], "cache_control": SHORT}, True,
         {"options": SHORT, "closed": SHORT, "end": SHORT, "automatic": SHORT}, []),
        ({"cache_breakpoints": ["options", "system", "end"], "cache_control": SHORT}, True,
         {"options": SHORT, "system": SHORT, "end": SHORT, "automatic": SHORT}, NOT),
    ],
)  # fmt: skip
def test_markers_set_by_hand_come_first_and_never_more_than_four(
    vendor: Any, lifetime: Any, places: dict[str, Any], losses: Any
) -> None:
    paths = {"options": "tools.0", "system": "system.0", "closed": "messages.1.content.0",
             "end": "messages.2.content.0", "automatic": ""}  # fmt: skip
    rendering = render(CLAUDE, options=[LOOKUP], prompt_cache=lifetime, vendor={"anthropic": vendor})

    assert marked(rendering) == {paths[place]: marker for place, marker in places.items()}
    assert lost(rendering) == losses


def test_a_key_set_by_hand_is_sent_and_another_retention_is_a_loss() -> None:
    vendor = {"openai": {"prompt_cache_key": "mine", "prompt_cache_retention": "in_memory"}}
    rendering = render("openai:gpt-5.1", prompt_cache="1h", vendor=vendor)

    assert b'"prompt_cache_key":"mine"' in rendering.body_bytes
    assert b'"prompt_cache_retention":"in_memory"' in rendering.body_bytes
    assert lost(rendering)[-1:] == NOT


@pytest.mark.parametrize("model", MARKING)
@given(history=histories)
def test_markers_keep_the_messages_and_the_cached_turns(model: str, history: list[Message]) -> None:
    """Law 4: without its markers, a request is the request without the setting. Law 5: cached and fresh are equal."""
    adapter = sabir.adapter(model, api_key="k")
    cached = adapter.new_renderer()
    for length in sorted({1, len(history) // 2, len(history)}):
        talk = [message_by("user", "?"), *history[:length]]
        for settings in (sabir.Settings(prompt_cache=True), sabir.Settings(), sabir.Settings(prompt_cache="1h")):
            try:
                fresh = adapter.new_renderer().render(talk, [LOOKUP], settings)
            except RenderingRefused:
                continue
            assert cached.render(talk, [LOOKUP], settings).body_bytes == fresh.body_bytes
            plain = adapter.new_renderer().render(talk, [LOOKUP])
            assert MARKER.sub(b"", fresh.body_bytes) == plain.body_bytes


@pytest.mark.parametrize(
    ("model", "lifetime", "read"),
    [
        (CLAUDE, True, True), (CLAUDE, "5m", "5m"), (CLAUDE, "1h", "1h"),
        (ROUTED, True, True), (ROUTED, "1h", "1h"),
        ("openrouter.responses:anthropic/claude-sonnet-4.6", "1h", "1h"),
        ("openai:gpt-5.1", True, True), ("openai:gpt-5.1", "1h", "1h"), ("openai.chat:gpt-4o", "5m", True),
    ],
)  # fmt: skip
def test_a_stored_request_has_the_setting_again(model: str, lifetime: Any, read: Any) -> None:
    for talk, options in ((TALK, ()), (TALK, (LOOKUP,)), (LOOP[:6], (LOOKUP,))):
        rendering = render(model, talk, options, prompt_cache=lifetime)
        place, _, name = model.partition(":")
        dialect = sabir.dialect(place if "." in place else f"{place}.{rendering.target.dialect.rpartition('.')[2]}")
        decoded = dialect.decode_history(rendering.body_bytes)

        assert decoded.settings.prompt_cache == read
        assert not any("cache" in loss.path for loss in decoded.losses)
        again = dialect.render(decoded.messages, options=decoded.options, settings=decoded.settings, model=name)
        assert (again.body_bytes == rendering.body_bytes) or read is not lifetime
