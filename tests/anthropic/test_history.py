"""A stored Messages request, as sabir's own data and back."""

import json
from typing import Any

import pytest
import sabir
from sabir.contract.dialect import DecodedHistory
from sabir.vocabulary.messages import Message
from sabir.vocabulary.parts import MediaPart, OpaquePart, TextPart
from sabir.vocabulary.settings import Settings

from tests.anthropic.test_decode import FOUND, SERVER, THINKING, USE

DIALECT = sabir.dialect("anthropic.messages")
ANSWERED = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "rain"}


def request(*messages: Any, **fields: Any) -> dict[str, Any]:
    return {"model": "claude-haiku-4-5", "max_tokens": 100, **fields, "messages": list(messages)}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def read(*messages: Any, **fields: Any) -> DecodedHistory:
    return DIALECT.decode_history(request(*messages, **fields))


def back(history: DecodedHistory) -> dict[str, Any]:
    rendering = DIALECT.render(
        history.messages, model=history.model, options=history.options, settings=history.settings
    )
    found: dict[str, Any] = json.loads(rendering.body_bytes)
    return found


def losses(*messages: Any, **fields: Any) -> list[tuple[str, str]]:
    return [(loss.kind, loss.path) for loss in read(*messages, **fields).losses]


def shown(message: Message) -> tuple[str, str, str]:
    return message.policy, message.kind, message.text


def test_a_stored_conversation_is_sabirs_own() -> None:
    """Policies, calls and results by their names, the model's own with its origin; and it goes back as it was."""
    stored = request(
        user(text("Umbrella?")), assistant(THINKING, USE), user(ANSWERED, text("So?")), assistant(text("Yes.")),
        user(text("Thanks.")), system=[text("Be brief.")],
    )  # fmt: skip
    history = DIALECT.decode_history(stored)

    assert [shown(message) for message in history.messages] == [
        ("system", "parts", "Be brief."), ("user", "parts", "Umbrella?"), ("llm", "parts", ""),
        ("llm", "option_call", ""), ("my_weather", "option_result", ""), ("user", "parts", "So?"),
        ("llm", "parts", "Yes."), ("user", "parts", "Thanks."),
    ]  # fmt: skip
    assert history.messages[2].origin is not None
    assert history.messages[2].origin == history.messages[3].origin
    assert (history.messages[2].origin.provider, history.messages[2].origin.model) == ("anthropic", "claude-haiku-4-5")
    assert (history.model, history.losses) == ("claude-haiku-4-5", ())
    found = back(history)
    assert found["system"] == stored["system"]
    assert found["messages"][1] == stored["messages"][1]
    assert [message["content"] for message in found["messages"][2:4]] == [[ANSWERED], [text("So?")]]


def test_strings_are_texts() -> None:
    """A content, a system text, a result, a part of a content."""
    history = read({"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}, system="Brief.")

    assert [shown(message) for message in history.messages] == [
        ("system", "parts", "Brief."), ("user", "parts", "Hi"), ("llm", "parts", "Hello"),
    ]  # fmt: skip


def test_a_late_system_message_stays_where_it_stands() -> None:
    """And what is no text in it is a loss."""
    late = {"role": "system", "content": [text("Be brief."), {"type": "tool_addition", "tool": {}}]}

    assert [message.policy for message in read(user(text("Hi")), late).messages] == ["user", "system"]
    assert losses(user(text("Hi")), late) == [("dropped", "messages[1].content[1]")]


MEDIA: list[tuple[dict[str, Any], MediaPart]] = [
    ({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0="}},
     MediaPart(modality="image", url="data:image/png;base64,iVBORw0=")),
    ({"type": "image", "source": {"type": "url", "url": "https://e.org/a.png"}},
     MediaPart(modality="image", url="https://e.org/a.png")),
    ({"type": "image", "source": {"type": "file", "file_id": "file_1"}},
     MediaPart(modality="image", url="provider-file:anthropic/file_1")),
    ({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "é"}, "title": "t"},
     MediaPart(modality="document", url="data:text/plain;base64,w6k=", name="t")),
    ({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}},
     MediaPart(modality="document", url="data:application/pdf;base64,JVBERi0=")),
]  # fmt: skip


@pytest.mark.parametrize(
    "block",
    [
        {"type": "document", "source": {"type": "url", "url": "https://e.org"}, "citations": {"of_2030": True}},
        {"type": "image", "source": {"type": "url", "url": "https://e.org"}, "context": "x"},
        {"type": "document", "source": {"type": "content", "content": "x"}},
        {"type": "image", "source": {"type": "of 2030"}},
        {"type": "search_result", "source": "s", "title": "t", "content": []},
        {"type": "container_upload", "file_id": "file_1"},
    ],
)
def test_a_block_that_no_part_can_say_is_kept_verbatim(block: dict[str, Any]) -> None:
    """It goes back to this dialect alone."""
    history = read(user(block))

    assert history.messages[0].parts == (OpaquePart(dialect="anthropic.messages", block=block),)
    assert back(history)["messages"] == [user(block)]


def test_the_servers_own_calls_are_pairs() -> None:
    """As in a reply."""
    history = read(user(text("?")), assistant(SERVER, FOUND, text("Found.")), user(text("Thanks.")))

    assert [getattr(part, "pair", None) for part in history.messages[1].parts] == ["opens", "closes", None]
    assert back(history)["messages"][1] == assistant(SERVER, FOUND, text("Found."))


@pytest.mark.parametrize(
    "content", ["no", [text("no")], [text("no"), text("not at all")]], ids=["string", "text", "texts"]
)
def test_an_error_result_keeps_its_words(content: Any) -> None:
    """UP-09: what was told is told again, in the same words."""
    failed = {**ANSWERED, "content": content, "is_error": True}
    history = read(user(text("?")), assistant(USE), user(failed))
    result = history.messages[-1].result
    (found,) = back(history)["messages"][-1]["content"]

    assert result is not None
    assert (result.is_error, result.error_message) == (True, "no")
    assert found["is_error"] is True
    assert found["content"] == ("no" if len(content) < 2 or content == "no" else content)


def test_results_of_parts_and_of_nothing() -> None:
    """A list is parts; no content is an empty text."""
    parts = [text("see"), MEDIA[0][0]]
    history = read(user(text("?")), assistant(USE), user({**ANSWERED, "content": parts}))
    assert history.messages[-1].parts == (TextPart(text="see"), MEDIA[0][1])
    assert back(history)["messages"][-1] == user({**ANSWERED, "content": parts})

    bare = {"type": "tool_result", "tool_use_id": "toolu_1"}
    result = read(user(text("?")), assistant(USE), user(bare)).messages[-1].result
    assert result is not None
    assert result.result == ""


def test_settings_have_their_neutral_names() -> None:
    """What has none is the vendor's, or goes verbatim."""
    history = read(
        user(text("?")), temperature=0.5, top_p=0.9, stop_sequences=["a"], top_k=4, metadata={"user_id": "u"},
        thinking={"type": "disabled"}, of_2030=1, betas=["x"], cache_control={"type": "ephemeral"}, container=None,
        output_config={"effort": "low", "format": {"type": "json_schema", "schema": {"type": "object", "title": "T"}}},
        tools=[{"name": "w", "input_schema": {"type": "object"}}],
        tool_choice={"type": "any", "disable_parallel_tool_use": True},
    )  # fmt: skip
    settings = history.settings

    assert (settings.max_output_tokens, settings.temperature, settings.top_p, settings.stop) == (100, 0.5, 0.9, ("a",))
    assert (settings.option_choice, settings.parallel_options) == ("required", False)
    assert settings.response_format is not None
    assert settings.response_format.name == "T"
    assert settings.vendor["anthropic"] == {
        "top_k": 4, "metadata": {"user_id": "u"}, "thinking": {"type": "disabled"},
        "cache_control": {"type": "ephemeral"}, "output_config": {"effort": "low"}, "betas": ["x"],
    }  # fmt: skip
    assert settings.extra_body == {"of_2030": 1}
    assert history.losses == ()


@pytest.mark.parametrize(
    ("choice", "expected"),
    [({"type": "auto"}, "auto"), ({"type": "none"}, "none"), ({"type": "tool", "name": "w"}, "w")],
)
def test_a_choice_is_the_neutral_one(choice: dict[str, Any], expected: str) -> None:
    """One of what is not offered stays the vendor's."""
    tools = [{"name": "w", "input_schema": {"type": "object"}}]
    assert read(user(text("?")), tools=tools, tool_choice=choice).settings.option_choice == expected

    other = {"type": "tool", "name": "x"}
    settings = read(user(text("?")), tools=tools, tool_choice=other).settings
    assert settings.vendor["anthropic"] == {"tool_choice": other}


def test_declarations_are_options_or_the_vendors_own() -> None:
    """What has a type, or hints that are none, is no option; what an option cannot say is a loss."""
    tools = [
        {"name": "w", "input_schema": {"type": "object"}, "strict": True, "defer_loading": True, "of_2030": 1},
        {"name": "later", "input_schema": {"type": "object"}, "defer_loading": "of 2030"},
        {"type": "web_search_20260318", "name": "web_search"},
    ]
    history = read(user(text("?")), tools=tools)

    hints = {"strict": True, "defer_loading": True}
    assert [(option.name, option.vendor) for option in history.options] == [("w", {"anthropic": hints})]
    assert list(history.settings.vendor["anthropic"]["tools"]) == tools[1:]
    assert [(loss.kind, loss.path) for loss in history.losses] == [("dropped", "tools[0].of_2030")]


def test_cache_markers_are_breakpoints_where_they_have_a_name() -> None:
    """At the end of declarations, system text and messages; elsewhere a loss."""
    short, long = {"cache_control": {"type": "ephemeral"}}, {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    stored = request(
        user({**text("Hi"), **short}), assistant(text("Hello")), user(text("So?"), {**text("Well?"), **short}),
        system=[{**text("Brief."), **long}], tools=[{"name": "w", "input_schema": {"type": "object"}, **long}],
    )  # fmt: skip
    history = DIALECT.decode_history(stored)

    assert list(history.settings.vendor["anthropic"]["cache_breakpoints"]) == [
        {"at": "system", "ttl": "1h"}, "end", {"at": "options", "ttl": "1h"},
    ]  # fmt: skip
    assert [(loss.kind, loss.path) for loss in history.losses] == [("dropped", "messages[0].content[0].cache_control")]
    found = back(history)
    assert found["system"] == stored["system"]
    assert found["messages"][2] == stored["messages"][2]
    assert found["tools"][0]["cache_control"] == long["cache_control"]


CALL = {"type": "tool_use", "id": "toolu_1", "name": "wait", "input": {}}
DONE = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "done"}


@pytest.mark.parametrize(
    "messages",
    [
        [user(text("a")), assistant(text("b")), user(text("c"))],
        [user(text("a")), assistant(CALL), user(DONE)],
        [user(text("a")), assistant(text("b"))],
    ],
)
def test_a_marker_at_the_end_of_the_closed_prefix_is_that_breakpoint(messages: list[Any]) -> None:
    """What was marked there by rendering is read as what it was."""
    history = DIALECT.decode_history(request(*messages))
    places = ["closed", "end"]
    settings = Settings(max_output_tokens=9, vendor={"anthropic": {"cache_breakpoints": places}})
    marked = back(history.model_copy(update={"settings": settings}))
    again = DIALECT.decode_history(marked)

    assert json.dumps(marked).count("cache_control") == 2
    assert list(again.settings.vendor["anthropic"]["cache_breakpoints"]) == places
    assert again.losses == ()


@pytest.mark.parametrize("marker", ["yes", {"type": "other"}, {"type": "ephemeral", "ttl": "9h"}, {"ttl": "1h"}])
def test_a_marker_of_another_form_is_a_loss(marker: Any) -> None:
    """At a place that has a name, too."""
    assert losses(user({**text("?"), "cache_control": marker})) == [("dropped", "messages[0].content[0].cache_control")]


def test_what_a_source_says_beside_its_medium_is_kept() -> None:
    """The block stays as it is."""
    image = {"type": "image", "source": {"type": "url", "url": "https://e.org/a.png", "cache_control": {"type": "x"}}}
    history = DIALECT.decode_history(request(user(image)))

    assert (history.losses, back(history)["messages"]) == ((), [user(image)])


def test_the_result_of_a_toolsets_call_names_it_again() -> None:
    """The call says it; the result's is made of it."""
    use = {"type": "tool_use", "id": "toolu_1", "name": "wait", "input": {}, "toolset_name": "browser"}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "done", "toolset_name": "browser"}
    history = DIALECT.decode_history(request(user(text("Go.")), assistant(use), user(result)))

    assert history.losses == ()
    assert back(history)["messages"][1:] == [assistant(use), user(result)]


def test_how_a_call_streamed_is_a_loss() -> None:
    """It is no setting."""
    assert losses(user(text("?")), stream=True) == [("dropped", "stream")]
    assert losses(user(text("?")), stream=False) == []
