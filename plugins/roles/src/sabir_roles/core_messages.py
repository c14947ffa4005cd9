"""Build core messages from editable messages.

    converted, not edited     ──make──▶ the original Message
    converted and edited      ──make──▶ a new Message with another id, without origin and signed state (losses)
    created                   ──make──▶ a Message with the id of the editable message; with another id after a change

The content of an editable message contains only texts and images. An edited message keeps the other media of its
original, and loses the parts that only their provider understands. No function changes its arguments. Each kind of
editable message reads a core message with `_read`, and returns its content with `_stated`.
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
Made: TypeAlias = tuple[Message | None, tuple[Loss, ...]]
"""A core message (None if the editable message is empty), and its losses compared with the original."""
Kept = TypeVar("Kept", bound=BaseModel)
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
class Words:
    """The content of a message with parts: a text and images. `images` is None for a kind without images."""

    text: str
    images: Sequence[str] | None = None
    detail: str | None = None
    """The detail of the images, also if it is the default."""
    asked_detail: str | None = field(default=None, compare=False)
    """The detail that was set; None if none was set. Not compared."""


@dataclass(frozen=True)
class Called:
    """The content of a call of a function, or of the result if `is_result` is True. `value` is JSON: the arguments or
    the output. It is compared by its JSON text.
    """

    invocation_id: str
    function: str
    value: Any = field(compare=False)
    is_result: bool = False
    text: str = field(init=False)

    def __post_init__(self) -> None:
        """Store the value as text too, so that 1, 1.0 and true differ."""
        object.__setattr__(self, "text", encode_json(self.value, sort_keys=True))


class Statement(NamedTuple):
    """The fields of an editable message from which its core message is built. `kind` is the name of the class."""

    kind: str
    role: MessageRole | None
    sender: SenderRecipient
    content: Words | Called


class Origin(NamedTuple):
    """The original core message of an editable message, and the Statement of an unedited copy of it."""

    message: Message
    statement: Statement


def make(copy_id: str, said: Statement, origin: Origin | None, previous: Message | None) -> Made:
    """Return the core message, and its losses, for an editable message with the id `copy_id` and the fields `said`.

    `origin` is its original, and `previous` the core message that was built before; None if there is none. If nothing
    changed, one of them is returned.
    """
    if origin is not None and said == origin.statement:
        return origin.message, ()
    if said.role in (None, MessageRole.UNSET):
        return nothing(copy_id, "its role is unset")
    payload = _payload(said.content, origin)
    if payload is None:
        return nothing(copy_id, "it is empty")
    policy, hint = _speaker(said, origin)
    step_num = origin.message.step_num if origin else None
    is_first = previous is None and origin is None
    fields = {"policy": policy, "role_hint_for_llm": hint, "step_num": step_num, "payload": payload}
    made = Message.build("message", id=copy_id if is_first else Message.new_id(), **fields)
    if previous is not None and previous.same_content(made) and previous.origin is None:
        made = previous
    return made, tuple(_lost(origin.message, made)) if origin else ()


def nothing(copy_id: str, reason: str) -> Made:
    """Return the result of `make` for a message that is not sent: None, and a loss with the reason."""
    return None, (Loss(kind="dropped", message_id=copy_id, reason=f"the message is not sent, because {reason}"),)


def _speaker(said: Statement, origin: Origin | None) -> tuple[str, RoleHint | Any | None]:
    """Return the policy and the role hint of a core message: those of the original, unless sender or role changed."""
    sender, content = said.sender, said.content
    if origin is not None and (sender, said.role) == (origin.statement.sender, origin.statement.role):
        return origin.message.policy, origin.message.role_hint_for_llm
    if isinstance(content, Called):
        own = content.function if content.is_result else "llm"
        return (own if isinstance(sender, MessageRole) else sender), None
    policy, hint = _SPEAKERS[said.role or MessageRole.USER]
    if isinstance(sender, MessageRole):  # the hint is needed because the adapter's own policy may not be "llm"
        return policy, hint if hint == "assistant" else None
    return sender, hint


def _payload(content: Words | Called, origin: Origin | None) -> Payload | None:
    pair = (origin.message.call or origin.message.result) if origin else None
    if origin is not None and pair is not None and content == origin.statement.content:
        return _stateless(pair)
    if isinstance(content, Called):
        said = {"invocation_id": content.invocation_id, "option_name": content.function}
        if content.is_result:
            return OptionResultPayload.build("option result", **said, result=content.value)
        return OptionCallPayload.build("option call", **said, arguments=content.value)
    parts = _new_parts(content) if origin is None else _edited_parts(content, origin)
    return PartsPayload.build("message", parts=tuple(parts)) if parts else None


def _new_parts(words: Words) -> list[Part]:
    parts: list[Part] = [TextPart.build("text", text=words.text)] if words.text else []
    return parts + [_image(words, image) for image in words.images or ()]


def _image(words: Words, image: str) -> MediaPart:
    hints = {"vendor": {"*": {"detail": words.asked_detail}}} if words.asked_detail else {}
    return MediaPart.build("image", modality="image", url=image_url(image), **hints)


def _detailed(part: MediaPart, detail: str | None) -> MediaPart:
    """Return an image with the requested detail in its vendor hints; None removes the detail."""
    sections = {name: dict(section) for name, section in part.vendor.items()}
    asked = [section for section in sections.values() if "detail" in section]
    for section in asked or [sections.setdefault("*", {})]:
        section.pop("detail", None)
        section.update({"detail": detail} if detail else {})
    return part.model_copy(update={"vendor": {name: section for name, section in sections.items() if section}})


def _edited_parts(words: Words, origin: Origin) -> list[Part]:
    """Return the parts of an edited message: the new text instead of the old text, and the remaining media."""
    first = origin.statement.content
    assert isinstance(first, Words)
    has_text = words.text == first.text
    said: list[Part] = [TextPart.build("text", text=words.text)] if words.text and not has_text else []
    is_detailed = words.asked_detail != first.asked_detail
    known: dict[str, MediaPart] = {}
    parts: list[Part] = []
    for part in origin.message.parts:
        if part.kind == "text":
            parts += [_stateless(part)] if has_text else said
            said = []
        elif part.kind == "media" and (words.images is None or not _is_image(part) or part.url in words.images):
            kept = _stateless(part)
            kept = _detailed(kept, words.asked_detail) if is_detailed and _is_image(part) else kept
            known.setdefault(part.url, kept)
            parts.append(kept)
    parts, images = said + parts, list(words.images or ())
    shown = [part.url for part in parts if _is_image(part)] if images else []
    if shown != images[: len(shown)]:
        parts, shown = [part for part in parts if not _is_image(part)], []
    return parts + [known.get(image) or _image(words, image) for image in images[len(shown) :]]


def _is_image(part: Part) -> TypeGuard[MediaPart]:
    return isinstance(part, MediaPart) and part.modality == "image"


def _stateless(said: Kept) -> Kept:
    """Return a part, a call or a result without the state of its provider."""
    if isinstance(said, OptionResultPayload):
        return said.model_copy(update={"parts": tuple(map(_stateless, said.parts))})
    return said.model_copy(update={"state_json": None}) if getattr(said, "state_json", None) is not None else said


def _lost(source: Message, made: Message) -> list[Loss]:
    """Return the losses of a new message, compared with its original."""
    lost: list[Loss] = []

    def lose(kind: LossKind, path: str, reason: str) -> None:
        lost.append(Loss(kind=kind, message_id=made.id, path=path, reason=f"{EDITED}: {reason}"))

    if source.origin is not None:
        maker = f"{source.origin.provider} {source.origin.model}".strip()
        lose("withheld", "origin", f"its origin was removed, because the message is not the reply of {maker} any more")
    if source.call is not None and source.call.state_json is not None:
        lose("withheld", "payload.state", STATE)
    if source.call is not None and source.call.invalid_arguments and not (made.call and made.call.invalid_arguments):
        why = "were cut off" if source.call.cut_off else "are not a JSON object"
        lose("rewritten", "payload.arguments", f"the edited arguments replace the original arguments, which {why}")
    if source.result is not None and source.result.is_error and not (made.result and made.result.is_error):
        lose("dropped", "payload.is_error", "the original result was an error, and the edited result is not")
    within = "payload.parts" if source.result else "parts"
    kept = {part.text for part in made.parts if part.kind == "text"}
    for index, part in enumerate(source.parts):
        path = f"{within}[{index}]"
        if not (made.parts if source.result else part.kind in ("text", "media")):
            lose("dropped", path, f"a {part.kind} part is valid only in the original, so it was removed")
        elif getattr(part, "state_json", None) is not None:
            lose("withheld", f"{path}.state", STATE)
        if part.kind == "text" and part.citations and part.text not in kept:
            lose("dropped", f"{path}.citations", "the citations refer to the original text, so they were removed")
    return lost
