"""Make messages and media parts in one expression.

    sabir.user("What is this?", sabir.image("sky.jpg"))

`user`, `system` and `assistant` differ only in the policy that they set ("user", "system", "llm"). They set no role
hint, because adapters derive the role from the policy.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypedDict, Unpack, cast

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from sabir.base.errors import BuilderError, MediaRefused, NotJSON, WrongWord
from sabir.base.surface import show_arguments
from sabir.base.values import encode_json
from sabir.vocabulary.media import FILE_CAP, MediaURL, Modality, read_source
from sabir.vocabulary.messages import Message, OptionCallPayload, OptionResultPayload, PartsPayload
from sabir.vocabulary.parts import KnownPart, MediaPart, Part, Sections, TextPart
from sabir.vocabulary.reply import Reply

Content: TypeAlias = str | KnownPart
"""What a message can contain: strings, and parts (text, media and other content)."""
Source: TypeAlias = str | Path | bytes
"""Where a medium comes from: a URL or the path of a local file, as text; a Path; or the bytes themselves."""


class MediaSettings(TypedDict, total=False):
    """The optional arguments of `image`, `audio`, `video` and `document`.

    mime: the MIME type, such as "image/png". With None, or for text that is
        not a MIME type, the type of a file or of bytes is detected from the
        first bytes, else from the file's extension.
    hint: a label that names the medium, such as "a street map".
    name: the file name. None means the last part of a file's path.
    id: an id of your own, to find the part again.
    cap: the largest number of bytes that a file or bytes may have
        (50,000,000).
    vendor: provider name to hints for that provider; "*" is for every
        provider that knows the hints.
    """

    mime: str | None
    hint: str | None
    name: str | None
    id: str | None
    cap: int
    vendor: Sections | None


def user(*content: Content, step_num: int | None = None) -> Message:
    """Return a message of the user. `content` is strings and parts, in order.

    `step_num` is the number of the step, 0 or more, in a program of several steps; None means no step. Raises
    BuilderError without content or for text that is not valid Unicode, WrongWord for a dictionary or another type in
    `content`, and pydantic's ValidationError for another `step_num`.

    >>> import sabir
    >>> question = sabir.user("What is this?", sabir.image("https://example.org/sky.jpg"))
    >>> question.text
    'What is this?'
    """
    return _create_message("user", content, step_num)


def system(*content: Content, step_num: int | None = None) -> Message:
    """Return a system message, which contains instructions to the model. The arguments and errors are those of `user`.

    >>> import sabir
    >>> llm = sabir.adapter("echo:m")
    >>> llm.complete_sync([sabir.system("Be brief."), sabir.user("Hello!")]).text
    'Hello!'
    """
    return _create_message("system", content, step_num)


def assistant(*content: Content, policy: str = "llm", step_num: int | None = None) -> Message:
    """Return a message of the model, for example to write an example dialogue.

    `policy` is the model's policy name. An adapter sends messages whose policy equals its `speaks_as` as the model's
    own. `content`, `step_num` and the errors are the same as for `user`; an empty `policy` raises ValidationError too.

    >>> import sabir
    >>> dialogue = [sabir.user("2 + 2?"), sabir.assistant("4"), sabir.user("3 + 3?")]
    >>> [message.policy for message in dialogue]
    ['user', 'llm', 'user']
    """
    return _create_message(policy, content, step_num)


@show_arguments
def image(source: Source, **settings: Unpack[MediaSettings]) -> MediaPart:
    r"""Return an image part from a URL, the path of a file, or bytes.

    Text that begins with `http:`, `https:`, `data:` or `provider-file:` is a URL; other text is a path. A URL is stored
    and not downloaded. A file or bytes become a `data:` URL. Raises MediaRefused for a source of another type, a file
    that cannot be read, more than `cap` bytes, no bytes, an invalid URL, and if the MIME type of a file, of bytes or of
    a `data:` URL is unknown or not allowed (such as SVG). The MIME type of a web address is not checked. Raises
    BuilderError for an invalid `hint`, `name`, `id` or `vendor`.

    >>> import sabir
    >>> part = sabir.image(b"\x89PNG\r\n\x1a\n...", name="sky.png")
    >>> part.url[:22], part.name
    ('data:image/png;base64,', 'sky.png')
    """
    return _create_media("image", source, **settings)


@show_arguments
def audio(source: Source, **settings: Unpack[MediaSettings]) -> MediaPart:
    """Return a sound part from a URL, the path of a file, or bytes. Arguments and errors are the same as for
    `image`.
    """
    return _create_media("audio", source, **settings)


@show_arguments
def video(source: Source, **settings: Unpack[MediaSettings]) -> MediaPart:
    """Return a video part from a URL, the path of a file, or bytes. Arguments and errors are the same as for
    `image`.
    """
    return _create_media("video", source, **settings)


@show_arguments
def document(source: Source, **settings: Unpack[MediaSettings]) -> MediaPart:
    """Return a document part, such as a PDF, from a URL, the path of a file, or bytes.

    Arguments and errors are the same as for `image`.
    """
    return _create_media("document", source, **settings)


def as_messages(messages: str | Message | Iterable[Message]) -> list[Message]:
    """Return a new list of the messages that were passed to a call. A string becomes one user message, and a single
    message a list of one.

    Raises WrongWord for an item that is not a Message, such as a dictionary with a role; the error names the index of
    the item. Also raises WrongWord for a Reply, a mapping, bytes, and a value that is not iterable, and BuilderError
    for a string that is not valid Unicode.
    """
    checked = listed(messages)
    check_messages(checked, 0)
    return checked


def check_messages(messages: Sequence[object], start: int) -> None:
    """Raise WrongWord for the first item that is not a Message. Items before position `start` are not checked."""
    checked = messages[start:] if start else messages
    if list(map(type, checked)).count(Message) != len(checked):
        for index, message in enumerate(checked, start):
            if not isinstance(message, Message):
                raise WrongWord(_describe_wrong_message(f"messages[{index}]", message))


def listed(messages: object) -> list[Any]:  # an argument passed by mistake may hold anything
    """Return a new list of the messages that were passed to a call, without checking the items. Raises WrongWord for a
    Reply, a mapping, bytes, and a value that is not iterable.
    """
    if type(messages) is list:  # nearly all arguments are lists
        return messages.copy()
    if isinstance(messages, str):
        return [user(messages)]
    if isinstance(messages, Message):
        return [messages]
    if isinstance(messages, Reply | Mapping | bytes) or not isinstance(messages, Iterable):
        raise WrongWord(_describe_wrong_message("messages", messages))
    return list(messages)


def _describe_wrong_message(place: str, value: object) -> str:
    """Return the text of a WrongWord for an argument that is not a message, with the remedy for its kind."""
    if isinstance(value, Mapping) and "role" in value:
        remedy = "write sabir.user(…), or read a vendor's history with sabir.dialect(name).decode_history(body)"
        return f"{place} is a role dictionary, not a Message; {remedy}"
    if isinstance(value, Reply):
        return f"{place} is a Reply; append reply.messages to the conversation instead"
    if isinstance(value, str):
        return f"{place} is a str among messages; write sabir.user({value[:20]!r})"
    return f"{place} is of type {type(value).__name__}, not a Message; create a Message with sabir.user(…)"


def _create_message(policy: str, content: tuple[Content, ...], step_num: int | None) -> Message:
    if not content:
        raise BuilderError(f"a message of {policy!r} needs content: strings or parts")
    parts = tuple(_as_part(item, index) for index, item in enumerate(content))
    payload = PartsPayload.construct_unchecked({"kind": "parts", "parts": parts}, {"parts"})
    return Message(policy=policy, step_num=step_num, payload=payload)


def _as_part(item: object, index: int) -> KnownPart:
    """Return the part for one item of `content`. Raises WrongWord, with the index, for a type that cannot be one."""
    if isinstance(item, str):
        return TextPart.build(text=item)
    if isinstance(item, KnownPart):
        return item
    if isinstance(item, Mapping):
        raise WrongWord(f"content[{index}] is a vendor's content block; pass a str, or a part such as sabir.image(…)")
    remedy = "pass a str, or a part such as sabir.image(path or bytes)"
    raise WrongWord(f"content[{index}] is of type {type(item).__name__}; {remedy}")


def _create_media(
    modality: Modality,
    source: Source,
    *,
    mime: str | None = None,
    hint: str | None = None,
    name: str | None = None,
    id: str | None = None,
    cap: int = FILE_CAP,
    vendor: Sections | None = None,
) -> MediaPart:
    """Return a media part. The arguments are those of `image`, with the defaults that MediaSettings describes."""
    if not isinstance(source, Source):
        raise MediaRefused(f"the {modality} is of type {type(source).__name__}; pass a URL, a path or bytes")
    url = MediaURL(read_source(source, modality, mime, cap)).check()
    if name is None and not isinstance(source, bytes) and url != source:
        name = Path(source).name
    described = {"mime": mime, "prompt_hint": hint, "name": name, "id": id}
    return MediaPart.build(modality=modality, url=url, **described, vendor=vendor)


def result_fields(returned: object) -> dict[str, Any]:
    """Return the field of an option result, `result` or `parts`, for the value that an option's function returned.

    Raises NotJSON for a value that JSON cannot represent, for a list that mixes parts or messages with other values
    than strings, and for a message that is not of the kind "parts" or has other parts than text and media.

    JSON value                     ──▶ result
    text and media parts, messages ──▶ parts      a list with at least one of them may also contain strings
    JSON value with media in it    ──▶ parts      its JSON text with "attached image 1" for a medium, then the media
    """
    items = returned if isinstance(returned, list | tuple) else (returned,)
    if any(isinstance(item, TextPart | MediaPart | Message) for item in items):
        return {"parts": tuple(part for item in items for part in _parts_of(item))}
    text, media = encode_json(returned, sort_keys=True), list[MediaPart]()
    # Most results are plain JSON, in which there is nothing to look for.
    detached = _detach(returned, media) if '"kind":"media"' in text else None
    if not media:
        return {"result": text}
    return {"parts": (TextPart.build(text=encode_json(detached, sort_keys=True)[:]), *media)}


def _detach(value: object, media: list[MediaPart]) -> object:
    """Append the media inside a value to `media`, and return the value with a text in place of each medium."""
    if isinstance(value, MediaPart):
        media.append(value)
        return f"attached {value.modality} {len(media)}"
    if isinstance(value, dict):
        return {key: _detach(item, media) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_detach(item, media) for item in value]
    names = {each.name: each.name for each in fields(value)} if is_dataclass(value) else dict[str, str]()
    if isinstance(value, BaseModel):
        own = type(value).model_fields.items()
        names = {name: field.serialization_alias or field.alias or name for name, field in own}
    before, items = len(media), {name: getattr(value, name) for name in names}
    detached = {name: _detach(item, media) for name, item in items.items()}
    changed = {names[name]: item for name, item in detached.items() if item is not items[name]}
    return {**to_jsonable_python(value), **changed} if len(media) > before else value


def _parts_of(item: object) -> tuple[Part, ...]:
    """Return the parts of one item of a result. Raises NotJSON for an item that a result with parts cannot contain."""
    if isinstance(item, str):
        return (TextPart.build(text=item),)
    if isinstance(item, TextPart | MediaPart):
        return (item,)
    if not isinstance(item, Message) or item.kind != "parts":
        raise NotJSON(f"{describe_kind(item)} was returned among parts; return one JSON value, or text and media parts")
    if foreign := [part.kind for part in item.parts if not isinstance(part, TextPart | MediaPart)]:
        raise NotJSON(f"a message with a part of kind {foreign[0]!r} cannot be a result; return its text and media")
    return item.parts


def describe_kind(value: object) -> str:
    """Return how an error message names a value: a message by its kind, any other value by its type."""
    if isinstance(value, Message):
        return f"a message of kind {value.kind!r}"
    return f"a value of type {type(value).__name__}"


def option_result(call: Message, outcome: Mapping[str, Any], *, policy: str | None = None) -> Message:
    """Return the message with the result of an option call. `policy` None means the option's name.

    `outcome` contains the fields of the OptionResultPayload except `invocation_id` and `option_name`. Raises
    BuilderError if the fields do not fit.
    """
    answered = cast(OptionCallPayload, call.payload)
    fields_of_message = {"policy": answered.option_name if policy is None else policy, "step_num": call.step_num}
    return Message.build("message", **fields_of_message, payload=result_payload(answered, outcome))


def result_payload(call: OptionCallPayload, outcome: Mapping[str, Any]) -> OptionResultPayload:
    """Return the payload of a call's result, with the call's id and option name. `outcome` contains the other fields.
    Raises BuilderError if the fields do not fit.
    """
    own = {"invocation_id": call.invocation_id, "option_name": call.option_name}
    return OptionResultPayload.build("option result", **own, **outcome)
