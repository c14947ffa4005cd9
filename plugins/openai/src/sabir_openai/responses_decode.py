"""A response → reply. Every output item becomes one or more blocks, in order, without loss.

    message                 a text or a refusal for each content part, with its annotations as citations
    reasoning               the text of its summary and content; the whole item is its state
    function_call           an option call with its argument text unchanged
    image_generation_call   the image in its result
    web_search_call, …      the call of a vendor's own tool and its result (responses_native.py)
    other items             opaque parts, unchanged; a call that the client must answer and its output are a pair, and
                            the call ends the reply with the reason `native_calls`

Fields that a block cannot express are stored in its state, so that encoding restores the item (law 3).
"""

from collections.abc import Collection, Mapping
from typing import Any, Literal

from sabir import Loss, MediaPart, OpaquePart, Origin, ReasoningPart, RefusalPart, Reply, TextPart
from sabir.authoring import (
    DecodeScope,
    Fields,
    FinishReason,
    JSONValue,
    ReplyBuilder,
    encode_json,
    list_or_empty,
    object_or_empty,
    text_or_empty,
    unknown_fields,
    without_fields,
)
from sabir.errors import CallError

from sabir_openai.chat_decode import DecodedContent, read_citation, read_usage
from sabir_openai.errors import ERRORS
from sabir_openai.responses_native import NAME, decode_native

FINISH_REASONS: Mapping[str, FinishReason] = {
    "completed": "stop",
    "max_output_tokens": "length",
    "content_filter": "content_filter",
    "steered": "paused",
    "failed": "error",
    "cancelled": "error",
}
"""Reason of `incomplete_details`, or else the status of the response → neutral finish reason. Other reasons become
`other`. For "completed", `_stop_reason` returns a more exact reason.
"""

_CALL_TYPES = (
    "apply_patch_call", "computer_call", "custom_tool_call", "local_shell_call", "shell_call", "tool_search_call",
)  # fmt: skip
_OUTPUT_TYPES = (
    "apply_patch_call_output", "computer_call_output", "custom_tool_call_output", "function_call_output",
    "shell_call_output", "tool_search_output",
)  # fmt: skip
PAIRS: Mapping[str, tuple[str, Literal["opens", "closes"]]] = {
    **dict.fromkeys(_CALL_TYPES, ("call_id", "opens")),
    **dict.fromkeys(_OUTPUT_TYPES, ("call_id", "closes")),
    "local_shell_call_output": ("id", "closes"),
    "mcp_approval_request": ("id", "opens"),
    "mcp_approval_response": ("approval_request_id", "closes"),
}
"""Type of an opaque item → the field with the id that call and output share, and whether the item opens or closes the
pair. An item of the type `program` has no pair, because it contains option calls.
"""

STATUSES: Mapping[str, bool] = {"completed": True, "incomplete": False}
"""Status of an item → whether the model finished the item. `in_progress` is missing, because finished calls may have
this status too.
"""
UNFINISHED_STATUSES = ("queued", "in_progress")
"""Statuses of a response that the server is still generating in the background."""

REQUEST_ECHOES = frozenset({
    "frequency_penalty", "instructions", "max_output_tokens", "max_tool_calls", "metadata",
    "parallel_tool_calls", "presence_penalty", "previous_response_id", "prompt", "prompt_cache_key",
    "prompt_cache_options", "prompt_cache_retention", "safety_identifier", "store", "temperature", "text",
    "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user",
})  # fmt: skip
"""Fields of a response that repeat the request."""
RESPONSE_FIELDS = REQUEST_ECHOES | {"error", "id", "model", "object", "output", "status", "usage"}
"""Fields of a response that are not copied to `Reply.details`: they repeat the request, or a Reply has its own fields
for them.
"""
PARAGRAPH = "\n\n"
"""The separator between the texts of one reasoning item."""


def decode(body: bytes, scope: DecodeScope) -> Reply:
    """Return the reply for the body of a response. Raises ResponseInvalid for an invalid body or one without output,
    and the CallError that the body reports.

    Raises CallError for a response without items that is still being generated in the background.
    """
    response = scope.read_object(body)
    raise_reported(response, scope)
    if not isinstance(response.get("output"), list):
        raise scope.invalid_answer("answered without output; expected a list of items: send the request again")
    if not response["output"] and (status := text_or_empty(response.get("status"))) in UNFINISHED_STATUSES:
        response_id = text_or_empty(response.get("id"))
        problem = f"{scope.target} answered {status!r}: response {response_id} is being generated in the background"
        remedy = "stream the response, request the response later by this id, or remove the setting `background`"
        provider, request_id = scope.target.provider, scope.request_id
        raise CallError(f"{problem}; {remedy}", provider=provider, code=status, request_id=request_id)
    blocks, builder = [], ReplyBuilder(scope)
    for item in scope.count_each(response["output"]):
        for block in decode_item(item, scope):
            blocks.append(block)
            builder.add(block, is_finished=is_finished(item))
    return builder.finish(**read_end(response, blocks, scope))


def raise_reported(response: Fields, scope: DecodeScope) -> None:
    """Raise the CallError for the `error` object of a response or an event. Do nothing if it has no error."""
    if error := response.get("error"):
        raise ERRORS.report(error, scope)


def origin_of(response: Fields, scope: DecodeScope) -> Origin:
    """Return the origin with the model and the id of a response."""
    return scope.origin(text_or_empty(response.get("model")), text_or_empty(response.get("id")))


def read_end(response: Fields, blocks: Collection[DecodedContent], scope: DecodeScope) -> dict[str, Any]:
    """Return the fields of a Reply or ReplyEnd that do not come from the items of a response.

    `blocks` are the blocks of all items. The losses are inputs that the server removed.
    """
    status = text_or_empty(response.get("status"))
    raw_reason = text_or_empty(object_or_empty(response.get("incomplete_details")).get("reason")) or status
    reason = FINISH_REASONS.get(raw_reason, "other")
    changes = scope.count_each(list_or_empty(response.get("input_transformations")))
    return {
        "finish_reason": _stop_reason(blocks) if reason == "stop" else reason,
        "raw_finish_reason": raw_reason or None,
        "usage": read_usage(response.get("usage")),
        "origin": origin_of(response, scope),
        "losses": tuple(
            Loss(
                kind="dropped",
                path=f"input_transformations[{index}]",
                reason=f"the server removed {text_or_empty(change.get('id'))} from the input"
                f" ({text_or_empty(change.get('reason'))})",
            )
            for index, change in enumerate(map(object_or_empty, changes))
        ),
        "details": unknown_fields(response, RESPONSE_FIELDS) or None,
    }


def _stop_reason(blocks: Collection[DecodedContent]) -> FinishReason:
    """Return the finish reason of a response that ended by itself, from the kinds of its blocks.

    The reason is "content_filter" if there is a refusal, "native_calls" if a call of the vendor's own tools waits for
    the client, "option_calls" if there is an option call, and otherwise "stop".
    """
    kinds = {block.kind for block in blocks}
    if "refusal" in kinds:
        return "content_filter"
    parts = [block for block in blocks if isinstance(block, OpaquePart) and block.pair is not None]
    answered = {part.pair_id for part in parts if part.pair == "closes"}
    for call in (object_or_empty(part.block) for part in parts if part.pair_id not in answered):
        is_hosted = object_or_empty(call.get("environment")).get("type") == "container_reference"
        if not is_hosted and call.get("execution") != "server":  # the vendor's server answers its other calls
            return "native_calls"
    return "option_calls" if "option_call" in kinds else "stop"


def is_finished(item: JSONValue) -> bool | None:
    """Return whether the status of an option call's item says that the model finished the call. None for a status
    that is not in STATUSES and for other items.
    """
    fields = object_or_empty(item)
    return STATUSES.get(text_or_empty(fields.get("status"))) if fields.get("type") == "function_call" else None


def decode_item(item: JSONValue, scope: DecodeScope) -> list[DecodedContent]:
    """Return the blocks of one output item: one for each content part of a message, one for any other item. A message
    without content is one opaque block.
    """
    fields = object_or_empty(item)
    if reader := READERS.get(text_or_empty(fields.get("type"))):
        return reader(fields, scope)
    return [*decode_native(fields)] or [opaque_item(item)]


def _read_message_item(item: Fields, scope: DecodeScope) -> list[DecodedContent]:
    head = without_fields(item, "content")
    contents = list_or_empty(item.get("content"))
    if len(contents) > 1:  # the state of each block contains a copy of the head
        scope.count_copied_bytes(len(contents) * len(encode_json(head)))
    blocks = [_read_message_content(content, head, scope) for content in scope.count_each(contents)]
    return blocks or [opaque_item(item)]


def _read_message_content(content: JSONValue, head: Fields, scope: DecodeScope) -> DecodedContent:
    """Return the block for one content part of a message. `head` is the message without its content."""
    fields = object_or_empty(content)
    if fields.get("type") == "output_text" and isinstance(fields.get("text"), str):
        annotations = scope.count_each(list_or_empty(fields.get("annotations")))
        citations = tuple(read_citation(annotation) for annotation in annotations)
        state = {"item": head, "part": without_fields(fields, "text", "annotations")}
        return TextPart(text=fields["text"], citations=citations, state=state)
    if fields.get("type") == "refusal" and isinstance(fields.get("refusal"), str):
        return RefusalPart(text=fields["refusal"], state={"item": head, "part": without_fields(fields, "refusal")})
    return opaque_item({**head, "content": [content]})


def _read_reasoning_item(item: Fields, scope: DecodeScope) -> list[DecodedContent]:
    passages = [*list_or_empty(item.get("summary")), *list_or_empty(item.get("content"))]
    texts = filter(None, (text_or_empty(object_or_empty(passage).get("text")) for passage in passages))
    return [ReasoningPart(text=PARAGRAPH.join(texts), state=item)]


def _read_function_call_item(item: Fields, scope: DecodeScope) -> list[DecodedContent]:
    state = without_fields(item, "type", "call_id", "name", "arguments")
    call_id, name = text_or_empty(item.get("call_id")), text_or_empty(item.get("name"))
    return [scope.read_call(call_id, name, item.get("arguments"), state)]


def _read_image_generation_call(item: Fields, scope: DecodeScope) -> list[DecodedContent]:
    """Return the image that a call generated, or the call as an opaque part if it has no valid image."""
    mime = f"image/{text_or_empty(item.get('output_format')) or 'png'}".replace("svg", "svg+xml")
    hint, state = text_or_empty(item.get("revised_prompt")) or None, {"item": without_fields(item, "result")}
    url = f"data:{mime};base64,{base64}" if (base64 := text_or_empty(item.get("result"))) else ""
    return [MediaPart.from_wire("image", url, prompt_hint=hint, state=state) or opaque_item(item)]


def opaque_item(item: JSONValue) -> OpaquePart:
    """Return an opaque part with the unchanged item. If the type of the item is in PAIRS and it has an id, the part
    opens or closes a pair.
    """
    fields = object_or_empty(item)
    field, pair = PAIRS.get(text_or_empty(fields.get("type")), (None, None))
    pair_id = text_or_empty(fields.get("call_id")) or text_or_empty(fields.get(field)) if field else ""
    return OpaquePart(dialect=NAME, block=item, pair_id=pair_id or None, pair=pair if pair_id else None)


READERS = {
    "message": _read_message_item, "reasoning": _read_reasoning_item, "function_call": _read_function_call_item,
    "image_generation_call": _read_image_generation_call,
}  # fmt: skip
"""Item type → the function that reads such items. `decode_native` reads the vendor's own tools, and every other item
becomes an opaque part.
"""
