"""A stored Chat Completions request → messages, options and settings.

    system, developer ─▶ policy "system"      user ─▶ policy "user"      assistant ─▶ the scope's policy
    tool              ─▶ a result of the option that its call names

What the assistant said has its origin here, so that it goes back as it came. Roles need no hint: policies render to
them. A `name` beside a role is a loss. The older `functions`,
`function_call` and role `function` become options, calls and results, and render as today's (loss: rewritten).
"""

from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

from sabir import DecodedHistory, MediaPart, OpaquePart, OptionCallPayload
from sabir.authoring import (
    DecodeScope,
    Fields,
    JSONValue,
    KnownPart,
    Leaf,
    ReplyBuilder,
    data_url,
    expect,
    expect_name,
    fields,
    file_url,
    listed,
    medium,
    one_line,
    read_request,
    read_text,
    text,
)
from sabir.errors import HistoryInvalid

from sabir_openai.chat_decode import message_blocks
from sabir_openai.history import RequestHistory, read_streaming
from sabir_openai.settings import ChatOptionHints, ChatSettings

_NEUTRAL: Mapping[str, str] = {
    "max_completion_tokens": "max_output_tokens",
    "max_tokens": "max_output_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "stop": "stop",
    "seed": "seed",
    "reasoning_effort": "reasoning_effort",
    "parallel_tool_calls": "parallel_options",
}
"""Field → the neutral setting that says the same; of two for one, the first is neutral and the other verbatim."""
_SOUNDS: Mapping[str, str] = {"mp3": "audio/mpeg", "wav": "audio/wav"}
_CHOSEN: Mapping[str, frozenset[str]] = {
    "function": frozenset({"name", "arguments"}),
    "custom": frozenset({"name", "input"}),
}
"""Kind of a call → what its inner object says; the call's own further fields are its state."""
_OLDER = "the older form becomes today's"
_NO_PLACE = "a message has no place for it"


def decode_history(body: bytes, scope: DecodeScope) -> DecodedHistory:
    """The request as sabir's own data; HistoryInvalid for what is no request of this dialect."""
    found = read_request(body, scope)
    history = RequestHistory(found, scope, ChatSettings)
    reader = _Messages(history)
    for index, message in enumerate(expect(found.get("messages"), list, "messages")):
        path = f"messages[{index}]"
        reader.take(expect(message, dict, path), path)
    _settings(history, found)
    return history.whole()


def _image(found: Fields, scope: DecodeScope) -> MediaPart | None:
    return medium("image", text(found.get("url")))


def _sound(found: Fields, scope: DecodeScope) -> MediaPart | None:
    form, data = text(found.get("format")), text(found.get("data"))
    return medium("audio", f"data:{_SOUNDS.get(form, f'audio/{form}')};base64,{data}") if data else None


def _file(found: Fields, scope: DecodeScope) -> MediaPart | None:
    data = text(found.get("file_data"))
    url = data_url(data, "application/pdf") if data else file_url(found.get("file_id"), scope)
    return medium("document", url, found.get("filename"))


_LEAVES: Mapping[str, Leaf] = {
    "text": Leaf("", read_text, frozenset({"text"})),
    "image_url": Leaf("image_url", _image, frozenset({"url"})),
    "input_audio": Leaf("input_audio", _sound, frozenset({"data", "format"})),
    "file": Leaf("file", _file, frozenset({"file_data", "file_id", "filename"})),
}


class _Messages:
    """Reads messages in order; results find their option by the calls before them."""

    def __init__(self, history: RequestHistory) -> None:
        self.history = history
        self.unanswered: dict[str, list[str]] = {}
        """Option name → ids made up for its calls in the older form, which have none."""

    def take(self, message: Fields, path: str) -> None:
        """Read one message."""
        read = _ROLES.get(text(message.get("role")))
        if read is None:
            shown = one_line(ascii(message.get("role")), 40)
            raise HistoryInvalid(f"{path}.role is {shown}; expected one of {', '.join(sorted(_ROLES))}")
        read(self, message, path)

    def system(self, message: Fields, path: str) -> None:
        """Instructions, under either name."""
        self._say("system", message, path)

    def user(self, message: Fields, path: str) -> None:
        """Texts and media."""
        self._say("user", message, path)

    def _say(self, policy: str, message: Fields, path: str) -> None:
        self.history.lose_unknown(message, {"role", "content"}, path, _NO_PLACE)
        self.history.say(policy, self._content(message.get("content"), f"{path}.content"), path)

    def _content(self, content: JSONValue, path: str) -> list[KnownPart]:
        """The parts; a part of a kind that no part is stays as it is, for this dialect alone."""
        listed = [content] if isinstance(content, str) else expect(content, list, path)
        parts = []
        for index, each in enumerate(listed):
            read = self.history.part(each, _LEAVES, f"{path}[{index}]")
            parts.append(read or OpaquePart(dialect=self.history.scope.target.dialect, block=each))
        return parts

    def assistant(self, message: Fields, path: str) -> None:
        """What the model said and called, as decoding its response gives it."""
        if not isinstance(message.get("content"), str | list | None):
            raise HistoryInvalid(f"{path}.content is {ascii(message['content'])[:40]}; expected a string or an array")
        self._check_calls(message, path)
        placed, left = message_blocks(message, self.history.scope)
        builder = ReplyBuilder(self.history.scope)
        sound = self._sound(left)
        for block in (each for _, each in placed if not isinstance(each, OptionCallPayload)):
            builder.add(block)
        if sound is not None:
            builder.add(sound)
        for payload in (each for _, each in placed if isinstance(each, OptionCallPayload)):
            builder.add(payload)
        said = builder.messages(self.history.origin)
        self.history.extend(said)
        self.history.lose_unknown(left, (), path, _NO_PLACE)
        if not said:
            self.history.lose("dropped", path, "the message is empty")
        if message.get("function_call") is not None and (call := said[-1].call):
            self.unanswered.setdefault(call.option_name, []).append(call.invocation_id)
            self.history.lose("rewritten", f"{path}.function_call", _OLDER)

    def _sound(self, left: dict[str, Any]) -> MediaPart | None:
        """A sound that the vendor keeps, by its id."""
        name = text(fields(left.get("audio")).get("id"))
        state = {"audio": {"id": name}}
        part = medium("audio", file_url(name, self.history.scope)) if name else None
        if part is not None:
            del left["audio"]
        return part and part.model_copy(update={"state": state})

    def _check_calls(self, message: Fields, path: str) -> None:
        calls = message.get("tool_calls")
        for index, call in enumerate([] if calls is None else expect(calls, list, f"{path}.tool_calls")):
            place = f"{path}.tool_calls[{index}]"
            kind = "custom" if "custom" in expect(call, dict, place) else "function"
            chosen: dict[str, Any] = expect(call.get(kind), dict, f"{place}.{kind}")
            expect_name(chosen.get("name"), f"{place}.{kind}.name")
            self.history.lose_unknown(chosen, _CHOSEN[kind], f"{place}.{kind}", _NO_PLACE)
            if call.get("index") not in (None, index):
                self.history.lose("dropped", f"{place}.index", _NO_PLACE)
            if not text(call.get("id")):
                self.history.lose("synthesized", f"{place}.id", "it is missing; one is made up")
        if message.get("function_call") is not None:
            place = f"{path}.function_call"
            expect_name(expect(message["function_call"], dict, place).get("name"), f"{place}.name")

    def tool(self, message: Fields, path: str) -> None:
        """The result of one call; its content is text, which no flag calls an error."""
        call_id, name = expect_name(message.get("tool_call_id"), f"{path}.tool_call_id"), text(message.get("name"))
        said = message.get("content")
        known = ["role", "content", "tool_call_id"]
        if name == self.history.names.get(call_id, name):
            known.append("name")
        self.history.lose_unknown(message, known, path, _NO_PLACE)
        answer = said if isinstance(said, str) else self._content(said, f"{path}.content")
        self.history.answer(call_id, answer, path, name)

    def function(self, message: Fields, path: str) -> None:
        """The result of a call in the older form: the first of that option that has none."""
        name = expect_name(message.get("name"), f"{path}.name")
        waiting = self.unanswered.get(name)
        call_id = waiting.pop(0) if waiting else f"call_{uuid4().hex}"
        self.history.lose_unknown(message, {"role", "content", "name"}, path, _NO_PLACE)
        self.history.lose("rewritten", path, _OLDER)
        said = "" if message.get("content") is None else expect(message["content"], str, f"{path}.content")
        self.history.answer(call_id, said, path, name)


_ROLES: Mapping[str, Callable[[_Messages, Fields, str], None]] = {
    "system": _Messages.system,
    "developer": _Messages.system,
    "user": _Messages.user,
    "assistant": _Messages.assistant,
    "tool": _Messages.tool,
    "function": _Messages.function,
}


def _settings(history: RequestHistory, found: Fields) -> None:
    for index, tool in enumerate(listed(found, "tools")):
        is_function = fields(tool).get("type") == "function"
        history.offer(
            tool, fields(tool).get("function") if is_function else None, ChatOptionHints, f"tools[{index}].function"
        )
    for index, function in enumerate(listed(found, "functions")):
        history.offer({"type": "function", "function": function}, function, ChatOptionHints, f"functions[{index}]")
        history.lose("rewritten", f"functions[{index}]", _OLDER)
    for name in dict.fromkeys((*_NEUTRAL, *found)):
        value = found.get(name)
        if name in _READ or (value is None and name in _NEUTRAL.keys() | ChatSettings.model_fields.keys()):
            continue
        if name in _NEUTRAL:
            history.put(_NEUTRAL[name], value, name)
        else:
            history.put_vendor(name, value)
    _choice(history, found)
    _format(history, found.get("response_format"))
    read_streaming(history, found)


def _choice(history: RequestHistory, found: Fields) -> None:
    if (older := found.get("function_call")) is not None:
        history.lose("rewritten", "function_call", _OLDER)
        if not history.choose(older, text(fields(older).get("name"))):
            history.put_extra("function_call", older)
    choice = fields(found.get("tool_choice"))
    name = text(fields(choice.get(text(choice.get("type")))).get("name"))
    if found.get("tool_choice") is not None and not history.choose(found["tool_choice"], name):
        history.put_vendor("tool_choice", found["tool_choice"])


def _format(history: RequestHistory, wanted: JSONValue) -> None:
    found = fields(wanted)
    path = "response_format.json_schema"
    is_schema = found.get("type") == "json_schema" and history.hold_to_format(fields(found.get("json_schema")), path)
    if wanted is not None and not is_schema:
        history.put_extra("response_format", wanted)


_READ = frozenset(
    {
        "model", "messages", "tools", "functions", "tool_choice", "function_call", "response_format", "stream",
        "stream_options",
    }
)  # fmt: skip
"""Fields that have a reader of their own."""
