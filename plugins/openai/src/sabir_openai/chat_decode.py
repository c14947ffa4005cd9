"""A Chat Completions response → reply, without loss. The joined chunks of a stream are read by the same functions.

    choices[0].message ─▶ (position, block) …   a block's position is the same in a response and in a stream
    further choices    ─▶ alternatives          fields that no part can express ─▶ details, unchanged

Fields that a part cannot express are stored in the part's state, so that encoding restores them (law 3).
"""

from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any, TypeAlias

from sabir import (
    Alternative,
    Citation,
    MediaPart,
    OpaquePart,
    OptionCallPayload,
    Origin,
    ReasoningPart,
    RefusalPart,
    Reply,
    TextPart,
    Usage,
)
from sabir.authoring import (
    DataURL,
    DecodeScope,
    Fields,
    FinishReason,
    JSONValue,
    KnownPart,
    ReplyBuilder,
    first_whole_number,
    list_or_empty,
    object_or_empty,
    text_or_empty,
    unknown_fields,
)

from sabir_openai.chat_native import decode_executed
from sabir_openai.errors import ERRORS

DecodedContent: TypeAlias = KnownPart | OptionCallPayload
IndexedBlock: TypeAlias = tuple[int, DecodedContent]

NATIVE = -1_000_000
"""The position of the first call of an endpoint's own tool, before all other blocks: the answer depends on it."""
REASONING, CONTENT, REFUSAL, AUDIO, TRANSCRIPT, IMAGES, CALLS = 0, 1, 1000, 1001, 1002, 1003, 2000
"""The positions of a message's blocks. For content, images and calls, this is the position of the first block."""
REASONING_FIELDS = ("reasoning_content", "reasoning")
"""Fields in which compatible endpoints send a model's reasoning. The first field that contains text is read."""
DETAIL_TEXT_FIELDS = ("text", "summary")
"""Fields of an object in `reasoning_details` that contain its text. The first field that contains text is read."""

FINISH_REASONS: Mapping[str, FinishReason] = {
    **dict.fromkeys(("stop", "eos", "end_turn"), "stop"),
    **dict.fromkeys(("tool_calls", "function_call"), "option_calls"),
    **dict.fromkeys(("length", "max_tokens", "model_length", "model_context_window_exceeded"), "length"),
    **dict.fromkeys(("content_filter", "sensitive"), "content_filter"),
    **dict.fromkeys(("error", "abort", "insufficient_system_resource", "network_error"), "error"),
}
"""Finish reason of OpenAI or a compatible endpoint → neutral finish reason. Other reasons become `other`."""
_BODY_FIELDS = frozenset({"id", "model", "object", "choices", "usage", "obfuscation"})
_CHOICE_FIELDS = frozenset({"index", "message", "finish_reason"})
_MESSAGE_FIELDS = frozenset({"role", "content", "refusal", "annotations", "tool_calls", "function_call"})
_FIELD_TYPES = {"refusal": str, "annotations": list, "tool_calls": list, "function_call": dict}
"""Field of a message → the type that its value must have to be read."""
_CACHED_FIELDS = ("prompt_cache_hit_tokens", "cached_tokens", "num_cached_tokens", "cache_read_input_tokens")
"""Fields of a usage in which compatible endpoints send the number of cached tokens."""
_CALL_FIELDS = frozenset({"id", "type", "index", "function", "custom"})


def decode(body: bytes, scope: DecodeScope) -> Reply:
    """Return the reply for the body of a response. Raises ResponseInvalid for an invalid body or one without choices,
    and the CallError that the body reports.
    """
    response = scope.read_object(body)
    raise_reported(response, scope)
    if not list_or_empty(response.get("choices")):
        raise scope.invalid_answer("answered without choices; expected at least one choice: send the request again")
    blocks, end = read_answer(response, scope)
    return _builder(blocks, scope).finish(**end)


def raise_reported(response: Fields, scope: DecodeScope) -> None:
    """Raise the CallError that a body or a chunk reports. Do nothing if it reports no error.

    The error is a field of the body, of the choice with index 0 (OpenRouter) or of `x_groq` (Groq), or it is the body
    itself (vLLM, Mistral). It is raised even if the body has choices, because their content was cut off.
    """
    error = response.get("error") or object_or_empty(response.get("x_groq")).get("error")
    for choice in () if error else map(object_or_empty, list_or_empty(response.get("choices"))):
        if choice.get("error") and index_of(choice) == 0:
            error = choice["error"]
            break
    if not error and "choices" not in response and (response.get("message") or response.get("detail")):
        error = response
    if error:
        raise ERRORS.report(error.get("error", error) if isinstance(error, dict) else error, scope)


def origin_of(response: Fields, scope: DecodeScope) -> Origin:
    """Return the origin with the model and the response id that a body or a chunk names."""
    return scope.origin(text_or_empty(response.get("model")), text_or_empty(response.get("id")))


def read_answer(response: Fields, scope: DecodeScope) -> tuple[tuple[IndexedBlock, ...], dict[str, Any]]:
    """Return the blocks of the choice with the lowest index, and the other fields of a Reply or ReplyEnd.

    The other choices become alternatives, ordered by their index.
    """
    origin = origin_of(response, scope)
    choices = [object_or_empty(choice) for choice in scope.count_each(list_or_empty(response.get("choices")))]
    first, *others = [_read_choice(choice, scope) for choice in sorted(choices, key=index_of)]
    details = unknown_fields(response, _BODY_FIELDS)
    if further := [unread for *_, unread in (first, *others) if unread]:
        details["choices"] = further
    return first[0], {
        "finish_reason": first[1],
        "raw_finish_reason": first[2],
        "usage": read_usage(response.get("usage") or object_or_empty(response.get("x_groq")).get("usage")),
        "origin": origin,
        "alternatives": tuple(
            Alternative(messages=_builder(blocks, scope).messages(origin), finish_reason=reason, raw_finish_reason=raw)
            for blocks, reason, raw, _ in others
        ),
        "details": details or None,
    }


def index_of(choice: Fields) -> int:
    """Return the index of a choice. Return 0 if the choice has no index."""
    index = choice.get("index")
    return index if isinstance(index, int) else 0


def _builder(blocks: Iterable[IndexedBlock], scope: DecodeScope) -> ReplyBuilder:
    return ReplyBuilder(scope, (block for _, block in blocks))


def decode_message(message: Fields, scope: DecodeScope) -> tuple[tuple[IndexedBlock, ...], dict[str, Any]]:
    """Return the positions and blocks of an assistant message, ordered by position, and the fields that no block
    contains.
    """
    reader = _MessageReader(message, scope)
    return tuple(sorted(scope.count_each(reader.blocks()), key=itemgetter(0))), reader.unread


def _read_choice(
    choice: Fields, scope: DecodeScope
) -> tuple[tuple[IndexedBlock, ...], FinishReason, str | None, dict[str, Any]]:
    """Return a choice's blocks, its neutral and its raw finish reason, and its unread fields with its index.

    The last value is {} if all fields were read.
    """
    blocks, unread_message = decode_message(object_or_empty(choice.get("message")), scope)
    raw = text_or_empty(choice.get("finish_reason")) or None
    unread = unknown_fields(choice, _CHOICE_FIELDS) | ({"message": unread_message} if unread_message else {})
    return blocks, _finish_reason(raw, blocks), raw, {"index": index_of(choice), **unread} if unread else {}


def _finish_reason(raw_reason: str | None, blocks: tuple[IndexedBlock, ...]) -> FinishReason:
    """Return the neutral finish reason.

    The vendor ends refusals, and calls of an option that `option_choice` names, with "stop". For a refusal, return
    "content_filter", and for a call, return "option_calls".
    """
    reason = FINISH_REASONS.get(raw_reason or "", "other")
    if reason == "stop" and any(isinstance(block, RefusalPart) and block.text for _, block in blocks):
        return "content_filter"
    is_call = reason == "stop" and any(isinstance(block, OptionCallPayload) for _, block in blocks)
    return "option_calls" if is_call else reason


class _MessageReader:
    """Reads one message. After `blocks()`, `unread` contains the fields that no block contains."""

    def __init__(self, message: Fields, scope: DecodeScope) -> None:
        self.message = message
        self.scope = scope
        self.unread = unknown_fields(message, _MESSAGE_FIELDS)
        for name, kind in _FIELD_TYPES.items():
            if (value := message.get(name)) is not None and not isinstance(value, kind):
                self.unread[name] = value

    def blocks(self) -> Iterator[IndexedBlock]:
        """Yield every block with its position, not yet ordered. Remove the fields that were read from `unread`."""
        has_extensions = bool(self.unread)  # fields that only some endpoints send
        if has_extensions:
            yield from self._read_executed_tools()
            yield from self._read_reasoning()
        yield from self._read_content_field()
        if refusal := text_or_empty(self.message.get("refusal")):
            yield REFUSAL, RefusalPart(text=refusal)
        if has_extensions:
            yield from self._read_audio()
            yield from self._read_images()
        yield from self._read_tool_calls()

    def _read_reasoning(self) -> Iterator[IndexedBlock]:
        """Yield the reasoning of the message as one block, from a text field, `reasoning_details`, or both."""
        name = next((name for name in REASONING_FIELDS if text_or_empty(self.message.get(name))), None)
        text = self.unread.pop(name) if name else ""
        also = next((other for other in REASONING_FIELDS if text and self.unread.get(other) == text), None)
        if also:
            del self.unread[also]
        details = self.unread.pop("reasoning_details") if list_or_empty(self.message.get("reasoning_details")) else None
        if not name:
            text = "".join(map(detail_text, details or ()))
        state = {"field": name, "also": also, "details": details}
        if name or details:
            present = {key: value for key, value in state.items() if value is not None}
            yield REASONING, ReasoningPart(text=text, state=present)

    def _read_content_field(self) -> Iterator[IndexedBlock]:
        """Yield the parts of `content`. The first text, or an added empty text, gets the citations of `annotations`."""
        content = self.message.get("content")
        annotations = list(self.scope.count_each(list_or_empty(self.message.get("annotations"))))
        if isinstance(content, str) and not annotations:
            yield CONTENT, TextPart(text=content)
            return
        chunks = content if isinstance(content, list) else [] if content is None else [content]
        citations = tuple(read_citation(annotation) for annotation in annotations)
        for position, chunk in enumerate(chunks, CONTENT):
            block = self._read_content_part(chunk)
            if citations and isinstance(block, TextPart):
                block, citations = block.model_copy(update={"citations": citations}), ()
            yield position, block
        if citations:
            yield CONTENT + len(chunks), TextPart(text="", citations=citations)

    def _read_content_part(self, chunk: JSONValue) -> KnownPart:
        """Return the part for one item of a content array: an opaque part if its type or form is unknown."""
        fields = object_or_empty({"type": "text", "text": chunk} if isinstance(chunk, str) else chunk)
        match fields.get("type"):
            case "text" if isinstance(text := fields.get("text"), str):
                state = {"chunk": chunk} if fields.keys() - {"type", "text"} else None
                return TextPart(text=text, state=state)
            case "refusal" if isinstance(text := fields.get("refusal"), str):
                return RefusalPart(text=text)
            case "thinking":
                texts = (
                    text_or_empty(object_or_empty(inner).get("text")) for inner in list_or_empty(fields.get("thinking"))
                )
                return ReasoningPart(text="".join(texts), state={"chunk": chunk})
            case "image_url" if image := _read_image_url(fields):
                return image
        return OpaquePart(dialect=self.scope.target.dialect, block=chunk)

    def _read_executed_tools(self) -> Iterator[IndexedBlock]:
        """Yield the calls of the endpoint's own tools. The field stays in `unread`, because the parts lack its JSON."""
        yield from enumerate(decode_executed(self.message, self.scope), NATIVE)

    def _read_audio(self) -> Iterator[IndexedBlock]:
        """Yield the sound and the transcript of the field `audio`. An invalid sound stays in `unread`."""
        audio = object_or_empty(self.message.get("audio"))
        data, transcript = text_or_empty(audio.get("data")), text_or_empty(audio.get("transcript"))
        state = {"audio": unknown_fields(audio, {"data", "transcript"})}
        url = DataURL.with_sniffed_type(data, "application/octet-stream") if data else ""
        if part := MediaPart.from_wire("audio", url, state=state):
            del self.unread["audio"]
            yield AUDIO, part
        if transcript:
            yield TRANSCRIPT, TextPart(text=transcript, state={"transcript_of": audio.get("id")})

    def _read_images(self) -> Iterator[IndexedBlock]:
        """Yield the images in the field `images`, as OpenRouter and others send them. Yield none if one is invalid."""
        items = list_or_empty(self.message.get("images"))
        images = [image for each in items if (image := _read_image_url(each))]
        if items and len(images) == len(items):
            del self.unread["images"]
            yield from enumerate(images, IMAGES)

    def _read_tool_calls(self) -> Iterator[IndexedBlock]:
        """Yield the option calls, also one in the older field `function_call`. Unknown calls stay in `unread`."""
        tool_calls = list_or_empty(self.message.get("tool_calls"))
        for position, call in enumerate(tool_calls, CALLS):
            if payload := self._read_tool_call(object_or_empty(call)):
                yield position, payload
            else:
                self.unread.setdefault("tool_calls", []).append(call)
        if isinstance(legacy := self.message.get("function_call"), dict):
            call = self.scope.read_call("", text_or_empty(legacy.get("name")), legacy.get("arguments"))
            yield CALLS + len(tool_calls), call

    def _read_tool_call(self, call: Fields) -> OptionCallPayload | None:
        """Return the option call for one item of `tool_calls`; None for another item than a function or custom tool."""
        function, wire_id = call.get("function"), text_or_empty(call.get("id"))
        further = unknown_fields(call, _CALL_FIELDS)
        state: dict[str, Any] = {"further": further} if further else {}
        if isinstance(custom := call.get("custom"), dict):
            name, arguments = text_or_empty(custom.get("name")), {"input": text_or_empty(custom.get("input"))}
            return self.scope.read_call(wire_id, name, arguments, {"type": "custom", **state})
        if not isinstance(function, dict):
            return None
        name = text_or_empty(function.get("name"))
        return self.scope.read_call(wire_id, name, function.get("arguments"), state or None)


def detail_text(detail: JSONValue) -> str:
    """Return the text of an object in `reasoning_details`. Return "" without text, as for encrypted reasoning."""
    return next((text for name in DETAIL_TEXT_FIELDS if (text := text_or_empty(object_or_empty(detail).get(name)))), "")


def _read_image_url(part: JSONValue) -> MediaPart | None:
    image_url = object_or_empty(object_or_empty(part).get("image_url"))
    return MediaPart.from_wire("image", text_or_empty(image_url.get("url")))


def thinking_text(chunk: Fields) -> str | None:
    """Return the text of a content item if its type is `thinking` and it contains only texts. None for other items."""
    passages = chunk.get("thinking")
    if chunk.get("type") != "thinking" or not isinstance(passages, list):
        return None
    texts = [text_or_empty(object_or_empty(passage).get("text")) for passage in passages]
    is_plain = [{"type": "text", "text": each} for each in texts] == passages
    return "".join(texts) if is_plain else None


def read_citation(annotation: JSONValue) -> Citation:
    """Return the citation for an annotation of `openai.chat` or `openai.responses`."""
    fields = object_or_empty(annotation)
    kind = text_or_empty(fields.get("type")) or "annotation"
    details = object_or_empty(fields.get(kind)) or fields
    start, end = details.get("start_index"), details.get("end_index")
    return Citation(
        kind=kind,
        url=text_or_empty(details.get("url")) or None,
        title=text_or_empty(details.get("title")) or text_or_empty(details.get("filename")) or None,
        file_id=text_or_empty(details.get("file_id")) or None,
        start=start if isinstance(start, int) else None,
        end=end if isinstance(end, int) else None,
        source=annotation,
    )


def read_usage(figures: JSONValue) -> Usage:
    """Return the token counts of a call, from the field names of both dialects and of compatible endpoints.

    Some endpoints include the tokens of reasoning (xAI) or audio (Mistral) only in the total. These tokens are billed,
    so tokens that only the total contains are added: audio tokens to the input, all others to the output.
    """
    usage = object_or_empty(figures)
    if not usage:
        return Usage()
    input_details = object_or_empty(usage.get("prompt_tokens_details") or usage.get("input_tokens_details"))
    output_details = object_or_empty(usage.get("completion_tokens_details") or usage.get("output_tokens_details"))
    cached, written = input_details.get("cached_tokens"), input_details.get("cache_write_tokens")
    input_tokens = first_whole_number(usage.get("prompt_tokens"), usage.get("input_tokens"))
    output_tokens = first_whole_number(usage.get("completion_tokens"), usage.get("output_tokens"))
    reasoning = first_whole_number(output_details.get("reasoning_tokens"), usage.get("reasoning_tokens"))
    if input_tokens is not None and output_tokens is not None:
        uncounted = (first_whole_number(usage.get("total_tokens")) or 0) - input_tokens - output_tokens
        audio_tokens = first_whole_number(input_details.get("audio_tokens")) or 0
        if 0 < audio_tokens <= uncounted:
            input_tokens, uncounted = input_tokens + audio_tokens, uncounted - audio_tokens
        output_tokens += max(uncounted, 0)
    return Usage.unchecked(
        usage,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cache_read_tokens=first_whole_number(cached, *map(usage.get, _CACHED_FIELDS)),
        cache_write_tokens=first_whole_number(written, usage.get("cache_creation_input_tokens")),
        reasoning_tokens=reasoning,
    )
