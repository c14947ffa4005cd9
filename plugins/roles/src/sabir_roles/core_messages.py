"""Build core messages from editable messages.

    converted, not edited   ──build_message──▶ the original Message
    converted and edited    ──build_message──▶ a new Message with another id, without origin and signed state (losses)
    created                 ──build_message──▶ a Message with the id of the editable message (after a change: a new id)

The content of an editable message contains only texts and images. An edited message keeps the other media of its
original, and loses the parts that only their provider understands. No function changes its arguments. Each kind of
editable message reads a core message with `_read_content`, and returns its content with `_core_content`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, TypeGuard, TypeVar

from pydantic import BaseModel
from sabir import Loss, MediaPart, Message, OptionCallPayload, OptionResultPayload, PartsPayload, TextPart
from sabir.authoring import LossKind, Part, RoleHint, encode_json

from sabir_roles.images import image_url
from sabir_roles.roles import MessageRole, SenderRecipient

Payload: TypeAlias = PartsPayload | OptionCallPayload | OptionResultPayload
BuiltMessage: TypeAlias = tuple[Message | None, tuple[Loss, ...]]
"""A core message (None if the editable message is not sent), and its losses compared with the original."""
Stateful = TypeVar("Stateful", bound=BaseModel)
_SPEAKERS: Mapping[MessageRole, tuple[str, RoleHint]] = {
    MessageRole.SYSTEM: ("system", "system"),
    MessageRole.USER: ("user", "user"),
    MessageRole.ASSISTANT: ("llm", "assistant"),
    MessageRole.ACTION: ("user", "user"),
}
"""Role of a message with parts → its policy if the sender is a role, and its role hint if the sender is a name."""
EDITED = "the message was edited"
STATE = "the provider's signed state is valid only for the original message, so the state was removed"


@dataclass(frozen=True)
class PartsContent:
    """The content of a message with parts: a text and images. `images` is None for a kind without images."""

    text: str
    images: Sequence[str] | None = None
    detail: str | None = None
    """The detail of the images, also if it is the default."""
    requested_detail: str | None = field(default=None, compare=False)
    """The detail that was set; None if none was set. Not compared."""


@dataclass(frozen=True)
class CallContent:
    """The content of a call of a function, or of the result if `is_result` is True. `value` is JSON: the arguments or
    the output. Two values are equal if their JSON texts are equal.
    """

    invocation_id: str
    function: str
    value: Any = field(compare=False)
    is_result: bool = False
    text: str = field(init=False)

    def __post_init__(self) -> None:
        """Store the value as text too, so that 1, 1.0 and true differ."""
        object.__setattr__(self, "text", encode_json(self.value, sort_keys=True))


class MessageDraft(NamedTuple):
    """The fields of an editable message from which its core message is built. `kind` is the name of the class."""

    kind: str
    role: MessageRole | None
    sender: SenderRecipient
    content: PartsContent | CallContent


class Original(NamedTuple):
    """The core message from which an editable message was made, and the draft of that message before any edit."""

    message: Message
    draft: MessageDraft


def build_message(copy_id: str, draft: MessageDraft, original: Original | None, last: Message | None) -> BuiltMessage:
    """Return the core message, and its losses, for an editable message with the id `copy_id`.

    `original` is its original, and `last` the core message that was built before; None if there is none. If nothing
    changed, one of them is returned.
    """
    if original is not None and draft == original.draft:
        return original.message, ()
    if draft.role in (None, MessageRole.UNSET):
        return report_unsent(copy_id, "its role is unset")
    payload = _build_payload(draft.content, original)
    if payload is None:
        return report_unsent(copy_id, "it is empty")
    policy, hint = _choose_policy(draft, original)
    step_num = original.message.step_num if original else None
    is_first = last is None and original is None
    fields = {"policy": policy, "role_hint_for_llm": hint, "step_num": step_num, "payload": payload}
    message = Message.build("message", id=copy_id if is_first else Message.new_id(), **fields)
    if last is not None and last.same_content(message) and last.origin is None:
        message = last
    return message, tuple(_list_losses(original.message, message)) if original else ()


def report_unsent(copy_id: str, reason: str) -> BuiltMessage:
    """Return the result of `build_message` for a message that is not sent: None, and a loss with the reason."""
    return None, (Loss(kind="dropped", message_id=copy_id, reason=f"the message is not sent, because {reason}"),)


def _choose_policy(draft: MessageDraft, original: Original | None) -> tuple[str, RoleHint | Any | None]:
    """Return the policy and the role hint of a core message: those of the original, unless sender or role changed."""
    sender, content = draft.sender, draft.content
    if original is not None and (sender, draft.role) == (original.draft.sender, original.draft.role):
        return original.message.policy, original.message.role_hint_for_llm
    if isinstance(content, CallContent):
        own = content.function if content.is_result else "llm"
        return (own if isinstance(sender, MessageRole) else sender), None
    policy, hint = _SPEAKERS[draft.role or MessageRole.USER]
    if isinstance(sender, MessageRole):  # the hint is needed because the adapter's own policy may not be "llm"
        return policy, hint if hint == "assistant" else None
    return sender, hint


def _build_payload(content: PartsContent | CallContent, original: Original | None) -> Payload | None:
    pair = (original.message.call or original.message.result) if original else None
    if original is not None and pair is not None and content == original.draft.content:
        return _without_state(pair)
    if isinstance(content, CallContent):
        call_fields = {"invocation_id": content.invocation_id, "option_name": content.function}
        if content.is_result:
            return OptionResultPayload.build("option result", **call_fields, result=content.value)
        return OptionCallPayload.build("option call", **call_fields, arguments=content.value)
    parts = _build_parts(content) if original is None else _edit_parts(content, original)
    return PartsPayload.build("message", parts=tuple(parts)) if parts else None


def _build_parts(content: PartsContent) -> list[Part]:
    parts: list[Part] = [TextPart.build("text", text=content.text)] if content.text else []
    return parts + [_build_image(content, image) for image in content.images or ()]


def _build_image(content: PartsContent, image: str) -> MediaPart:
    hints = {"vendor": {"*": {"detail": content.requested_detail}}} if content.requested_detail else {}
    return MediaPart.build("image", modality="image", url=image_url(image), **hints)


def _set_detail(part: MediaPart, detail: str | None) -> MediaPart:
    """Return an image with the requested detail in its vendor hints; None removes the detail."""
    sections = {name: dict(section) for name, section in part.vendor.items()}
    with_detail = [section for section in sections.values() if "detail" in section]
    for section in with_detail or [sections.setdefault("*", {})]:
        section.pop("detail", None)
        section.update({"detail": detail} if detail else {})
    return part.model_copy(update={"vendor": {name: section for name, section in sections.items() if section}})


def _edit_parts(content: PartsContent, original: Original) -> list[Part]:
    """Return the parts of an edited message: the new text instead of the old text, and the remaining media."""
    first = original.draft.content
    assert isinstance(first, PartsContent)
    same_text = content.text == first.text
    new_text: list[Part] = [TextPart.build("text", text=content.text)] if content.text and not same_text else []
    detail_changed = content.requested_detail != first.requested_detail
    media: dict[str, MediaPart] = {}
    parts: list[Part] = []
    for part in original.message.parts:
        if part.kind == "text":
            parts += [_without_state(part)] if same_text else new_text
            new_text = []
        elif part.kind == "media" and (content.images is None or not _is_image(part) or part.url in content.images):
            medium = _without_state(part)
            medium = _set_detail(medium, content.requested_detail) if detail_changed and _is_image(part) else medium
            media.setdefault(part.url, medium)
            parts.append(medium)
    parts, images = new_text + parts, list(content.images or ())
    unchanged_images = [part.url for part in parts if _is_image(part)] if images else []
    if unchanged_images != images[: len(unchanged_images)]:
        parts, unchanged_images = [part for part in parts if not _is_image(part)], []
    return parts + [media.get(image) or _build_image(content, image) for image in images[len(unchanged_images) :]]


def _is_image(part: Part) -> TypeGuard[MediaPart]:
    return isinstance(part, MediaPart) and part.modality == "image"


def _without_state(piece: Stateful) -> Stateful:
    """Return a part, a call or a result without the state of its provider."""
    if isinstance(piece, OptionResultPayload):
        return piece.model_copy(update={"parts": tuple(map(_without_state, piece.parts))})
    return piece.model_copy(update={"state_json": None}) if getattr(piece, "state_json", None) is not None else piece


def _list_losses(source: Message, new: Message) -> list[Loss]:
    """Return the losses of a new message, compared with its original."""
    losses: list[Loss] = []

    def lose(kind: LossKind, path: str, reason: str) -> None:
        losses.append(Loss(kind=kind, message_id=new.id, path=path, reason=f"{EDITED}: {reason}"))

    if source.origin is not None:
        maker = f"{source.origin.provider} {source.origin.model}".strip()
        lose("withheld", "origin", f"its origin was removed, because the message is not the reply of {maker} any more")
    if source.call is not None and source.call.state_json is not None:
        lose("withheld", "payload.state", STATE)
    if source.call is not None and source.call.invalid_arguments and not (new.call and new.call.invalid_arguments):
        why = "were cut off" if source.call.cut_off else "are not a JSON object"
        lose("rewritten", "payload.arguments", f"the edited arguments replace the original arguments, which {why}")
    if source.result is not None and source.result.is_error and not (new.result and new.result.is_error):
        lose("dropped", "payload.is_error", "the original result was an error, and the edited result is not")
    within = "payload.parts" if source.result else "parts"
    texts = {part.text for part in new.parts if part.kind == "text"}
    for index, part in enumerate(source.parts):
        path = f"{within}[{index}]"
        if not (new.parts if source.result else part.kind in ("text", "media")):
            lose("dropped", path, f"the {part.kind} part of the unedited message was removed")
        elif getattr(part, "state_json", None) is not None:
            lose("withheld", f"{path}.state", STATE)
        if part.kind == "text" and part.citations and part.text not in texts:
            lose("dropped", f"{path}.citations", "the citations refer to the original text, so they were removed")
    return losses
