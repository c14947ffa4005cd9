"""Both ways between working copies and the vocabulary, without loss.

    Message ──take──▶ working copy, which keeps it ──make──▶ that same Message, for as long as it says the same
    edited   ──make──▶ a Message made anew: of another id, without origin and signed state; each is a Loss
    created  ──make──▶ a Message of the working copy's id; of another after a change

A message's kind is that of its side: system, user, the assistant's, a call, a result. What is no text and no image
rides along in the message that is kept; of an edited one its media go along, and its maker's own parts do not.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeGuard, TypeVar

from pydantic import BaseModel
from sabir.base.losses import Loss, LossKind
from sabir.base.models import build
from sabir.base.values import encode_json
from sabir.rendering.pairing import side_of
from sabir.vocabulary.hints import SHARED
from sabir.vocabulary.messages import Message, OptionCallPayload, OptionResultPayload, PartsPayload, RoleHint, new_ids
from sabir.vocabulary.parts import MediaPart, Part, TextPart

from sabir_roles.action_request import ActionRequest
from sabir_roles.action_response import ActionResponse
from sabir_roles.assistant_response import AssistantResponse
from sabir_roles.base import MessageRole, SenderRecipient, validate_sender_recipient
from sabir_roles.content import plain
from sabir_roles.images import image_url
from sabir_roles.instruction import DETAILS, Instruction
from sabir_roles.message import Made, RoledMessage
from sabir_roles.system import System

Payload: TypeAlias = PartsPayload | OptionCallPayload | OptionResultPayload
Kept = TypeVar("Kept", bound=BaseModel)
_SPEAKERS: Mapping[MessageRole, tuple[str, RoleHint]] = {
    MessageRole.SYSTEM: ("system", "system"),
    MessageRole.USER: ("user", "user"),
    MessageRole.ASSISTANT: ("llm", "assistant"),
    MessageRole.ACTION: ("user", "user"),
}
"""Role → the policy of a message of parts whose sender is a role, and the hint for one whose sender has a name."""
EDITED = "the message was edited"


def take(message: Message, speaks_as: str) -> RoledMessage:
    """The working copy of a message, for the policy that a model speaks as."""
    payload = message.payload
    if payload.kind == "unknown":
        return _kept(RoledMessage(role=MessageRole.UNSET, id=message.id), message)
    kind = _KINDS[payload.kind][side_of(message, speaks_as)]
    return _kept(_taken(kind, message), message)


def _kept(copy: RoledMessage, message: Message) -> RoledMessage:
    copy._source, copy._made = message, Made(message, (), copy._revision)
    return copy


def _taken(kind: type[RoledMessage], message: Message) -> RoledMessage:
    sender, recipient, role, content = _READERS[kind](message)
    said = {"content": content, "role": role, "template": kind.own_template}
    return kind(id=message.id, **said, sender=sender, recipient=recipient)


_Read: TypeAlias = tuple[SenderRecipient, SenderRecipient, MessageRole, dict[str, Any]]


def _read_system(message: Message) -> _Read:
    return message.policy, MessageRole.ASSISTANT, MessageRole.SYSTEM, {"system_message": message.text}


def _read_user(message: Message) -> _Read:
    content: dict[str, Any] = {"instruction": message.text} if message.text else {}
    images = [part for part in message.parts if part.kind == "media" and part.modality == "image"]
    if images:
        content["images"] = [part.url for part in images]
        details = {section.get("detail") for part in images for section in part.vendor.values()}
        if len(details) == 1 and details <= set(DETAILS):
            content["image_detail"] = details.pop()
    return message.policy, MessageRole.ASSISTANT, MessageRole.USER, content


def _read_assistant(message: Message) -> _Read:
    return message.policy, MessageRole.USER, MessageRole.ASSISTANT, {"assistant_response": message.text}


def _read_call(message: Message) -> _Read:
    call = message.call
    assert call is not None
    request = {"function": call.option_name, "arguments": plain(call.arguments)}
    content = {"action_request": request, "invocation_id": call.invocation_id}
    return message.policy, MessageRole.ACTION, MessageRole.ACTION, content


def _read_result(message: Message) -> _Read:
    result = message.result
    assert result is not None
    response = {"function": result.option_name, "arguments": {}, "output": _output(result)}
    content = {"action_response": response, "invocation_id": result.invocation_id}
    return message.policy, MessageRole.ASSISTANT, MessageRole.ACTION, content


def _output(result: OptionResultPayload) -> Any:  # any JSON value
    """What a response shows of a result: its value, its text, its parts as JSON, or its error as an object."""
    if result.is_error:
        said = {"type": result.error_type, "message": result.error_message, "retryable": result.retryable}
        return {"error": {name: value for name, value in said.items() if value is not None}}
    if len(result.parts) == 1 and isinstance(result.parts[0], TextPart):
        return result.parts[0].text
    return [part.model_dump(mode="json") for part in result.parts] or plain(result.result)


_KINDS: Mapping[str, Mapping[str, type[RoledMessage]]] = {
    "parts": {"system": System, "user": Instruction, "assistant": AssistantResponse},
    "option_call": {"assistant": ActionRequest},
    "option_result": {"results": ActionResponse},
}
"""Kind of the payload → side → kind of the working copy."""
_READERS: Mapping[type[RoledMessage], Callable[[Message], _Read]] = {
    System: _read_system,
    Instruction: _read_user,
    AssistantResponse: _read_assistant,
    ActionRequest: _read_call,
    ActionResponse: _read_result,
}


def make(copy: RoledMessage) -> tuple[Message | None, tuple[Loss, ...]]:
    """The message of a working copy, and what it lacks of the one that the copy came from."""
    source, twin = copy._source, None
    if source is not None:
        kind = next((each for each in _READERS if isinstance(copy, each)), None)
        twin = _taken(kind, source) if kind else RoledMessage(role=MessageRole.UNSET)
        if _told(copy) == _told(twin):
            return source, ()
    if copy.role in (None, MessageRole.UNSET):
        return _nothing(copy, "its role is unset")
    payload = _payload(copy, twin)
    if payload is None:
        return _nothing(copy, "it says nothing")
    policy, hint = _speaker(copy, twin)
    step_num = source.step_num if source else None
    previous = copy._made.message
    is_first = previous is None and source is None
    fields = {"policy": policy, "role_hint_for_llm": hint, "step_num": step_num, "payload": payload}
    made = build(Message, "message", id=copy.id if is_first else new_ids(1)[0], **fields)
    if previous is not None and previous.same_content(made) and previous.origin is None:
        made = previous
    return made, tuple(_lost(source, made)) if source else ()


def _nothing(copy: RoledMessage, reason: str) -> tuple[None, tuple[Loss, ...]]:
    return None, (Loss(kind="dropped", message_id=copy.id, reason=f"no message is made of it: {reason}"),)


def _told(copy: RoledMessage) -> tuple[object, ...]:
    """All that a message of the vocabulary holds of a working copy."""
    whose = type(copy).__name__, copy.role, validate_sender_recipient(copy.sender)
    if isinstance(copy, ActionRequest):
        return *whose, copy.invocation_id, copy.function, encode_json(copy.arguments, sort_keys=True)
    if isinstance(copy, ActionResponse):
        return *whose, copy.invocation_id, copy.function, encode_json(copy.output, sort_keys=True)
    if isinstance(copy, Instruction):
        return *whose, copy.written, tuple(copy.images), copy.image_detail
    return *whose, copy.written


def _speaker(copy: RoledMessage, twin: RoledMessage | None) -> tuple[str, RoleHint | Any | None]:
    """The policy of a message, and its hint: those of the one that it came from, where that is not changed."""
    source, is_action = copy._source, isinstance(copy, ActionRequest | ActionResponse)
    sender = copy.sender if copy.sender is not None else MessageRole.UNSET
    if source is not None and twin is not None and (sender, copy.role) == (twin.sender, twin.role):
        return source.policy, source.role_hint_for_llm
    if is_action:
        own = copy.function if isinstance(copy, ActionResponse) else "llm"
        return (own if isinstance(sender, MessageRole) else sender), None
    policy, hint = _SPEAKERS[copy.role or MessageRole.USER]
    if isinstance(sender, MessageRole):  # an adapter may speak as another policy than ours of the assistant
        return policy, hint if hint == "assistant" else None
    return sender, hint


def _payload(copy: RoledMessage, twin: RoledMessage | None) -> Payload | None:
    pair = (copy._source.call or copy._source.result) if copy._source is not None else None
    if pair is not None and twin is not None and _told(copy)[3:] == _told(twin)[3:]:
        return _stateless(pair)
    if isinstance(copy, ActionRequest):
        said = {"invocation_id": copy.invocation_id, "option_name": copy.function, "arguments": copy.arguments}
        return build(OptionCallPayload, "option call", **said)
    if isinstance(copy, ActionResponse):
        said = {"invocation_id": copy.invocation_id, "option_name": copy.function, "result": copy.output}
        return build(OptionResultPayload, "option result", **said)
    parts = _new_parts(copy) if twin is None else _edited_parts(copy, twin)
    return build(PartsPayload, "message", parts=tuple(parts)) if parts else None


def _new_parts(copy: RoledMessage) -> list[Part]:
    text = copy.written
    parts: list[Part] = [build(TextPart, "text", text=text)] if text else []
    return parts + [_image(copy, image) for image in _images(copy)]


def _images(copy: RoledMessage) -> list[str]:
    return copy.images if isinstance(copy, Instruction) else []


def _image(copy: RoledMessage, image: str) -> MediaPart:
    detail = _detail_of(copy)
    hints = {"vendor": {SHARED: {"detail": detail}}} if detail else {}
    return build(MediaPart, "image", modality="image", url=image_url(image), **hints)


def _detail_of(copy: RoledMessage) -> str | None:
    """The detail that is asked for; None where none is."""
    return copy.image_detail if isinstance(copy, Instruction) and copy.content.get("image_detail") else None


def _detailed(part: MediaPart, detail: str | None) -> MediaPart:
    """An image with the detail that is asked for now, in the sections that asked for one; in none where none is."""
    sections = {name: dict(section) for name, section in part.vendor.items()}
    asked = [section for section in sections.values() if "detail" in section]
    for section in asked or [sections.setdefault(SHARED, {})]:
        section.pop("detail", None)
        section.update({"detail": detail} if detail else {})
    return part.model_copy(update={"vendor": {name: section for name, section in sections.items() if section}})


def _edited_parts(copy: RoledMessage, twin: RoledMessage) -> list[Part]:
    """The parts of an edited message: the new text in the place of the old, the media that are still there."""
    source = copy._source
    assert source is not None
    text, images = copy.written, copy.images if isinstance(copy, Instruction) else None
    has_text = text == twin.written
    said: list[Part] = [build(TextPart, "text", text=text)] if text and not has_text else []
    detail = _detail_of(copy)
    is_detailed = detail != _detail_of(twin)
    known: dict[str, MediaPart] = {}
    parts: list[Part] = []
    for part in source.parts:
        if part.kind == "text":
            parts += [_stateless(part)] if has_text else said
            said = []
        elif part.kind == "media" and (images is None or part.modality != "image" or part.url in images):
            kept = _stateless(part)
            kept = _detailed(kept, detail) if is_detailed and part.modality == "image" else kept
            known.setdefault(part.url, kept)
            parts.append(kept)
    parts, images = said + parts, images or []
    shown = [part.url for part in parts if _is_image(part)] if images else []
    if shown != images[: len(shown)]:
        parts, shown = [part for part in parts if not _is_image(part)], []
    return parts + [known.get(image) or _image(copy, image) for image in images[len(shown) :]]


def _is_image(part: Part) -> TypeGuard[MediaPart]:
    return isinstance(part, MediaPart) and part.modality == "image"


def _stateless(said: Kept) -> Kept:
    """A part, a call or a result without its maker's state."""
    if isinstance(said, OptionResultPayload):
        return said.model_copy(update={"parts": tuple(map(_stateless, said.parts))})
    return said.model_copy(update={"state_json": None}) if getattr(said, "state_json", None) is not None else said


def _lost(source: Message, made: Message) -> list[Loss]:
    """What a message made anew lacks of the one that it came from."""
    lost: list[Loss] = []

    def lose(kind: LossKind, path: str, reason: str) -> None:
        lost.append(Loss(kind=kind, message_id=made.id, path=path, reason=f"{EDITED}: {reason}"))

    if source.origin is not None:
        lose("withheld", "origin", f"it is no longer what {source.origin.provider} {source.origin.model} said".strip())
    if source.call is not None and source.call.state_json is not None:
        lose("withheld", "payload.state", "its maker's state belongs to what it said")
    if source.call is not None and source.call.invalid_arguments and not (made.call and made.call.invalid_arguments):
        lose("rewritten", "payload.arguments", "its text is no JSON object; the call has the arguments of the edit")
    if source.result is not None and source.result.is_error and not (made.result and made.result.is_error):
        lose("dropped", "payload.is_error", "it is no longer the failure that it was")
    within = "payload.parts" if source.result else "parts"
    kept = {part.text for part in made.parts if part.kind == "text"}
    for index, part in enumerate(source.parts):
        path = f"{within}[{index}]"
        if not (made.parts if source.result else part.kind in ("text", "media")):
            lose("dropped", path, f"a {part.kind} part belongs to what was said")
        elif getattr(part, "state_json", None) is not None:
            lose("withheld", f"{path}.state", "its maker's state belongs to what it said")
        if part.kind == "text" and part.citations and part.text not in kept:
            lose("dropped", f"{path}.citations", "they are of another text")
    return lost
