"""Turns → Chat Completions messages, with one function for each kind of part.

    system ─▶ developer | system     user ─▶ user     results ─▶ tool, one for each result
    assistant ─▶ {content, audio?, tool_calls?}: its parts in order, then its calls

An error result is the JSON text {"error": {"type", "message", "retryable"?}}, because the API has no field for errors.
"""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from sabir import MediaPart, OpaquePart, ReasoningPart, TextPart
from sabir.authoring import (
    Entry,
    FrozenDict,
    LossLog,
    Piece,
    Turn,
    TurnScope,
    encode_json,
    list_or_empty,
    object_or_empty,
    text_or_empty,
    without_fields,
)

from sabir_openai.settings import is_openai

CUSTOM_TOOL_DIALECT = "openai.chat"
"""The dialect whose calls may belong to a custom tool. The state of such a call contains `"type": "custom"`."""
REASONING_FIELD = "reasoning_content"
"""The message field that endpoints with the quirk `needs_reasoning` require in messages with calls."""
ChatObject = dict[str, Any]
"""A JSON object of the request."""
_OFFICE = "application/vnd.openxmlformats-officedocument."
_OPEN = "application/vnd.oasis.opendocument."
_EXTENSIONS = {
    "application/pdf": ".pdf", "application/json": ".json", "application/xml": ".xml", "application/rtf": ".rtf",
    "application/csv": ".csv", "application/x-ndjson": ".jsonl",
    "application/msword": ".doc", "application/vnd.ms-excel": ".xls", "application/vnd.ms-powerpoint": ".ppt",
    "application/vnd.ms-outlook": ".msg", "application/vnd.ms-word.document.macroenabled.12": ".docm",
    "application/vnd.ms-excel.sheet.macroenabled.12": ".xlsm",
    "application/vnd.ms-powerpoint.presentation.macroenabled.12": ".pptm",
    f"{_OFFICE}wordprocessingml.document": ".docx", f"{_OFFICE}wordprocessingml.template": ".dotx",
    f"{_OFFICE}spreadsheetml.sheet": ".xlsx", f"{_OFFICE}spreadsheetml.template": ".xltx",
    f"{_OFFICE}presentationml.presentation": ".pptx", f"{_OFFICE}presentationml.slideshow": ".ppsx",
    f"{_OPEN}text": ".odt", f"{_OPEN}spreadsheet": ".ods", f"{_OPEN}presentation": ".odp",
    "text/plain": ".txt", "text/markdown": ".md", "text/csv": ".csv", "text/tab-separated-values": ".tsv",
    "text/rtf": ".rtf", "text/xml": ".xml", "text/css": ".css", "text/calendar": ".ics", "text/vcard": ".vcf",
    "text/yaml": ".yaml", "text/x-yaml": ".yaml", "text/x-python": ".py", "text/x-script.python": ".py",
    "text/x-c": ".c", "text/x-c++": ".cpp", "text/x-csharp": ".cs", "text/x-java": ".java", "text/x-php": ".php",
    "text/x-ruby": ".rb", "text/x-sh": ".sh", "text/x-tex": ".tex", "text/x-typescript": ".ts", "text/x-go": ".go",
    "text/x-rust": ".rs", "text/x-diff": ".diff", "text/x-sql": ".sql",
}  # fmt: skip
"""MIME type of a document without a name → the extension of its generated name. Other types get no extension.

The module `mimetypes` is not used, because it reads files of the machine, so requests would differ between machines.
"""
FILLER = "…"
"""The text of the message that is inserted between two messages of one role, if the roles must alternate."""


def encode_turn(turn: Turn, scope: TurnScope, losses: LossLog) -> list[ChatObject]:
    """Return the messages of one turn, in order. A filler message comes first if the roles would not alternate, but
    the endpoint requires this.
    """
    messages = _SIDES[turn.side](turn, scope, losses)
    if messages and "joins_turns" in scope.quirks and _ROLES.get(turn.follows or "") == messages[0]["role"]:
        role = "assistant" if messages[0]["role"] == "user" else "user"
        reason = f"{scope.target} requires alternating roles; a message {FILLER!r} was inserted before this message"
        losses.add("synthesized", reason, message=turn.entries[0].message)
        messages = [{"role": role, "content": FILLER}, *messages]
    return messages


def _input_messages(turn: Turn, scope: TurnScope, losses: LossLog) -> list[ChatObject]:
    """Return the messages of a system or user turn: one for each message of sabir, or a single one if roles must
    alternate.
    """
    role: str = turn.side
    # From o1 on, OpenAI's models read instructions from `developer` messages. Many other endpoints refuse this role.
    if role == "system" and scope.model_info.reasoning and is_openai(scope):
        role = "developer"
    entries = [turn.entries] if "joins_turns" in scope.quirks else [(entry,) for entry in turn.entries]
    contents = [[_content_part(piece, scope) for entry in each for piece in entry.pieces] for each in entries]
    return [{"role": role, "content": _message_content(parts, scope)} for parts in contents if parts]


def _message_content(parts: list[ChatObject], scope: TurnScope, separator: str = "\n\n") -> str | list[ChatObject]:
    """Return the content of a message: a string for a single text, otherwise an array of parts.

    For an endpoint with the quirk `plain_text`, several texts are joined into one string with the separator. With the
    quirk `cache_markers`, a single text is an array too, because only an array can have a marker.
    """
    # A FrozenDict is an endpoint's own block, which is sent back unchanged whatever its type is.
    texts = [part["text"] for part in parts if type(part) is dict and part["type"] == "text"]
    is_single = len(parts) == 1 and "cache_markers" not in scope.quirks
    is_string = len(texts) == len(parts) and (is_single or "plain_text" in scope.quirks)
    return separator.join(texts) if is_string else parts


def _content_part(piece: Piece, scope: TurnScope) -> ChatObject:
    """Return the content part for a text or a medium, with the medium's hints."""
    if not isinstance(piece, MediaPart):
        return {"type": "text", "text": piece.text if isinstance(piece, TextPart) else ""}
    encode = next((encode for quirk, encode in _DOCUMENTS.items() if quirk in scope.quirks), _file_part)
    part = encode(piece) if piece.modality == "document" else _MEDIA[piece.modality](piece)
    hints = scope.target.hints_of(piece)
    if "detail" in hints:
        part["image_url"]["detail"] = hints["detail"]
    return {**part, **without_fields(hints, "detail")} if hints else part


def base64_url(piece: MediaPart) -> str:
    """Return the part's data URL with a base64 payload. Convert a percent-encoded payload to base64."""
    data_url = piece.data_url()
    return piece.url if data_url.is_base64 else f"data:{data_url.mime}{data_url.parameters};base64,{data_url.base64}"


def file_name(part: MediaPart) -> str:
    """Return the name of a document, which the API requires together with the data.

    For a document without a name, return "document" with an extension for its MIME type, if known. For a document with
    a URL, return the last segment of the URL's path, or "document" if that is empty.
    """
    if part.name or part.form == "data":
        return part.name or f"document{_EXTENSIONS.get(part.data_url().mime, '')}"
    return PurePosixPath(urlsplit(part.url).path).name or "document"


def _image_url_part(piece: MediaPart) -> ChatObject:
    return {"type": "image_url", "image_url": {"url": _media_url(piece)}}


def _input_audio_part(piece: MediaPart) -> ChatObject:
    data_url = piece.data_url()
    audio_format = "wav" if "wav" in data_url.mime else "mp3"
    return {"type": "input_audio", "input_audio": {"data": data_url.base64, "format": audio_format}}


def _file_part(piece: MediaPart) -> ChatObject:
    if piece.form == "file":
        return {"type": "file", "file": {"file_id": piece.provider_file()[1]}}
    return {"type": "file", "file": {"filename": file_name(piece), "file_data": base64_url(piece)}}


def _document_url_part(piece: MediaPart) -> ChatObject:
    if piece.form == "file":
        return {"type": "file", "file_id": piece.provider_file()[1]}
    url = _media_url(piece)
    return {"type": "document_url", "document_url": url, **({"document_name": piece.name} if piece.name else {})}


def _file_url_part(piece: MediaPart) -> ChatObject:
    url = piece.data_url().base64 if piece.form == "data" else piece.url
    return {"type": "file_url", "file_url": {"url": url}, **({"file_name": piece.name} if piece.name else {})}


def _file_data_part(piece: MediaPart) -> ChatObject:
    if piece.form == "file":
        return _file_part(piece)
    return {"type": "file", "file": {"filename": file_name(piece), "file_data": _media_url(piece)}}


def _video_url_part(piece: MediaPart) -> ChatObject:
    return {"type": "video_url", "video_url": {"url": _media_url(piece)}}


def _media_url(piece: MediaPart) -> str:
    return base64_url(piece) if piece.form == "data" else piece.url


_DOCUMENTS = {"document_url": _document_url_part, "file_url": _file_url_part, "file_data_url": _file_data_part}
"""Quirk → the function that creates a document's content part for endpoints with this quirk."""
_MEDIA = {"image": _image_url_part, "audio": _input_audio_part, "video": _video_url_part}


def _tool_messages(turn: Turn, scope: TurnScope, losses: LossLog) -> list[ChatObject]:
    """Return a `tool` message for each result. An endpoint without calls gets all results in one user message."""
    if "no_calls" in scope.quirks:
        texts = (_result_as_text(entry, scope, losses) for entry in turn.entries)
        return [{"role": "user", "content": "\n\n".join(texts)}]
    return [
        {"role": "tool", "tool_call_id": entry.wire_id, "content": _tool_content(entry, scope, losses)}
        for entry in turn.entries
    ]


def _tool_content(entry: Entry, scope: TurnScope, losses: LossLog) -> str | list[ChatObject]:
    """Return the content for a result: the error and the parts, or the value as text."""
    parts = [{"type": "text", "text": entry.result.error_text}] if entry.result.is_error else []
    parts += [_content_part(piece, scope) for piece in entry.pieces if isinstance(piece, TextPart | MediaPart)]
    if not parts and "cache_markers" in scope.quirks:
        parts = [{"type": "text", "text": entry.result_text(losses)}]
    return _message_content(parts, scope) if parts else entry.result_text(losses)


def _result_as_text(entry: Entry, scope: TurnScope, losses: LossLog) -> str:
    """Return a result as text, for an endpoint that does not accept calls, and report a loss."""
    reason = f"{scope.target} accepts no tool results; the result was sent as text"
    losses.add("downgraded", reason, message=entry.message)
    result = _tool_content(entry, scope, losses)
    return f"[result of {entry.wire_name}]\n{result if isinstance(result, str) else encode_json(result)}"


def _call_as_text(entry: Entry, scope: TurnScope, losses: LossLog) -> ChatObject:
    """Return a call as a text part, for an endpoint that does not accept calls, and report a loss."""
    losses.add("downgraded", f"{scope.target} accepts no tool calls; the call was sent as text", message=entry.message)
    return {"type": "text", "text": f"[call of {entry.wire_name}: {call_arguments(entry, scope, losses)}]"}


def _assistant_message(turn: Turn, scope: TurnScope, losses: LossLog) -> list[ChatObject]:
    """Return a list with the assistant message of a turn; an empty list if the message would have no content."""
    message = _AssistantMessage(turn, scope, losses)
    for entry in turn.entries:
        if entry.wire_id and "no_calls" in scope.quirks:
            message.parts.append(_call_as_text(entry, scope, losses))
        elif entry.wire_id:
            message.calls.append(_tool_call(entry, scope, losses))
        for piece in entry.pieces:
            message.add(piece, entry)
    return message.build()


class _AssistantMessage:
    """Builds one assistant message from the pieces of a turn."""

    __slots__ = ("calls", "fields", "last_entry", "losses", "parts", "refusals", "scope", "turn")

    def __init__(self, turn: Turn, scope: TurnScope, losses: LossLog) -> None:
        self.turn = turn
        self.scope = scope
        self.losses = losses
        self.parts: list[ChatObject] = []
        self.calls: list[ChatObject] = []
        self.fields: ChatObject = {}
        self.last_entry: Entry | None = None
        """The entry of the last text."""
        self.refusals: list[tuple[ChatObject, Piece, Entry]] = []
        """The refusals among `parts`, each with its source part and entry."""

    def add(self, piece: Piece, entry: Entry) -> None:
        """Add one part of the turn to the message, or report it as a loss."""
        if self.calls and piece.kind != "reasoning":
            reason = "in a message, tool calls must come last; this part was moved before them"
            self.losses.lose("relocated", reason, piece, entry)
        state = {} if isinstance(piece, OpaquePart) else entry.state_of(piece)
        content_part = piece.block if isinstance(piece, OpaquePart) else state.get("chunk")
        if content_part is not None and "echoes_reasoning" in self.scope.quirks:
            self.parts.append(FrozenDict(content_part) if type(content_part) is dict else content_part)
        elif isinstance(piece, OpaquePart):
            reason = f"{self.scope.target} does not accept this type of block in requests"
            self.losses.lose("dropped", reason, piece, entry)
        elif isinstance(piece, TextPart):
            if "chunk" in state:
                reason = f"{self.scope.target} accepts only the text back, not its further fields"
                self.losses.lose("withheld", reason, piece, entry, ".state")
            audio_id = object_or_empty(self.fields.get("audio")).get("id") if self.fields else None
            if piece.text and (audio_id is None or state.get("transcript_of") != audio_id):
                self._append_text(piece.text, entry)
        elif isinstance(piece, MediaPart):
            self._add_audio_id(piece, text_or_empty(object_or_empty(state.get("audio")).get("id")), entry)
        elif isinstance(piece, ReasoningPart):
            self._add_reasoning(piece, state, entry)
        elif "plain_text" in self.scope.quirks:
            reason = f"{self.scope.target} accepts no refusals; the refusal was sent as text"
            self.losses.lose("downgraded", reason, piece, entry)
            self._append_text(piece.text, entry)
        else:
            self.parts.append({"type": "refusal", "refusal": piece.text})
            self.refusals.append((self.parts[-1], piece, entry))

    def _append_text(self, text: str, entry: Entry) -> None:
        """Add a text; for the quirk `plain_text`, which joins texts, with a blank line between two messages."""
        if text:
            is_next = bool(self.parts) and self.last_entry is not entry and "plain_text" in self.scope.quirks
            self.parts.append({"type": "text", "text": f"\n\n{text}" if is_next else text})
            self.last_entry = entry

    def _add_audio_id(self, piece: MediaPart, identifier: str, entry: Entry) -> None:
        """Add the assistant's audio by its id. A second audio, or one without an id, becomes a placeholder (a loss)."""
        if identifier and "audio" not in self.fields:
            self.fields["audio"] = {"id": identifier}
            return
        reason = f"{self.scope.target.dialect} accepts an assistant's audio only by its id, at the API that created it"
        self._append_text(self.scope.placeholder_or_drop(reason, piece, entry, self.losses), entry)

    def _add_reasoning(self, piece: ReasoningPart, state: Mapping[str, Any], entry: Entry) -> None:
        """Add reasoning in the fields in which it arrived if the endpoint accepts it back. Otherwise, report a loss."""
        name, details = text_or_empty(state.get("field")), list_or_empty(state.get("details"))
        if not name and not details and "needs_reasoning" in self.scope.quirks:
            name = REASONING_FIELD
        if "echoes_reasoning" in self.scope.quirks and (name or details):
            for field in filter(None, (name, text_or_empty(state.get("also")))):
                self.fields[field] = self.fields.get(field, "") + piece.text
            if details:
                self.fields["reasoning_details"] = [*self.fields.get("reasoning_details", ()), *details]
        else:
            self.losses.lose("dropped", f"{self.scope.target} does not accept its reasoning back", piece, entry)

    def build(self) -> list[ChatObject]:
        """Return a list with the message. Return an empty list if the message would have no content."""
        for part, piece, entry in self.refusals if len(self.parts) > 1 else ():
            reason = "a refusal must be the only part of its message; it was sent as text"
            self.losses.lose("downgraded", reason, piece, entry)
            text = part["refusal"]
            part.clear()
            part.update(type="text", text=text)
        message: ChatObject = {"role": "assistant"}
        if self.parts:
            message["content"] = _message_content(self.parts, self.scope, separator="")
        elif self.calls:
            message["content"] = None
        elif "audio" not in self.fields:
            return []
        if self.calls and "needs_reasoning" in self.scope.quirks:
            self._add_empty_reasoning()
        message |= self.fields
        if self.parts and "cache_markers" in self.scope.quirks:
            message["content"] = message.pop("content")  # so that a message without calls ends with its last part
        if self.calls:
            message["tool_calls"] = self.calls
        return [message]

    def _add_empty_reasoning(self) -> None:
        """Add an empty reasoning text if the turn has no reasoning, because the endpoint requires reasoning in a
        message with calls.
        """
        if REASONING_FIELD in self.fields:
            return
        self.fields[REASONING_FIELD] = ""
        reason = f"{self.scope.target} requires reasoning in messages with calls; an empty text was sent"
        first = next(entry for entry in self.turn.entries if entry.wire_id)
        self.losses.add("synthesized", reason, message=first.message, path=REASONING_FIELD)


def _tool_call(entry: Entry, scope: TurnScope, losses: LossLog) -> ChatObject:
    """Return the item of `tool_calls` for a call, which may be a call of a custom tool."""
    state = entry.call_state
    if state.get("type") == "custom":
        kind, inner = "custom", {"input": text_or_empty(entry.arguments_value(losses).get("input"))}
    else:
        kind, inner = "function", {"arguments": call_arguments(entry, scope, losses)}
    tool_call = {"id": entry.wire_id, "type": kind, kind: {"name": entry.wire_name, **inner}}
    return {**tool_call, **object_or_empty(state.get("further"))} if state else tool_call


def call_arguments(entry: Entry, scope: TurnScope, losses: LossLog) -> str:
    """Return the arguments of a function call as JSON text. For a custom tool's call of another model or API, return an
    object with the call's text, and report a loss.

    Invalid arguments from the same dialect are sent to OpenAI and Azure unchanged: they answered recorded requests with
    "15 * 4" (chat) and "[]" (responses). Other servers refuse such calls:
    https://github.com/vllm-project/vllm/issues/43995
    """
    call, origin = entry.message.call, None if entry.keeps_state else entry.message.origin
    is_foreign = origin is not None and origin.dialect == CUSTOM_TOOL_DIALECT
    if is_foreign and call and object_or_empty(call.state).get("type") == "custom":
        reason = "the custom tool call was sent as a function call"
        losses.add("downgraded", reason, message=entry.message, path="payload")
    return entry.arguments_text(scope.target, losses, verbatim=is_openai(scope))


_ROLES = {"user": "user", "results": "user", "assistant": "assistant"}
"""Side of the preceding turn → its role, for endpoints whose roles must alternate."""
_SIDES = {
    "system": _input_messages, "user": _input_messages, "assistant": _assistant_message, "results": _tool_messages,
}  # fmt: skip
"""Side of a turn → the function that returns its messages."""
