"""A Chat Completions response → reply, without loss. The joined chunks of a stream are read here, too.

    choices[0].message ─▶ (place, block) …    a block's place is the same in a response and in a stream
    further choices    ─▶ alternatives        fields without a neutral place ─▶ details, verbatim

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

from sabir_openai.errors import ERRORS

Block: TypeAlias = KnownPart | OptionCallPayload
Placed: TypeAlias = tuple[int, Block]

REASONING, CONTENT, REFUSAL, SOUND, TRANSCRIPT, PICTURES, CALLS = 0, 1, 1000, 1001, 1002, 1003, 2000
"""The places of a message's blocks, which order them. For content, pictures and calls, the place of the first block."""
REASONING_FIELDS = ("reasoning_content", "reasoning")
"""Fields in which compatible endpoints send a model's reasoning. The first one that contains text is read."""
DETAIL_TEXTS = ("text", "summary")
"""Fields of an object in `reasoning_details` that contain its text. The first one with text is read."""

FINISH_REASONS: Mapping[str, FinishReason] = {
    **dict.fromkeys(("stop", "eos", "end_turn"), "stop"),
    **dict.fromkeys(("tool_calls", "function_call"), "option_calls"),
    **dict.fromkeys(("length", "max_tokens", "model_length", "model_context_window_exceeded"), "length"),
    **dict.fromkeys(("content_filter", "sensitive"), "content_filter"),
    **dict.fromkeys(("error", "abort", "insufficient_system_resource", "network_error"), "error"),
}
_BODY_FIELDS = frozenset({"id", "model", "object", "choices", "usage", "obfuscation"})
_CHOICE_FIELDS = frozenset({"index", "message", "finish_reason"})
_MESSAGE_FIELDS = frozenset({"role", "content", "refusal", "annotations", "tool_calls", "function_call"})
_SHAPES = {"refusal": str, "annotations": list, "tool_calls": list, "function_call": dict}
"""Field of a message → the type that its value must have to be read."""
_CALL_FIELDS = frozenset({"id", "type", "index", "function", "custom"})


def decode(body: bytes, scope: DecodeScope) -> Reply:
    """Return the reply for the body of a response. Raises ResponseInvalid for an invalid body or one without choices,
    and the CallError that the body reports.
    """
    found = scope.read_object(body)
    raise_reported(found, scope)
    if not list_or_empty(found.get("choices")):
        raise scope.invalid_answer("answered without choices; expected at least one choice: send the request again")
    placed, end = read_answer(found, scope)
    return _built(placed, scope).finish(**end)


def raise_reported(found: Fields, scope: DecodeScope) -> None:
    """Raise the CallError that a body or a chunk reports; do nothing if it reports none.

    The error is a field of the body, of the choice with index 0 (OpenRouter) or of `x_groq` (Groq), or it is the body
    itself (vLLM, Mistral). It is raised even if the body has choices, because their content was cut off.
    """
    choices = map(object_or_empty, list_or_empty(found.get("choices")))
    places = [found, object_or_empty(found.get("x_groq")), *(choice for choice in choices if index_of(choice) == 0)]
    error = next((place["error"] for place in places if place.get("error")), None)
    if error is None and "choices" not in found and (found.get("message") or found.get("detail")):
        error = found
    if error is not None:
        raise ERRORS.report(error.get("error", error) if isinstance(error, dict) else error, scope)


def origin_of(found: Fields, scope: DecodeScope) -> Origin:
    """Return the origin with the model and the response id that a body or a chunk names."""
    return scope.origin(text_or_empty(found.get("model")) or None, text_or_empty(found.get("id")) or None)


def read_answer(found: Fields, scope: DecodeScope) -> tuple[tuple[Placed, ...], dict[str, Any]]:
    """Return the blocks of the choice with the lowest index, and the other fields of a Reply or ReplyEnd.

    The other choices become alternatives, ordered by their index.
    """
    origin = origin_of(found, scope)
    choices = [object_or_empty(choice) for choice in scope.count_each(list_or_empty(found.get("choices")))]
    first, *others = [_read_choice(choice, scope) for choice in sorted(choices, key=index_of)]
    details = unknown_fields(found, _BODY_FIELDS)
    if further := [left for *_, left in (first, *others) if left]:
        details["choices"] = further
    return first[0], {
        "finish_reason": first[1],
        "raw_finish_reason": first[2],
        "usage": read_usage(found.get("usage") or object_or_empty(found.get("x_groq")).get("usage")),
        "origin": origin,
        "alternatives": tuple(
            Alternative(messages=_built(placed, scope).messages(origin), finish_reason=reason, raw_finish_reason=raw)
            for placed, reason, raw, _ in others
        ),
        "details": details or None,
    }


def index_of(choice: Fields) -> int:
    """Return the index of a choice; 0 if the choice has none."""
    index = choice.get("index")
    return index if isinstance(index, int) else 0


def _built(placed: Iterable[Placed], scope: DecodeScope) -> ReplyBuilder:
    return ReplyBuilder(scope, (block for _, block in placed))


def message_blocks(message: Fields, scope: DecodeScope) -> tuple[tuple[Placed, ...], dict[str, Any]]:
    """Return the blocks of an assistant message, ordered by place, and the fields that became no block."""
    reader = _Message(message, scope)
    return tuple(sorted(scope.count_each(reader.blocks()), key=itemgetter(0))), reader.left


def _read_choice(
    choice: Fields, scope: DecodeScope
) -> tuple[tuple[Placed, ...], FinishReason, str | None, dict[str, Any]]:
    """Return a choice's blocks, its neutral and its raw finish reason, and its remaining fields with its index.

    The last item is empty if no field remains.
    """
    blocks, further = message_blocks(object_or_empty(choice.get("message")), scope)
    raw = text_or_empty(choice.get("finish_reason")) or None
    left = unknown_fields(choice, _CHOICE_FIELDS)
    if further:
        left["message"] = further
    return blocks, _finish_reason(raw, blocks), raw, {"index": index_of(choice), **left} if left else {}


def _finish_reason(raw: str | None, blocks: tuple[Placed, ...]) -> FinishReason:
    """Return the neutral finish reason.

    The vendor ends refusals, and calls of an option that `option_choice` names, with "stop". Here a refusal is
    "content_filter" and a call "option_calls".
    """
    reason = FINISH_REASONS.get(raw or "", "other")
    if reason == "stop" and any(isinstance(block, RefusalPart) and block.text for _, block in blocks):
        return "content_filter"
    is_call = reason == "stop" and any(isinstance(block, OptionCallPayload) for _, block in blocks)
    return "option_calls" if is_call else reason


class _Message:
    """Reads one message. After `blocks()`, `left` contains the fields that became no block."""

    def __init__(self, message: Fields, scope: DecodeScope) -> None:
        self.message = message
        self.scope = scope
        self.left = unknown_fields(message, _MESSAGE_FIELDS)
        for name, shape in _SHAPES.items():
            if (value := message.get(name)) is not None and not isinstance(value, shape):
                self.left[name] = value

    def blocks(self) -> Iterator[Placed]:
        """Yield every block with its place, not yet ordered. Remove the fields that were read from `left`."""
        further = bool(self.left)  # False if no field is left that only some endpoints send
        if further:
            yield from self._reasoning()
        yield from self._content()
        if refusal := text_or_empty(self.message.get("refusal")):
            yield REFUSAL, RefusalPart(text=refusal)
        if further:
            yield from self._sound()
            yield from self._pictures()
        yield from self._calls()

    def _reasoning(self) -> Iterator[Placed]:
        name = next((name for name in REASONING_FIELDS if text_or_empty(self.message.get(name))), None)
        said = self.left.pop(name) if name else ""
        also = next((other for other in REASONING_FIELDS if said and self.left.get(other) == said), None)
        if also:
            del self.left[also]
        details = self.left.pop("reasoning_details") if list_or_empty(self.message.get("reasoning_details")) else None
        if not name:
            said = "".join(map(detail_text, details or ()))
        state = {"field": name, "also": also, "details": details}
        if name or details:
            kept = {key: value for key, value in state.items() if value is not None}
            yield REASONING, ReasoningPart(text=said, state=kept)

    def _content(self) -> Iterator[Placed]:
        content = self.message.get("content")
        annotations = list(self.scope.count_each(list_or_empty(self.message.get("annotations"))))
        if isinstance(content, str) and not annotations:
            yield CONTENT, TextPart(text=content)
            return
        chunks = content if isinstance(content, list) else [] if content is None else [content]
        citations = tuple(read_citation(annotation) for annotation in annotations)
        for place, chunk in enumerate(chunks, CONTENT):
            block = self._chunk(chunk)
            if citations and isinstance(block, TextPart):
                block, citations = block.model_copy(update={"citations": citations}), ()
            yield place, block
        if citations:
            yield CONTENT + len(chunks), TextPart(text="", citations=citations)

    def _chunk(self, chunk: JSONValue) -> KnownPart:
        """Return the part for one item of a content array: an opaque part for an item of an unknown type or shape."""
        found = object_or_empty({"type": "text", "text": chunk} if isinstance(chunk, str) else chunk)
        match found.get("type"):
            case "text" if isinstance(said := found.get("text"), str):
                state = {"chunk": chunk} if found.keys() - {"type", "text"} else None
                return TextPart(text=said, state=state)
            case "refusal" if isinstance(said := found.get("refusal"), str):
                return RefusalPart(text=said)
            case "thinking":
                thoughts = (
                    text_or_empty(object_or_empty(inner).get("text")) for inner in list_or_empty(found.get("thinking"))
                )
                return ReasoningPart(text="".join(thoughts), state={"chunk": chunk})
            case "image_url" if picture := _picture(found):
                return picture
        return OpaquePart(dialect=self.scope.target.dialect, block=chunk)

    def _sound(self) -> Iterator[Placed]:
        audio = object_or_empty(self.message.get("audio"))
        data, transcript = text_or_empty(audio.get("data")), text_or_empty(audio.get("transcript"))
        state = {"audio": unknown_fields(audio, {"data", "transcript"})}
        if data and (
            sound := MediaPart.from_wire(
                "audio", DataURL.with_sniffed_type(data, "application/octet-stream"), state=state
            )
        ):
            del self.left["audio"]
            yield SOUND, sound
        if transcript:
            yield TRANSCRIPT, TextPart(text=transcript, state={"transcript_of": audio.get("id")})

    def _pictures(self) -> Iterator[Placed]:
        """Yield the pictures of the field `images`, as OpenRouter and others send them; nothing if one is invalid."""
        found = list_or_empty(self.message.get("images"))
        pictures = [picture for each in found if (picture := _picture(each))]
        if found and len(pictures) == len(found):
            del self.left["images"]
            yield from enumerate(pictures, PICTURES)

    def _calls(self) -> Iterator[Placed]:
        found = list_or_empty(self.message.get("tool_calls"))
        for place, call in enumerate(found, CALLS):
            if decoded := self._call(object_or_empty(call)):
                yield place, decoded
            else:
                self.left.setdefault("tool_calls", []).append(call)
        if isinstance(legacy := self.message.get("function_call"), dict):
            yield (
                CALLS + len(found),
                self.scope.read_call("", text_or_empty(legacy.get("name")), legacy.get("arguments")),
            )

    def _call(self, call: Fields) -> OptionCallPayload | None:
        function, wire_id = call.get("function"), text_or_empty(call.get("id"))
        further = unknown_fields(call, _CALL_FIELDS)
        state: dict[str, Any] = {"further": further} if further else {}
        if isinstance(custom := call.get("custom"), dict):
            arguments = {"input": text_or_empty(custom.get("input"))}
            return self.scope.read_call(
                wire_id, text_or_empty(custom.get("name")), arguments, {"type": "custom", **state}
            )
        if not isinstance(function, dict):
            return None
        return self.scope.read_call(
            wire_id, text_or_empty(function.get("name")), function.get("arguments"), state or None
        )


def detail_text(detail: JSONValue) -> str:
    """Return the text of an object in `reasoning_details`; "" if the reasoning is encrypted."""
    return next((said for name in DETAIL_TEXTS if (said := text_or_empty(object_or_empty(detail).get(name)))), "")


def _picture(block: JSONValue) -> MediaPart | None:
    return MediaPart.from_wire(
        "image", text_or_empty(object_or_empty(object_or_empty(block).get("image_url")).get("url"))
    )


def thinking_text(chunk: Fields) -> str | None:
    """Return the text of a content item of the type `thinking` that contains only texts; None for any other item."""
    passages = chunk.get("thinking")
    if chunk.get("type") != "thinking" or not isinstance(passages, list):
        return None
    texts = [text_or_empty(object_or_empty(passage).get("text")) for passage in passages]
    is_plain = [{"type": "text", "text": each} for each in texts] == passages
    return "".join(texts) if is_plain else None


def read_citation(annotation: JSONValue) -> Citation:
    """Return the citation for an annotation of `openai.chat` or `openai.responses`."""
    found = object_or_empty(annotation)
    kind = text_or_empty(found.get("type")) or "annotation"
    about = object_or_empty(found.get(kind)) or found
    start, end = about.get("start_index"), about.get("end_index")
    return Citation(
        kind=kind,
        url=text_or_empty(about.get("url")) or None,
        title=text_or_empty(about.get("title")) or text_or_empty(about.get("filename")) or None,
        file_id=text_or_empty(about.get("file_id")) or None,
        start=start if isinstance(start, int) else None,
        end=end if isinstance(end, int) else None,
        source=annotation,
    )


def read_usage(figures: JSONValue) -> Usage:
    """Return the token counts of a call, from the field names of both dialects and of compatible endpoints.

    Some endpoints count reasoning (xAI) or sound (Mistral) only in the total, though these tokens are billed. Tokens
    that only the total contains are added: the sound tokens to the input, all others to the output.
    """
    found = object_or_empty(figures)
    if not found:
        return Usage()
    read = object_or_empty(found.get("prompt_tokens_details") or found.get("input_tokens_details"))
    made = object_or_empty(found.get("completion_tokens_details") or found.get("output_tokens_details"))
    sent = first_whole_number(found.get("prompt_tokens"), found.get("input_tokens"))
    written = first_whole_number(found.get("completion_tokens"), found.get("output_tokens"))
    reasoning = first_whole_number(made.get("reasoning_tokens"), found.get("reasoning_tokens"))
    if sent is not None and written is not None:
        uncounted = (first_whole_number(found.get("total_tokens")) or 0) - sent - written
        sound = first_whole_number(read.get("audio_tokens")) or 0
        if 0 < sound <= uncounted:
            sent, uncounted = sent + sound, uncounted - sound
        written += max(uncounted, 0)
    return Usage.unchecked(
        found,
        input_tokens=sent,
        output_tokens=written,
        cache_read_tokens=first_whole_number(
            *(read.get("cached_tokens"), found.get("prompt_cache_hit_tokens")),
            *(found.get(name) for name in ("cached_tokens", "num_cached_tokens", "cache_read_input_tokens")),
        ),
        cache_write_tokens=first_whole_number(read.get("cache_write_tokens"), found.get("cache_creation_input_tokens")),
        reasoning_tokens=reasoning,
    )
