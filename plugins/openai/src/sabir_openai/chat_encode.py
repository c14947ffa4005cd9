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
    KnownPart,
    LossLog,
    Turn,
    TurnScope,
    encode_json,
    list_or_empty,
    object_or_empty,
    text_or_empty,
    without_fields,
)

from sabir_openai.settings import is_openai

CUSTOM_CALLS = "openai.chat"
"""The dialect in whose histories a call's state may say that the call belongs to a custom tool (`"type": "custom"`)."""
REASONING_FIELD = "reasoning_content"
"""The message field with the reasoning, which endpoints with the quirk `needs_reasoning` require."""
Wire = dict[str, Any]
"""A JSON object of the request."""
_OFFICE = "application/vnd.openxmlformats-officedocument."
_OPEN = "application/vnd.oasis.opendocument."
_ENDINGS = {
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
"""MIME type of a document without a name → the extension of its generated name. Other types get no extension. The
module `mimetypes` is not used because it reads files of the machine, so requests would differ between machines."""


FILLER = "…"
"""The text of the message that is inserted between two messages of one role, if the roles must alternate."""


def encode_turn(turn: Turn, scope: TurnScope, losses: LossLog) -> list[Wire]:
    """Return the messages of one turn, in order. If the roles must alternate, a filler message may come first."""
    messages = _SIDES[turn.side](turn, scope, losses)
    if messages and "joins_turns" in scope.quirks and _ROLES.get(turn.follows or "") == messages[0]["role"]:
        role = "assistant" if messages[0]["role"] == "user" else "user"
        reason = f"{scope.target} requires alternating roles, and the message between these two is empty"
        losses.add("synthesized", f"{reason}; {FILLER!r} was sent instead", message=turn.entries[0].message)
        messages = [{"role": role, "content": FILLER}, *messages]
    return messages


def _speakers(turn: Turn, scope: TurnScope, losses: LossLog) -> list[Wire]:
    role: str = turn.side
    # From o1 on, OpenAI's models take instructions as `developer` messages; many other endpoints refuse that role.
    if role == "system" and scope.model_info.reasoning and is_openai(scope):
        role = "developer"
    entries = [turn.entries] if "joins_turns" in scope.quirks else [(entry,) for entry in turn.entries]
    contents = [[_part(piece, scope) for entry in each for piece in entry.pieces] for each in entries]
    return [{"role": role, "content": _content(parts, scope)} for parts in contents if parts]


def _content(parts: list[Wire], scope: TurnScope, separator: str = "\n\n") -> str | list[Wire]:
    """Return the content of a message: a string for a single text, otherwise an array of parts.

    For an endpoint with the quirk `plain_text`, several texts are joined into one string with the separator.
    """
    # An endpoint's own block, sent back unchanged, is a FrozenDict; its `type` does not matter here.
    texts = [part["text"] for part in parts if type(part) is dict and part["type"] == "text"]
    is_string = len(texts) == len(parts) and (len(parts) == 1 or "plain_text" in scope.quirks)
    return separator.join(texts) if is_string else parts


def _part(piece: KnownPart, scope: TurnScope) -> Wire:
    if not isinstance(piece, MediaPart):
        return {"type": "text", "text": piece.text if isinstance(piece, TextPart) else ""}
    form = next((form for quirk, form in _DOCUMENTS.items() if quirk in scope.quirks), _document)
    part = form(piece) if piece.modality == "document" else _MEDIA[piece.modality](piece)
    hints = scope.target.hints_of(piece)
    if "detail" in hints:
        part["image_url"]["detail"] = hints["detail"]
    return {**part, **without_fields(hints, "detail")} if hints else part


def base64_url(piece: MediaPart) -> str:
    """Return the part's data URL with a base64 payload. A percent-encoded payload is converted."""
    data = piece.data_url()
    return piece.url if data.is_base64 else f"data:{data.mime}{data.parameters};base64,{data.base64}"


def file_name(part: MediaPart) -> str:
    """Return the name of a document, which the API requires together with the data.

    A document without a name gets "document" and an extension for its MIME type, or the last segment of its URL.
    """
    if part.name or part.form == "data":
        return part.name or f"document{_ENDINGS.get(part.data_url().mime, '')}"
    return PurePosixPath(urlsplit(part.url).path).name or "document"


def _image(piece: MediaPart) -> Wire:
    return {"type": "image_url", "image_url": {"url": _url(piece)}}


def _audio(piece: MediaPart) -> Wire:
    data = piece.data_url()
    form = "wav" if "wav" in data.mime else "mp3"
    return {"type": "input_audio", "input_audio": {"data": data.base64, "format": form}}


def _document(piece: MediaPart) -> Wire:
    if piece.form == "file":
        return {"type": "file", "file": {"file_id": piece.provider_file()[1]}}
    return {"type": "file", "file": {"filename": file_name(piece), "file_data": base64_url(piece)}}


def _linked_document(piece: MediaPart) -> Wire:
    if piece.form == "file":
        return {"type": "file", "file_id": piece.provider_file()[1]}
    url = _url(piece)
    return {"type": "document_url", "document_url": url, **({"document_name": piece.name} if piece.name else {})}


def _file_url(piece: MediaPart) -> Wire:
    url = piece.data_url().base64 if piece.form == "data" else piece.url
    return {"type": "file_url", "file_url": {"url": url}, **({"file_name": piece.name} if piece.name else {})}


def _file_data_url(piece: MediaPart) -> Wire:
    if piece.form == "file":
        return _document(piece)
    return {"type": "file", "file": {"filename": file_name(piece), "file_data": _url(piece)}}


def _video(piece: MediaPart) -> Wire:
    return {"type": "video_url", "video_url": {"url": _url(piece)}}


def _url(piece: MediaPart) -> str:
    return base64_url(piece) if piece.form == "data" else piece.url


_DOCUMENTS = {"document_url": _linked_document, "file_url": _file_url, "file_data_url": _file_data_url}
"""Quirk → the function that creates a document's content part for endpoints with this quirk."""
_MEDIA = {"image": _image, "audio": _audio, "video": _video}


def _results(turn: Turn, scope: TurnScope, losses: LossLog) -> list[Wire]:
    if "no_calls" in scope.quirks:
        return [{"role": "user", "content": "\n\n".join(_told_result(entry, scope, losses) for entry in turn.entries)}]
    return [
        {"role": "tool", "tool_call_id": entry.wire_id, "content": _result(entry, scope, losses)}
        for entry in turn.entries
    ]


def _result(entry: Entry, scope: TurnScope, losses: LossLog) -> str | list[Wire]:
    parts = [{"type": "text", "text": entry.result.error_text}] if entry.result.is_error else []
    parts += [_part(piece, scope) for piece in entry.pieces if isinstance(piece, TextPart | MediaPart)]
    return _content(parts, scope) if parts else entry.result_text(losses)


def _told_result(entry: Entry, scope: TurnScope, losses: LossLog) -> str:
    """Return a result as text, for an endpoint that does not accept calls, and report a loss."""
    losses.add(
        "downgraded", f"{scope.target} accepts no tool results; the result was sent as text", message=entry.message
    )
    result = _result(entry, scope, losses)
    return f"[result of {entry.wire_name}]\n{result if isinstance(result, str) else encode_json(result)}"


def _told_call(entry: Entry, scope: TurnScope, losses: LossLog) -> Wire:
    """Return a call as a text part, for an endpoint that does not accept calls, and report a loss."""
    losses.add("downgraded", f"{scope.target} accepts no tool calls; the call was sent as text", message=entry.message)
    return {"type": "text", "text": f"[call of {entry.wire_name}: {call_arguments(entry, scope, losses)}]"}


def _assistant(turn: Turn, scope: TurnScope, losses: LossLog) -> list[Wire]:
    answer = _Answer(turn, scope, losses)
    for entry in turn.entries:
        if entry.wire_id and "no_calls" in scope.quirks:
            answer.parts.append(_told_call(entry, scope, losses))
        elif entry.wire_id:
            answer.calls.append(_call(entry, scope, losses))
        for piece in entry.pieces:
            answer.take(piece, entry)
    return answer.messages()


class _Answer:
    """One assistant message under construction."""

    __slots__ = ("calls", "further", "losses", "parts", "refusals", "scope", "turn")

    def __init__(self, turn: Turn, scope: TurnScope, losses: LossLog) -> None:
        self.turn = turn
        self.scope = scope
        self.losses = losses
        self.parts: list[Wire] = []
        self.calls: list[Wire] = []
        self.further: Wire = {}
        self.refusals: list[tuple[Wire, KnownPart, Entry]] = []
        """The refusals among `parts`, each with its source part and entry."""

    def take(self, piece: KnownPart, entry: Entry) -> None:
        """Add one part of the turn to the message, or report it as a loss."""
        if self.calls and piece.kind != "reasoning":
            reason = "in a message, tool calls must come last; this part was moved before them"
            self.losses.lose("relocated", reason, piece, entry)
        state = {} if isinstance(piece, OpaquePart) else entry.state_of(piece)
        chunk = piece.block if isinstance(piece, OpaquePart) else state.get("chunk")
        if chunk is not None and "echoes_reasoning" in self.scope.quirks:
            self.parts.append(FrozenDict(chunk) if type(chunk) is dict else chunk)
        elif isinstance(piece, OpaquePart):
            self.losses.lose(
                "dropped", f"{self.scope.target} does not accept this type of block in requests", piece, entry
            )
        elif isinstance(piece, TextPart):
            if "chunk" in state:
                reason = f"{self.scope.target} accepts only the text back, not its further fields"
                self.losses.lose("withheld", reason, piece, entry, ".state")
            sound_id = object_or_empty(self.further.get("audio")).get("id") if self.further else None
            if piece.text and (sound_id is None or state.get("transcript_of") != sound_id):
                self.parts.append({"type": "text", "text": piece.text})
        elif isinstance(piece, MediaPart):
            self._audio(piece, text_or_empty(object_or_empty(state.get("audio")).get("id")), entry)
        elif isinstance(piece, ReasoningPart):
            self._reasoning(piece, state, entry)
        elif "plain_text" in self.scope.quirks:
            reason = f"{self.scope.target} accepts no refusals; the refusal was sent as text"
            self.losses.lose("downgraded", reason, piece, entry)
            self._text(piece.text)
        else:
            self.parts.append({"type": "refusal", "refusal": piece.text})
            self.refusals.append((self.parts[-1], piece, entry))

    def _text(self, said: str) -> None:
        if said:
            self.parts.append({"type": "text", "text": said})

    def _audio(self, piece: MediaPart, identifier: str, entry: Entry) -> None:
        if identifier and "audio" not in self.further:
            self.further["audio"] = {"id": identifier}
            return
        reason = f"{self.scope.target.dialect} accepts an assistant's audio only by its id, at the API that created it"
        self._text(self.scope.placeholder_or_drop(reason, piece, entry, self.losses))

    def _reasoning(self, piece: ReasoningPart, state: Mapping[str, Any], entry: Entry) -> None:
        name, details = text_or_empty(state.get("field")), list_or_empty(state.get("details"))
        if not name and not details and "needs_reasoning" in self.scope.quirks:
            name = REASONING_FIELD
        if "echoes_reasoning" in self.scope.quirks and (name or details):
            for each in filter(None, (name, text_or_empty(state.get("also")))):
                self.further[each] = self.further.get(each, "") + piece.text
            if details:
                self.further["reasoning_details"] = [*self.further.get("reasoning_details", ()), *details]
        else:
            self.losses.lose("dropped", f"{self.scope.target} does not accept its reasoning back", piece, entry)

    def messages(self) -> list[Wire]:
        """Return a list with the message; an empty list if it would have no content."""
        for part, piece, entry in self.refusals if len(self.parts) > 1 else ():
            self.losses.lose(
                "downgraded", "a refusal must be the only part of its message; it was sent as text", piece, entry
            )
            said = part["refusal"]
            part.clear()
            part.update(type="text", text=said)
        message: Wire = {"role": "assistant"}
        if self.parts:
            message["content"] = _content(self.parts, self.scope, separator="")
        elif self.calls:
            message["content"] = None
        elif "audio" not in self.further:
            return []
        if self.calls and "needs_reasoning" in self.scope.quirks:
            self._supply_reasoning()
        message |= self.further
        if self.calls:
            message["tool_calls"] = self.calls
        return [message]

    def _supply_reasoning(self) -> None:
        """Add an empty reasoning text if the turn has none, because the endpoint requires one in a message with
        calls.
        """
        if REASONING_FIELD in self.further:
            return
        self.further[REASONING_FIELD] = ""
        reason = f"{self.scope.target} requires reasoning in messages with calls; an empty text was sent"
        first = next(entry for entry in self.turn.entries if entry.wire_id)
        self.losses.add("synthesized", reason, message=first.message, path=REASONING_FIELD)


def _call(entry: Entry, scope: TurnScope, losses: LossLog) -> Wire:
    state = entry.call_state
    if state.get("type") == "custom":
        kind, inner = "custom", {"input": text_or_empty(entry.arguments_value(losses).get("input"))}
    else:
        kind, inner = "function", {"arguments": call_arguments(entry, scope, losses)}
    made = {"id": entry.wire_id, "type": kind, kind: {"name": entry.wire_name, **inner}}
    return {**made, **object_or_empty(state.get("further"))} if state else made


def call_arguments(entry: Entry, scope: TurnScope, losses: LossLog) -> str:
    """Return the arguments of a function call as JSON text. A custom tool's call from another API becomes a function
    call, with its text in an object, and a loss.

    OpenAI and Azure get invalid arguments unchanged: they answered recorded requests with "15 * 4" (chat) and "[]"
    (responses). Servers that parse calls refuse them: https://github.com/vllm-project/vllm/issues/43995
    """
    call, origin = entry.message.call, None if entry.keeps_state else entry.message.origin
    if origin and origin.dialect == CUSTOM_CALLS and call and object_or_empty(call.state).get("type") == "custom":
        losses.add(
            "downgraded", "the custom tool call was sent as a function call", message=entry.message, path="payload"
        )
    return entry.arguments_text(scope.target, losses, verbatim=is_openai(scope))


_ROLES = {"user": "user", "results": "user", "assistant": "assistant"}
"""Side of the preceding turn → its role, for endpoints whose roles must alternate."""
_SIDES = {"system": _speakers, "user": _speakers, "assistant": _assistant, "results": _results}
"""Side of a turn → the function that returns its messages."""
