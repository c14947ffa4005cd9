"""What is said, shown, called and answered, on each wire: one row a case, with every loss that it has."""

from typing import Any

import pytest
import sabir
from sabir.base.values import encode_json
from sabir.errors import RenderingRefused
from sabir.vocabulary.messages import Message, OptionCallPayload, Origin
from sabir.vocabulary.models import ModelInfo
from sabir.vocabulary.parts import Citation, MediaPart, OpaquePart, ReasoningPart, RefusalPart, TextPart

from tests.providers.wires import DIALECTS, ITEMS, body, call, home, render, result, said

CLAUDE, GEMINI, CHAT, RESPONSES = DIALECTS
PNG = "iVBORw0KGgo="
PIXEL = MediaPart(modality="image", url=f"data:image/png;base64,{PNG}")
SOUND = MediaPart(modality="audio", url="data:audio/wav;base64,UklGRg==")
AWAY = Origin(provider="other", dialect="other.wire", model="x")
HOME, OWN, FAR = home(CLAUDE), home(CHAT), home(RESPONSES)
GEMINI_3 = "gemini-3-pro-preview"
NEW = home(GEMINI, GEMINI_3)
ELSEWHERE = OWN.model_copy(update={"endpoint": "https://other.example/v1"})
ASK = sabir.user("?")
ASKED: dict[str, Any] = {
    CLAUDE: {"role": "user", "content": [{"type": "text", "text": "?"}]},
    GEMINI: {"role": "user", "parts": [{"text": "?"}]},
    CHAT: {"role": "user", "content": "?"},
    RESPONSES: {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "?"}]},
}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def claude(*blocks: Any, role: str = "assistant") -> dict[str, Any]:
    return {"role": role, "content": [text(each) if isinstance(each, str) else each for each in blocks]}


def contents(*parts: Any, role: str = "user") -> dict[str, Any]:
    return {"role": role, "parts": [{"text": each} if isinstance(each, str) else each for each in parts]}


def model(*parts: Any) -> dict[str, Any]:
    return contents(*parts, role="model")


def chat(content: Any, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **fields}


def spoken(words: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": words}


def own(name: str, block: Any, **pair: Any) -> OpaquePart:
    return OpaquePart(dialect=name, block=block, **pair)


def by_user(*parts: Any) -> Message:
    return said(*parts, policy="user")


# ---- the same call and result on each wire


def use(number: int = 1, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"call_{number}", "name": "weather", "input": {}, **fields}


def used(content: Any, **fields: Any) -> dict[str, Any]:
    return claude({"type": "tool_result", "tool_use_id": "call_1", **fields, "content": content}, role="user")


def function(**beside: Any) -> dict[str, Any]:
    return {"functionCall": {"name": "weather", "args": {}}, **beside}


def answered(response: Any, **fields: Any) -> dict[str, Any]:
    return contents({"functionResponse": {"name": "weather", "response": response, **fields}})


def tool(number: int, arguments: str, **further: Any) -> dict[str, Any]:
    function = {"name": "weather", "arguments": arguments}
    return {"id": f"call_{number}", "type": "function", "function": function, **further}


def told(number: int, content: Any = "null") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"call_{number}", "content": content}


def item(arguments: str, **fields: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": arguments, **fields}


def output(said: Any = "null") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": "call_1", "output": said}


DROPPING = {"unsupported_media": "drop"}
HIDDEN = "(its media are not shown)"

# ---- Anthropic

THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "sig"}
SIGNED = ReasoningPart(text="Hm.", state={"type": "thinking", "signature": "sig"})
REDACTED = {"type": "redacted_thinking", "data": "d"}
SERVER = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "q"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}
OPENS, CLOSES = own(CLAUDE, SERVER, pair_id="s", pair="opens"), own(CLAUDE, FOUND, pair_id="s", pair="closes")
LOCATION = {"type": "web_search_result_location", "url": "https://e.org", "encrypted_index": "x"}
CITED = TextPart(text="So.", citations=(Citation(kind="web", source=LOCATION), Citation(kind="of mine")))
SEARCH = {"type": "search_result", "source": "s", "title": "t", "content": [text("x")]}
UPLOAD = {"type": "container_upload", "file_id": "f"}
FAILED = {"is_error": True, "error_type": "Boom", "error_message": "no"}
BOOM = text('{"error":{"type":"Boom","message":"no"}}')
LATE = sabir.system("Be brief.")
HAIKU = "claude-haiku-4-5"
OTHERS = (None, HOME.model_copy(update={"model": HAIKU}), HOME.model_copy(update={"endpoint": "https://else.example"}))
CLAUDES: list[tuple[Any, ...]] = [
    ([ASK, LATE], [claude("Be brief.", role="system")], []),
    ([ASK, LATE, ASK], [claude("Be brief.", role="user")], ["downgraded "]),
    *(([ASK, LATE], [claude("Be brief.", role="user")], ["downgraded "], {"model": older})
      for older in ("claude-sonnet-5", HAIKU, "claude-opus-4-7")),
    ([ASK, LATE], [claude("Be brief.", role="user")], ["downgraded "], {"quirks": ["cloud"]}),
    ([by_user(MediaPart(modality="image", url="https://e.org/a.png"))],
     [claude("[image not shown https://e.org/a.png]", role="user")], ["downgraded parts[0]"], {"quirks": ["cloud"]}),
    ([ASK, call(), result(parts=(TextPart(text="see"), PIXEL, SOUND))], [claude(use()), used(
        [text("see"), {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
         text("[audio not shown]")])], ["downgraded parts[2]"]),
    ([ASK, call(), result(**FAILED, parts=(TextPart(text="So far:"), PIXEL))],
     [claude(use()), used([BOOM, text("So far:"), text("[image not shown]")], is_error=True)], ["downgraded parts[1]"]),
    *(([ASK, call(), result(is_error=True, error_type="error", error_message=words)], [claude(use()), used(
        encode_json({"error": {"type": "error", "message": words}}), is_error=True)], [])
      for words in ("", " \n")),
    ([by_user(MediaPart(modality="document", url="data:text/markdown;base64,IyBIaQ=="))], [claude(
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "# Hi"}}, role="user")],
     ["rewritten parts[0]"]),
    ([ASK, said(SIGNED, "So.", ReasoningPart(text="", state=REDACTED), ReasoningPart(
        text="", state={"type": "thinking", "signature": "sig"}), origin=HOME), call(origin=HOME), result()],
     [claude(THINKING, "So.", REDACTED, {**THINKING, "thinking": ""}, use()), used("null")], []),
    *(([ASK, said(SIGNED, "So.", origin=origin), ASK], [claude("So.")], ["dropped parts[0]"]) for origin in OTHERS),
    ([ASK, said(ReasoningPart(text="Hm.", state={"type": "thinking"}), "So.", origin=HOME), ASK], [claude("So.")],
     ["dropped parts[0]"]),
    *(([ASK, said(ReasoningPart(text="", state={**REDACTED, "text": held}), "Yes.", origin=HOME), ASK],
       [claude({**REDACTED, "text": held}, "Yes.")], []) for held in (5, ["x"], None)),
    ([ASK, said(CITED, origin=HOME), ASK], [claude({**text("So."), "citations": [LOCATION]})],
     ["dropped parts[0].citations"]),
    ([ASK, said(CITED, origin=AWAY), ASK], [claude("So.")], ["dropped parts[0].citations"]),
    *(([said(CITED, origin=origin).model_copy(update={"role_hint_for_llm": "user"})], [claude("So.", role="user")],
       ["dropped parts[0].citations"]) for origin in (None, HOME)),
    ([ASK, said(OPENS, CLOSES, "Found.", origin=HOME), ASK], [claude(SERVER, FOUND, "Found.")], []),
    ([ASK, said(OPENS, "Hm.", origin=HOME), ASK], [claude("Hm.")], ["dropped parts[0]"]),
    ([ASK, said("Let me look.", OPENS, origin=HOME)], [claude("Let me look.", SERVER)], []),
    ([ASK, said(OPENS, origin=HOME), call(origin=HOME, state={"caller": {"tool_id": "s"}}), result(),
      said(CLOSES, "Done.", origin=HOME), ASK],
     [claude(SERVER, use(caller={"tool_id": "s"})), used("null"), claude(FOUND, "Done.")], []),
    *(([ASK, call(origin=HOME, state={"toolset_name": "browser"}), result(**how)],
       [claude(use(toolset_name="browser")), used(sent, toolset_name="browser", **flag)], [])
      for how, sent, flag in (({"result": "done"}, "done", {}), (FAILED, BOOM["text"], {"is_error": True}))),
    ([ASK, call(state={"toolset_name": "browser"}), result(result="done")], [claude(use()), used("done")],
     ["withheld payload.state"]),
    ([ASK, said(TextPart(text="So.", state={"item": {"id": "msg_1"}}), origin=FAR), ASK], [claude("So.")],
     ["withheld parts[0].state"]),
    ([ASK, call(raw_arguments='{"a', invalid_arguments=True), result()],
     [claude(use() | {"input": {"invalid_json": '{"a'}}), used("null")],
     ["rewritten payload.arguments"]),
    *(([ASK, said(white, origin=HOME), call(), result()], [claude(use()), used("null")], ["dropped parts[0]"])
      for white in (" ", "\n\n", "\t")),
    ([by_user("\t", "So.")], [claude("\t", "So.", role="user")], []),
    ([by_user(" ")], [claude("(empty)", role="user")], ["dropped parts[0]", "synthesized "]),
    ([ASK, said("It is \n")], [claude("It is")], ["rewritten parts[0]"], {"model": HAIKU}),
    ([ASK, said("It is", " ")], [claude("It is")], ["dropped parts[1]"], {"model": HAIKU}),
    ([ASK, said("It is \n", origin=home(CLAUDE, HAIKU))], [claude("It is \n"), claude("Continue.", role="user")],
     ["synthesized messages"], {"model": HAIKU}),
    ([ASK, said(SIGNED, "\n", origin=HOME), ASK], [], ["dropped parts[1]", "dropped parts[0]"]),
    ([said("How can I help?"), ASK], [claude("How can I help?")], []),
    ([by_user(own(CLAUDE, SEARCH), "So?")], [claude(SEARCH, "So?", role="user")], []),
    ([by_user(own(CLAUDE, UPLOAD))], [claude(UPLOAD, role="user")], []),
    ([ASK, call(), result(parts=(own(CLAUDE, SEARCH),))], [claude(use()), used([SEARCH])], []),
    ([ASK, call(), result(parts=(own(CLAUDE, UPLOAD),))], [claude(use()), used("null")], ["dropped parts[0]"]),
]  # fmt: skip

# ---- Google

DOTS = contents("…")
GIF = MediaPart(modality="image", url="data:image/gif;base64,R0lGODlh")
BLOB = {"inlineData": {"mimeType": "image/png", "data": PNG}}
REFERENCE = {"schema": [{"$ref": "#/x"}]}


def sign(words: str) -> dict[str, Any]:
    return {"thoughtSignature": words}


def state(words: str) -> dict[str, Any]:
    return {"part": sign(words)}


KEPT = [
    ReasoningPart(text="Hm.", state=state("YQ==")), TextPart(text="So.", state=state("Yg==")),
    PIXEL.model_copy(update={"state": state("Yw==")}), TextPart(text="", state=state("ZA==")),
]  # fmt: skip
DUMMY = sign("c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=")
NOW = {"model": GEMINI_3}
IDS = {"call": {"id": "fc-9"}, **state("c2ln")}
CODE = {"executableCode": {"language": "PYTHON", "code": "print(1)"}}
CLIP = {"fileData": {"fileUri": "https://x.org/v.mp4"}, "videoMetadata": {"startOffset": "1s"}}
GEMINIS: list[tuple[Any, ...]] = [
    ([ASK, said("Hello."), LATE], [model("Hello."), contents("Be brief.")], ["downgraded "]),
    ([said("Hello."), ASK], [DOTS, model("Hello.")], ["synthesized "]),
    ([LATE], [DOTS], ["synthesized contents"]),
    ([ASK, said("Once upon")], [model("Once upon")], []),
    ([ASK, said("Once upon")], [model("Once upon"), DOTS], ["synthesized contents"], {"rejects": ["ending_assistant"]}),
    ([ASK, said("So."), by_user(GIF), call(), result()],
     [model("So."), DOTS, model(function()), answered({"output": None})],
     ["dropped parts[0]", "synthesized "], {"settings": DROPPING}),
    ([ASK, call(), result(result=REFERENCE)],
     [model(function()), answered({"output": '{"schema":[{"$ref":"#/x"}]}'})], ["rewritten payload.result"]),
    ([ASK, call(), result(parts=(PIXEL, TextPart(text="A map.")))],
     [model(function()), answered({"output": "A map."}, parts=[BLOB])], ["relocated payload.parts"]),
    ([ASK, call(), result(parts=(PIXEL, TextPart(text="A map.")))],
     [model(function()), answered({"output": ["[image not shown]", "A map."]})], ["downgraded parts[0]"],
     {"rejects": ["results_media"]}),
    ([ASK, call(origin=NEW, state=IDS), result()], [
        model({"functionCall": {"id": "fc-9", "name": "weather", "args": {}}, **sign("c2ln")}),
        answered({"output": None}, id="fc-9")], [], NOW),
    ([ASK, call(origin=NEW, state=IDS), result()], [model(function()), answered({"output": None})],
     ["withheld payload.state"]),
    ([ASK, said(*KEPT, origin=NEW), ASK], [model(
        {"text": "Hm.", "thought": True, **sign("YQ==")}, {"text": "So.", **sign("Yg==")}, {**BLOB, **sign("Yw==")},
        {"text": "", **sign("ZA==")})], [], NOW),
    ([ASK, said(*KEPT, origin=NEW), ASK], [model("So.", "[image not shown]")], [
        "dropped parts[0]", "withheld parts[1].state", "withheld parts[2].state", "dropped parts[3]",
        "downgraded parts[2]"]),
    *(([ASK, said(MediaPart(modality=kind, url=f"data:{mime};base64,AAA="), origin=NEW), ASK],
       [model({"inlineData": {"mimeType": mime, "data": "AAA="}})], [], NOW)
      for kind, mime in (
          ("audio", "audio/L16;codec=pcm;rate=24000"), ("audio", "audio/x-wav"), ("image", "image/png"))),
    ([ASK, said(ReasoningPart(text="Hm.", state={"type": "reasoning", "id": "rs_1"}), TextPart(
        text="", state={"id": "msg_1"}), "So.", origin=NEW)],
     [model({"text": "Hm.", "thought": True}, "So.")], ["dropped parts[1]"], NOW),
    *(([ASK, call(), call(2), result(2), result()],
       [model(function(**DUMMY), function()), contents(*answered({"output": None})["parts"] * 2)],
       ["synthesized payload.state"], {"model": each})
      for each in (GEMINI_3, "gemini-3.5-flash", "gemini-flash-latest", "gemini-10-x")),
    ([ASK, call(origin=NEW, state=state("c2ln")), call(2, origin=NEW), result(), result(2)],
     [model(function(**sign("c2ln")), function()), contents(*answered({"output": None})["parts"] * 2)], [], NOW),
    *(([ASK, call(), result()], [model(function()), answered({"output": None})], [], {"model": each})
      for each in ("gemini-2.5-pro", "gemma-3-27b")),
    ([ASK, said(PIXEL, origin=AWAY)], [model("[image not shown]")], ["downgraded parts[0]"]),
    ([by_user(own(GEMINI, CLIP)), said(own(GEMINI, CODE), "1", origin=NEW)], [contents(CLIP), model(CODE, "1")], [],
     NOW),
    ([ASK, said(RefusalPart(text="No."), origin=AWAY)], [model("No.")], ["downgraded parts[0]"]),
]  # fmt: skip

# ---- OpenAI, Chat Completions

RAW = {"arguments": {"city": "Ulm"}, "raw_arguments": '{ "city" : "Ulm" }'}
BROKEN = {"raw_arguments": "{city: Ulm", "invalid_arguments": True}
CUSTOM = {"arguments": {"input": "4 + 4"}, "state": {"type": "custom", "further": {"signature": "t"}}}
FURTHER = {"arguments": {}, "state": {"further": {"extra": {"signature": "s"}}}}
CHUNK = {"type": "text", "text": "Hi.", "id": "chunk-1"}
SUNG = (
    SOUND.model_copy(update={"state": {"audio": {"id": "audio_1", "expires_at": 9}}}),
    TextPart(text="Hello.", state={"transcript_of": "audio_1"}),
)
ENCRYPTED = [{"type": "reasoning.encrypted", "data": "x"}]
BLOCK, EMPTY = {"type": "reference", "reference_ids": [1]}, {"type": "thinking", "thinking": []}
THOUGHT = said(
    ReasoningPart(text="Hm. ", state={"field": "reasoning_content", "details": ENCRYPTED}),
    ReasoningPart(text="", state={"chunk": EMPTY}), "Ah.", own(CHAT, BLOCK), origin=OWN,
)  # fmt: skip
ECHO, PLAIN, JOINED = (
    {"quirks": each} for each in (["echoes_reasoning"], ["plain_text"], ["joins_turns", "plain_text"])
)
REFUSAL = {"type": "refusal", "refusal": "No."}
IMAGE = {"type": "image_url", "image_url": {"url": PIXEL.url}}
CHATS: list[tuple[Any, ...]] = [
    ([call(), result(parts=(TextPart(text="chart:"), PIXEL))],
     [chat(None, tool_calls=[tool(1, "{}")]), told(1, [text("chart:"), text("[image not shown]")])],
     ["downgraded parts[1]"]),
    ([ASK, call(), said("calling"), result(result=1)], [chat("calling", tool_calls=[tool(1, "{}")]), told(1, "1")],
     ["relocated parts[0]"]),
    ([ASK, said(RefusalPart(text="No.")), ASK], [chat([REFUSAL])], []),
    ([ASK, said(RefusalPart(text="No.")), ASK], [chat("No.")], ["downgraded parts[0]"], PLAIN),
    *(([ASK, said(*parts, origin=OWN), ASK], [chat([text(parts[0].text), text("No.")])], lost) for parts, lost in (
        ((TextPart(text="So: "), RefusalPart(text="No.")), ["downgraded parts[1]"]),
        ((RefusalPart(text="Ah."), RefusalPart(text="No.")), ["downgraded parts[0]", "downgraded parts[1]"]))),
    ([call(1, OWN, **RAW), call(2, AWAY, **RAW), call(3, OWN, raw_arguments=""), result(1), result(2), result(3)],
     [chat(None, tool_calls=[tool(1, RAW["raw_arguments"]), tool(2, '{"city":"Ulm"}'), tool(3, "{}")]),
      told(1), told(2), told(3)], []),
    ([call(1, OWN, **BROKEN), result()], [chat(None, tool_calls=[tool(1, "{city: Ulm")]), told(1)], []),
    ([call(1, AWAY, **BROKEN), result()],
     [chat(None, tool_calls=[tool(1, '{"invalid_json":"{city: Ulm"}')]), told(1)], ["rewritten payload.arguments"]),
    ([call(1, OWN, **CUSTOM), call(2, OWN, **FURTHER), result(1), result(2)], [chat(None, tool_calls=[
        {"id": "call_1", "type": "custom", "custom": {"name": "weather", "input": "4 + 4"}, "signature": "t"},
        tool(2, "{}", extra={"signature": "s"})]), told(1), told(2)], []),
    ([call(1, ELSEWHERE, **CUSTOM), result()], [chat(None, tool_calls=[tool(1, '{"input":"4 + 4"}')]), told(1)],
     ["withheld payload.state", "downgraded payload"]),
    ([call(1, AWAY, **CUSTOM), call(2, AWAY, **FURTHER), result(1), result(2)],
     [chat(None, tool_calls=[tool(1, '{"input":"4 + 4"}'), tool(2, "{}")]), told(1), told(2)],
     ["withheld payload.state"] * 2),
    ([call(), result(parts=(PIXEL,))], [chat(None, tool_calls=[tool(1, "{}")]), told(1, HIDDEN)],
     ["dropped parts[0]", "synthesized payload.result"], {"settings": DROPPING}),
    ([ASK, said(TextPart(text="Hi.", state={"chunk": CHUNK}), origin=OWN), ASK], [chat("Hi.")],
     ["withheld parts[0].state"]),
    ([ASK, said(TextPart(text="Hi.", state={"chunk": CHUNK}), origin=OWN), ASK], [chat([CHUNK])], [], ECHO),
    ([ASK, said(*SUNG, origin=OWN), ASK], [{"role": "assistant", "audio": {"id": "audio_1"}}], []),
    ([ASK, said(*SUNG, origin=AWAY), ASK], [chat([text("[audio not shown]"), text("Hello.")])],
     ["withheld parts[0].state", "withheld parts[1].state", "downgraded parts[0]"]),
    ([ASK, said(SOUND, origin=AWAY)], [], ["dropped parts[0]"], {"settings": DROPPING}),
    ([ASK, THOUGHT, ASK],
     [chat([EMPTY, text("Ah."), BLOCK], reasoning_content="Hm. ", reasoning_details=ENCRYPTED)], [], ECHO),
    ([ASK, THOUGHT, ASK], [chat("Ah.")], ["dropped parts[0]", "dropped parts[1]", "dropped parts[3]"]),
    ([sabir.user("a"), sabir.user("b")], [{"role": "user", "content": "a\n\nb"}], [], JOINED),
    ([sabir.user("a"), sabir.user("b", PIXEL)], [{"role": "user", "content": [text("a"), text("b"), IMAGE]}], [],
     JOINED),
    ([sabir.user("a", "b"), said("He", "llo.")], [{"role": "user", "content": "a\n\nb"}, chat("Hello.")], [], PLAIN),
    ([sabir.user("a", "b"), said("He", "llo.")],
     [{"role": "user", "content": [text("a"), text("b")]}, chat([text("He"), text("llo.")])], []),
]  # fmt: skip

# ---- OpenAI, Responses

FC = {"id": "fc_1", "status": "completed", "namespace": "n"}
LOCAL = {"type": "local_shell_call", "id": "lsh_1", "call_id": "call_1", "action": {"type": "exec"}}
WAVE = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
ADDED = {"type": "additional_tools", "role": "developer", "tools": []}
OWN_TEXT = {"type": "output_text", "text": "Hm.", "annotations": []}
OPEN = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]}
CITATION = TextPart(text="See.", citations=(Citation(kind="url_citation", url="https://e.org"),))
SPEECH = (TextPart(text="Yes."), RefusalPart(text="No."), PIXEL)


def shell(name: str) -> dict[str, Any]:
    return {"type": "local_shell_call_output", name: "call_1", "output": "x"}


def half(block: Any, pair: Any) -> OpaquePart:
    return own(RESPONSES, block, pair_id="call_1", pair=pair)


def inputs(*content: Any, role: str = "user") -> dict[str, Any]:
    parts = [{"type": "input_text", "text": each} if isinstance(each, str) else each for each in content]
    return {"type": "message", "role": role, "content": parts}


RESPONSE: list[tuple[Any, ...]] = [
    ([sabir.system("A."), sabir.system("B."), ASK, sabir.system("D.")],
     [inputs(each, role="system") for each in ("A.", "B.", "D.")], []),
    ([call(1, FAR, **RAW, state=FC), result()],
     [item(RAW["raw_arguments"], **FC), output() | {"namespace": "n", "name": "weather"}], []),
    ([call(1, FAR.model_copy(update={"model": "gpt-4o"}), **RAW, state=FC), result()],
     [item(RAW["raw_arguments"]), output()], ["withheld payload.state"]),
    ([call(1, AWAY, **RAW, state=FC), result()], [item('{"city":"Ulm"}'), output()], ["withheld payload.state"]),
    ([call(1, FAR, state={"id": "call_1", "status": "completed"}), result()],
     [item("{}", status="completed"), output()], ["withheld payload.state"]),
    ([call(1, OWN, raw_arguments="{city", invalid_arguments=True), result()],
     [item('{"invalid_json":"{city"}'), output()], ["rewritten payload.arguments"]),
    ([call(1, OWN, state={"type": "custom"}), result()], [item("{}"), output()],
     ["withheld payload.state", "downgraded payload"]),
    ([call(), result(parts=[SOUND])], [item("{}"), output(HIDDEN)],
     ["dropped parts[0]", "synthesized payload.result"], {"settings": DROPPING}),
    ([ASK, said(ReasoningPart(text="Hm."), *SPEECH, origin=AWAY), ASK],
     [spoken("Yes."), spoken("No."), spoken("[image not shown]")],
     ["dropped parts[0]", "downgraded parts[2]", "downgraded parts[3]"]),
    ([said(*SPEECH, origin=AWAY)], [spoken("Yes."), spoken("No.")], ["downgraded parts[1]", "dropped parts[2]"],
     {"settings": DROPPING}),
    ([by_user("Listen:", *(own(RESPONSES, each) for each in (WAVE, ADDED, WAVE)), "Well?"),
      said(own(RESPONSES, OWN_TEXT), own(RESPONSES, ADDED), origin=FAR), ASK],
     [inputs("Listen:", WAVE), ADDED, inputs(WAVE, "Well?"), inputs(OWN_TEXT, role="assistant"), ADDED], []),
    *(([ASK, said(half(LOCAL, "opens"), origin=FAR), by_user(half(shell(name), "closes"))], [LOCAL, shell(name)], [])
      for name in ("id", "call_id")),
    ([ASK, said(half(LOCAL, "opens"), origin=FAR), ASK], [], ["dropped parts[0]"]),
    ([ASK, said(ReasoningPart(text="Hm.", state=OPEN), "Yes.", origin=FAR), ASK], [OPEN, spoken("Yes.")], []),
    *(([said(CITATION, origin=origin)], [spoken("See.")], ["dropped parts[0].citations"])
      for origin in (FAR, AWAY, None)),
]  # fmt: skip
ROWS = [
    (name, *row) if len(row) == 4 else (name, *row, {})
    for name, rows in zip(DIALECTS, (CLAUDES, GEMINIS, CHATS, RESPONSE), strict=True) for row in rows
]  # fmt: skip


@pytest.mark.parametrize(("name", "history", "sent", "lost", "how"), ROWS)
def test_a_conversation_is_these_items_with_these_losses(
    name: str, history: list[Message], sent: list[Any], lost: list[str], how: dict[str, Any]
) -> None:
    quirks, rejects = how.get("quirks", ()), how.get("rejects", ())
    info = None if name == CLAUDE and not quirks else ModelInfo(prefix="", rejects=rejects)
    given = {**how.get("settings", {}), "model": how.get("model", ""), "quirks": quirks, "info": info}
    rendering = render(name, *history, **given)

    assert [each for each in body(rendering)[ITEMS[name]] if each != ASKED[name]] == sent
    assert [f"{loss.kind} {loss.path}" for loss in rendering.losses] == lost


def test_white_space_alone_is_no_conversation() -> None:
    """Anthropic refuses it, and so is it here."""
    with pytest.raises(RenderingRefused):
        render(CLAUDE, said(" "))


def test_ids_that_a_wire_does_not_take_become_valid() -> None:
    payload = OptionCallPayload(invocation_id="call|1", option_name="9 lives.now")
    asked = Message(policy="llm", origin=FAR, payload=payload)
    answer = sabir.OptionResultBuilder.response_to(asked).success("x")
    rendering = render(CLAUDE, ASK, asked, answer)
    use, used = (each["content"][0] for each in body(rendering)["messages"][1:])
    assert use["id"] == used["tool_use_id"] and "|" not in use["id"]
    rendering = render(GEMINI, ASK, asked, answer)
    function, response = (each["parts"][0] for each in body(rendering)["contents"][1:])
    assert function["functionCall"]["name"].startswith("x9_lives.now_")
    assert response["functionResponse"]["name"] == function["functionCall"]["name"]
    assert [loss.path for loss in rendering.losses] == ["payload.option_name"]
