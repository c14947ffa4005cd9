"""What turns become on the wire of Messages, byte for byte where the vendor demands it."""

import json
from typing import Any

import pytest
import sabir
from sabir.contract.dialect import Rendering
from sabir.errors import RenderingRefused
from sabir.vocabulary.messages import Message, OptionCallPayload, OptionResultPayload, Origin, PartsPayload
from sabir.vocabulary.parts import Citation, MediaPart, OpaquePart, Part, ReasoningPart, TextPart
from sabir_anthropic.dialect import MESSAGES

from tests.anthropic.test_decode import FOUND, SERVER, THINKING, USE, decode
from tests.laws.histories import PIXEL

MODEL = "claude-opus-5-5"
HOME = Origin(provider="anthropic", dialect=MESSAGES.name, endpoint="https://api.anthropic.com", model=MODEL)
SIGNED = ReasoningPart(text="Hm.", state={"type": "thinking", "signature": "sig"})


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the machine decides what an endpoint is."""
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)


def said(*parts: Part | str, policy: str = "llm", origin: Origin | None = None, **fields: Any) -> Message:
    made = tuple(TextPart(text=part) if isinstance(part, str) else part for part in parts)
    return Message(policy=policy, origin=origin, payload=PartsPayload(parts=made), **fields)


def call(call_id: str = "toolu_1", origin: Origin | None = None, **fields: Any) -> Message:
    payload = OptionCallPayload(invocation_id=call_id, option_name="weather", arguments={"b": 1, "a": 2}, **fields)
    return Message(policy="llm", origin=origin, payload=payload)


def answer(call_id: str = "toolu_1", **fields: Any) -> Message:
    return Message(
        policy="weather", payload=OptionResultPayload(invocation_id=call_id, option_name="weather", **fields)
    )


def render(*messages: Message, model: str = MODEL, **settings: Any) -> Rendering:
    given = sabir.Settings(**{"max_output_tokens": 1024, **settings})
    return sabir.dialect("anthropic.messages").render(messages, model=model, settings=given)


def sent(*messages: Message, **fields: Any) -> list[Any]:
    found: list[Any] = json.loads(render(*messages, **fields).body_bytes)["messages"]
    return found


def content(*messages: Message, **fields: Any) -> list[Any]:
    """The content of the last message."""
    found: list[Any] = sent(*messages, **fields)[-1]["content"]
    return found


def losses(*messages: Message, **fields: Any) -> list[tuple[str, str]]:
    return [(loss.kind, loss.path) for loss in render(*messages, **fields).losses]


ASKED = sabir.user("Umbrella?")


def test_a_late_system_message_stands_where_the_users_side_ends() -> None:
    """Where the model takes it; in another place, or with another model, it is the user's (a loss)."""
    late = sabir.system("Be brief.")

    assert [each["role"] for each in sent(ASKED, late)] == ["user", "system"]
    assert [each["role"] for each in sent(ASKED, late, ASKED)] == ["user", "user", "user"]
    assert losses(ASKED, late, ASKED) == [("downgraded", "")]
    for model in ("claude-sonnet-5", "claude-haiku-4-5", "claude-opus-4-7"):
        assert [each["role"] for each in sent(ASKED, late, model=model)] == ["user", "user"]
        assert losses(ASKED, late, model=model) == [("downgraded", "")]


def test_a_result_holds_texts_images_and_documents() -> None:
    """UP-10: multimodal results."""
    parts = (TextPart(text="see"), MediaPart(modality="image", url=PIXEL), MediaPart(modality="audio", url=SOUND))
    (found,) = content(ASKED, call(), answer(parts=parts))

    assert [block["type"] for block in found["content"]] == ["text", "image", "text"]
    assert found["content"][2]["text"] == "[audio not shown]"
    assert losses(ASKED, call(), answer(parts=parts)) == [("downgraded", "parts[2]")]


def test_an_error_result_holds_nothing_but_text() -> None:
    """The vendor refuses all else beside the flag; a placeholder names what was shown."""
    picture = MediaPart(modality="image", url=PIXEL, prompt_hint="a chart")
    failed = answer(is_error=True, error_type="Boom", error_message="no", parts=(TextPart(text="So far:"), picture))
    (found,) = content(ASKED, call(), failed)

    assert [block["type"] for block in found["content"]] == ["text", "text", "text"]
    assert found["content"][2]["text"] == "[image not shown: a chart]"
    assert losses(ASKED, call(), failed) == [("downgraded", "parts[1]")]


SOUND = "data:audio/wav;base64,UklGRg=="
PDF = "data:application/pdf;base64,JVBERi0xLjQ="


def test_a_text_of_another_type_goes_as_plain_text() -> None:
    """Markdown, JSON, CSV: the same characters, another word for them."""
    part = MediaPart(modality="document", url="data:text/markdown;base64,IyBIaQ==")
    (block,) = content(said(part, policy="user"))

    assert block["source"] == {"type": "text", "media_type": "text/plain", "data": "# Hi"}
    assert losses(said(part, policy="user")) == [("rewritten", "parts[0]")]


def test_thinking_goes_back_as_it_came_and_where_it_stood() -> None:
    """Law 3, byte for byte: order, signature, hidden text; redacted thinking alike."""
    redacted = {"type": "redacted_thinking", "data": "secret"}
    blocks = [THINKING, {"type": "text", "text": "So."}, redacted, {**THINKING, "thinking": ""}, USE]
    reply = decode(*blocks, stop_reason="tool_use")
    home = [message.model_copy(update={"origin": HOME}) for message in reply.messages]
    found = sent(ASKED, *home, answer(result="x"))[1]["content"]

    assert [json.dumps(block) for block in found[:4]] == [json.dumps(block) for block in blocks[:4]]
    assert found[4]["input"] == USE["input"]


def test_thinking_of_another_maker_stays_out() -> None:
    """Another model, another endpoint, nobody: a loss each time."""
    for origin in (None, HOME.model_copy(update={"model": "claude-haiku-4-5"}),
                   HOME.model_copy(update={"endpoint": "https://elsewhere.example"})):  # fmt: skip
        assert content(ASKED, said(SIGNED, "So.", origin=origin), ASKED) == [{"type": "text", "text": "Umbrella?"}]
        assert ("dropped", "parts[0]") in losses(ASKED, said(SIGNED, "So.", origin=origin), ASKED)


def test_thinking_without_a_signature_stays_out() -> None:
    """The vendor refuses it: it was cut off, or is another server's."""
    bare = ReasoningPart(text="Hm.", state={"type": "thinking"})
    message = said(bare, "So.", origin=HOME)

    assert sent(ASKED, message, ASKED)[1]["content"] == [{"type": "text", "text": "So."}]
    assert losses(ASKED, message, ASKED) == [("dropped", "parts[0]")]


@pytest.mark.parametrize("held", [5, ["x"], None])
def test_a_state_may_hold_anything_under_the_name_of_a_text(held: Any) -> None:
    """What came from the vendor goes back as it came; only a string is a text."""
    state = {"type": "redacted_thinking", "data": "d", "text": held}
    own = said(ReasoningPart(text="", state=state), "Yes.", origin=HOME)

    assert sent(ASKED, own, ASKED)[1]["content"][0] == state


def test_citations_go_back_with_the_models_own_text() -> None:
    """In the vendor's form; one that has it not is a loss."""
    source = {"type": "web_search_result_location", "url": "https://e.org", "encrypted_index": "x"}
    cited = TextPart(text="So.", citations=(Citation(kind="web", source=source), Citation(kind="of mine")))
    message = said(cited, origin=HOME)

    assert sent(ASKED, message, ASKED)[1]["content"] == [{"type": "text", "text": "So.", "citations": [source]}]
    assert losses(ASKED, message, ASKED) == [("dropped", "parts[0].citations")]


def test_citations_of_another_maker_stay_out() -> None:
    """They are in its own form."""
    cited = TextPart(text="So.", citations=(Citation(kind="url_citation", source={"type": "url_citation"}),))
    other = Origin(provider="openai", dialect="openai.responses", model="gpt-5")
    message = said(cited, origin=other)

    assert sent(ASKED, message, ASKED)[1]["content"] == [{"type": "text", "text": "So."}]
    assert losses(ASKED, message, ASKED) == [("dropped", "parts[0].citations")]


def test_citations_never_stand_in_a_users_text() -> None:
    """The vendor refuses them there, whoever's they are."""
    cited = TextPart(text="So.", citations=(Citation(kind="web", source={"type": "x"}),))
    for origin in (None, HOME):
        message = said(cited, origin=origin, role_hint_for_llm="user")
        assert content(message) == [{"type": "text", "text": "So."}]
        assert losses(message) == [("dropped", "parts[0].citations")]


def test_the_servers_calls_go_back_as_they_came() -> None:
    """Complete pairs verbatim; half of one is a loss."""
    reply = decode(SERVER, FOUND, {"type": "text", "text": "Found."})
    (home,) = [message.model_copy(update={"origin": HOME}) for message in reply.messages]

    assert sent(ASKED, home, ASKED)[1]["content"] == [SERVER, FOUND, {"type": "text", "text": "Found."}]
    half = said(OpaquePart(dialect=MESSAGES.name, block=SERVER, pair_id="s", pair="opens"), "Hm.", origin=HOME)
    assert sent(ASKED, half, ASKED)[1]["content"] == [{"type": "text", "text": "Hm."}]
    assert losses(ASKED, half, ASKED) == [("dropped", "parts[0]")]


def test_a_paused_turn_is_resent_as_it_is() -> None:
    """`pause_turn`: the server's call stays open at the end, and nothing is said after it, not even to a model that
    takes no conversation that ends with the assistant."""
    reply = decode({"type": "text", "text": "Let me look."}, SERVER, stop_reason="pause_turn")
    home = [message.model_copy(update={"origin": HOME}) for message in reply.messages]

    assert sent(ASKED, *home)[-1] == {
        "role": "assistant", "content": [{"type": "text", "text": "Let me look."}, SERVER],
    }  # fmt: skip
    assert losses(ASKED, *home) == []


def test_a_programs_call_keeps_who_made_it() -> None:
    """The server's call stays open over the results of the options that it calls."""
    caller = {"caller": {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}}
    server = {**SERVER, "name": "code_execution"}
    first = decode(server, {**USE, **caller}, stop_reason="tool_use")
    closes = {"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_1", "content": {}}
    second = decode(closes, {"type": "text", "text": "Done."})
    home = [m.model_copy(update={"origin": HOME}) for m in (*first.messages, *second.messages)]
    found = sent(ASKED, home[0], home[1], answer(result="x"), home[2], ASKED)

    assert found[1]["content"][0] == server
    assert found[1]["content"][1]["caller"] == caller["caller"]
    assert found[3]["content"][0] == closes


@pytest.mark.parametrize("told", ["", " \n"])
def test_an_error_without_words_says_that_it_is_one(told: str) -> None:
    """The API refuses an error result without content."""
    (found,) = content(ASKED, call(), answer(is_error=True, error_type="error", error_message=told))

    assert found["is_error"] is True
    assert json.loads(found["content"])["error"]["type"] == "error"


@pytest.mark.parametrize("is_error", [False, True])
def test_a_result_names_the_toolset_of_its_call(is_error: bool) -> None:
    """The API refuses a result that does not; a call of another origin has none."""
    failed = {"is_error": True, "error_message": "No page.", "error_type": "NoPage"} if is_error else {"result": "done"}
    home = content(ASKED, call(origin=HOME, state={"toolset_name": "browser"}), answer(**failed))
    away = sent(ASKED, call(state={"toolset_name": "browser"}), answer(**failed))

    assert home[0]["toolset_name"] == "browser"
    assert "toolset_name" not in json.dumps(away)


def test_what_another_dialect_said_is_told_in_plain_blocks() -> None:
    """Law 9: no state of another's, no citations, ids within this wire's characters."""
    other = Origin(provider="openai", dialect="openai.responses", model="gpt-5")
    message = said(TextPart(text="So.", state={"item": {"id": "msg_1"}}), origin=other)
    foreign = call("call|1", origin=other, state={"id": "fc_1"})
    found = sent(ASKED, message, foreign, answer("call|1", result="x"))

    assert found[1]["content"][0] == {"type": "text", "text": "So."}
    assert found[1]["content"][1].keys() == {"type", "id", "name", "input"}
    assert found[1]["content"][1]["id"] == found[2]["content"][0]["tool_use_id"]
    assert "|" not in found[1]["content"][1]["id"]


def test_arguments_that_are_no_object_become_one() -> None:
    """The wire takes nothing else; the text is a loss."""
    broken = call(raw_arguments='{"a', invalid_arguments=True)

    assert ("rewritten", "payload.arguments") in losses(ASKED, broken, answer(result="x"))


@pytest.mark.parametrize("text", [" ", "\n\n", "\t"])
def test_white_space_alone_is_no_text(text: str) -> None:
    """The vendor refuses a message of nothing else, and takes it beside a text."""
    home = said(text, origin=HOME)

    assert sent(ASKED, home, call(), answer(result="x"))[1]["content"][0]["type"] == "tool_use"
    assert losses(ASKED, home, call(), answer(result="x")) == [("dropped", "parts[0]")]
    assert content(said(text, "So.", policy="user")) == [
        {"type": "text", "text": text},
        {"type": "text", "text": "So."},
    ]
    assert content(said(text, policy="user")) == [{"type": "text", "text": "(empty)"}]
    assert losses(said(text, policy="user")) == [("dropped", "parts[0]"), ("synthesized", "")]
    with pytest.raises(RenderingRefused):
        render(said(text))


def test_a_start_that_the_user_wrote_does_not_end_with_white_space() -> None:
    """The vendor refuses it; the model's own text stays as it is."""
    model = "claude-haiku-4-5"

    assert content(ASKED, said("It is \n"), model=model) == [{"type": "text", "text": "It is"}]
    assert losses(ASKED, said("It is \n"), model=model) == [("rewritten", "parts[0]")]
    assert content(ASKED, said("It is", " "), model=model) == [{"type": "text", "text": "It is"}]
    assert losses(ASKED, said("It is", " "), model=model) == [("dropped", "parts[1]")]
    home = said("It is \n", origin=HOME.model_copy(update={"model": model}))
    assert sent(ASKED, home, model=model)[1]["content"] == [{"type": "text", "text": "It is \n"}]
    assert content(ASKED, home, model=model) == [{"type": "text", "text": "Continue."}]
    assert losses(ASKED, home, model=model) == [("synthesized", "messages")]


def test_thinking_that_led_to_white_space_alone_goes_with_it() -> None:
    """No assistant's message may end with thinking."""
    home = said(SIGNED, "\n", origin=HOME)

    assert [each["role"] for each in sent(ASKED, home, ASKED)] == ["user", "user"]
    assert losses(ASKED, home, ASKED) == [("dropped", "parts[1]"), ("dropped", "parts[0]")]


def test_a_conversation_may_begin_with_the_assistant() -> None:
    """The vendor answers such requests: nothing is put before it."""
    assert [each["role"] for each in sent(said("How can I help?"), ASKED)] == ["assistant", "user"]
    assert losses(said("How can I help?"), ASKED) == []


def test_blocks_of_the_users_own_go_as_they_are() -> None:
    """Search results, uploads to a container, documents with options."""
    block = {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "x"}]}
    part = OpaquePart(dialect=MESSAGES.name, block=block)

    assert content(said(part, "So?", policy="user"))[0] == block
    assert content(ASKED, call(), answer(parts=(part,)))[0]["content"] == [block]
    upload = OpaquePart(dialect=MESSAGES.name, block={"type": "container_upload", "file_id": "f"})
    assert content(said(upload, policy="user")) == [upload.block]
    assert content(ASKED, call(), answer(parts=(upload,)))[0]["content"] == "null"
    assert losses(ASKED, call(), answer(parts=(upload,))) == [("dropped", "parts[0]")]


def test_at_a_cloud_media_are_bytes() -> None:
    """Bedrock and Vertex take no URL and no file of Anthropic's; a fetcher may bring the bytes."""
    from sabir.rendering.renderer import Renderer
    from sabir.vocabulary.target import Target

    target = Target(provider="anthropic", dialect=MESSAGES.name, model=MODEL)
    renderer = Renderer(MESSAGES, target, quirks=frozenset({"cloud"}))
    picture = said(MediaPart(modality="image", url="https://e.org/a.png"), policy="user")
    late = renderer.render([ASKED, sabir.system("Be brief.")])
    shown = renderer.render([picture], settings=sabir.Settings(max_output_tokens=1024))

    assert "[image not shown" in shown.body_bytes.decode()
    assert [loss.kind for loss in shown.losses] == ["downgraded"]
    assert [each["role"] for each in json.loads(late.body_bytes)["messages"]] == ["user", "user"]
