"""Save and load conversations as a JSON array or as JSON Lines.

    messages ──dumps, save──▶ [            one message a line
                              {…},         fields that are None are left out, unless the message has unknown fields
                              {…}
                              ]
             ◀──loads, load── the same, or one object a line

Loading is tolerant: unknown kinds, hints, modalities, URL schemes and fields are kept unchanged and written back. Other
data raises HistoryInvalid, in one line that names the file (in `load`), the line or message, and the fault.
"""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from sabir.base.errors import HistoryInvalid, one_line
from sabir.base.files import replace_file
from sabir.base.models import PlainSchema, StoredModel, describe_validation_error, load_stored
from sabir.base.values import DECODER
from sabir.vocabulary.constructors import as_messages
from sabir.vocabulary.media import Modality, read_regular
from sabir.vocabulary.messages import KNOWN_PAYLOADS, Message
from sabir.vocabulary.parts import KNOWN_KINDS


def _none_of(field: str, known: Iterable[str]) -> dict[str, Any]:
    return {"properties": {field: {"type": "string", "not": {"enum": list(known)}}}, "required": [field]}


_UNKNOWN = {
    "UnknownPart": {
        "description": "A part of a kind, or a medium of a modality, that this version does not know, kept unchanged.",
        "type": "object",
        "anyOf": [
            _none_of("kind", KNOWN_KINDS),
            {**_none_of("modality", get_args(Modality)), "allOf": [{"properties": {"kind": {"const": "media"}}}]},
        ],
        "required": ["kind"],
    },
    "UnknownPayload": {
        "description": "A payload of a kind that this version does not know, kept unchanged.",
        "type": "object",
        **_none_of("kind", KNOWN_PAYLOADS),
    },
}
"""Definitions that `schema` adds, for data that only a newer version of sabir knows."""
_NO_SPACE = re.compile(r"[^ \t\r\n]")
_SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def dumps(messages: Iterable[Message]) -> str:
    """Return a conversation as the text of a JSON array, one message per line. `loads` reads the text.

    Raises WrongWord for an item that is not a Message, and HistoryInvalid for a message that JSON cannot represent;
    both errors name the index of the item. Also raises WrongWord if `messages` is a Reply, a mapping or bytes.
    """
    lines = list(_dump(messages))
    return "[\n" + ",\n".join(lines) + "\n]\n" if lines else "[]\n"


def dumps_lines(messages: Iterable[Message]) -> str:
    """Return a conversation as JSON Lines, one message per line, so that later messages can be appended to a file.

    `loads` reads the text. Raises the same errors as `dumps`.
    """
    return "".join(f"{line}\n" for line in _dump(messages))


def save(path: str | Path, messages: Iterable[Message]) -> None:
    """Write a conversation to a file: as JSON Lines if the file's name ends in `.jsonl`, else as a JSON array.

    An existing file is replaced atomically and keeps its permissions. If the path is a symbolic link, the linked file
    is replaced, and the linked file's name decides the format. Raises HistoryInvalid if JSON cannot represent a
    message, if the folder does not exist, or if the path is not a regular file; WrongWord for an item that is not a
    Message; OSError if the file system refuses to write.

    >>> import sabir
    >>> sabir.save("chat.json", [sabir.user("Hello!")])
    >>> sabir.load("chat.json")[0].text
    'Hello!'
    """
    original, path = path, Path(path).resolve()
    text = dumps_lines(messages) if path.suffix == ".jsonl" else dumps(messages)
    if not path.parent.is_dir():
        raise HistoryInvalid(f"{str(original)!r} cannot be written: its folder does not exist; create the folder first")
    if path.exists() and not path.is_file():
        raise HistoryInvalid(f"{str(original)!r} is not a regular file, so it was not replaced; use the path of a file")
    replace_file(path, text)


def load(path: str | Path) -> list[Message]:
    """Return the messages of a file that `save` wrote, whether it is a JSON array or JSON Lines.

    An empty file gives an empty list. Data of newer versions of sabir is kept. Raises HistoryInvalid, which names the
    file and the fault, if the file cannot be read or contains anything other than messages.

    >>> import sabir
    >>> sabir.save("chat.jsonl", [sabir.user("Hello!"), sabir.assistant("Good morning.")])
    >>> [message.text for message in sabir.load("chat.jsonl")]
    ['Hello!', 'Good morning.']
    """
    try:
        data = read_regular(Path(path))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise HistoryInvalid(f"{str(path)!r} cannot be read: {reason}; use the path of a saved history") from None
    try:
        return loads(data)
    except HistoryInvalid as error:
        raise HistoryInvalid(f"{str(path)!r}: {error}") from None


def loads(text: str | bytes) -> list[Message]:
    """Return the messages of a text that `dumps` or `dumps_lines` wrote. An empty text gives an empty list.

    Bytes must be UTF-8. Data of newer versions of sabir is kept. Raises HistoryInvalid for any other text, with the
    line or message and the fault in the error, and for a value that is not str or bytes.
    """
    return [_load_message(item, place) for place, item in _split_values(_decode(text))]


def schema() -> dict[str, Any]:
    """Return the JSON schema of a stored conversation (a JSON array of messages), for programs in other languages."""
    document = TypeAdapter(list[Message]).json_schema(schema_generator=PlainSchema)
    definitions = document["$defs"]
    definitions |= _UNKNOWN
    for definition in definitions.values():
        definition["description"] = definition["description"].partition("\n\n>>> ")[0]  # no examples in Python
        if "const" in definition.get("properties", {}).get("kind", {}):
            definition["required"] = ["kind", *definition.get("required", ())]
    return {"$schema": _SCHEMA_DIALECT, "title": "History", **document}


def _dump(messages: Iterable[Message]) -> Iterator[str]:
    """Yield the JSON text of each message. Raises WrongWord or HistoryInvalid, which name the index."""
    for index, message in enumerate(as_messages(messages)):
        try:
            line = message.model_dump_json(exclude_none=not _holds_unknown(message))
        except (PydanticSerializationError, UnicodeEncodeError) as error:
            reason = one_line(str(error), 200)
            raise HistoryInvalid(f"messages[{index}] cannot be written as JSON: {reason}") from None
        yield line


def _holds_unknown(value: StoredModel) -> bool:
    """Return whether a value, or a value inside it, has fields that only a newer version of sabir knows. If so, fields
    that are None must be written.
    """
    if value.__pydantic_extra__:
        return True
    inner = (item for field in vars(value).values() for item in (field if type(field) is tuple else (field,)))
    return any(isinstance(item, StoredModel) and _holds_unknown(item) for item in inner)


def _decode(text: str | bytes) -> str:
    """Return the text without its byte order mark. Raises HistoryInvalid for another type and for bytes that are not
    UTF-8.
    """
    raw: object = text
    if isinstance(raw, str):
        return raw.removeprefix("\ufeff")
    if not isinstance(raw, bytes):
        remedy = "use load for a path, and Message.model_validate for one message"
        raise HistoryInvalid(f"loads needs the text of a history as str or bytes, not {type(raw).__name__}; {remedy}")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode("latin-1")
        raise _invalid_at(before, error.start, f"byte {error.start} is not UTF-8; a history is UTF-8 text") from None


def _parse(text: str, start: int) -> tuple[Any, int]:
    """Return the JSON value that begins at `start`, and the position behind it. Raises HistoryInvalid."""
    try:
        return DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise _invalid_at(text, error.pos, f"not JSON: {error.msg}; a history is a JSON array or JSON Lines") from None
    except (ValueError, RecursionError) as error:
        raise _invalid_at(text, start, f"not JSON: {one_line(str(error), 200)}") from None


def _invalid_at(text: str, position: int, fault: str) -> HistoryInvalid:
    return HistoryInvalid(f"line {text.count(chr(10), 0, position) + 1}: {fault}")


def _split_values(text: str) -> Iterator[tuple[str, Any]]:
    """Yield the place ("messages[0]" or "line 1") and the JSON value of everything that should be a message."""
    start = _skip_space(text, 0)
    if text.startswith("[", start):
        value, end = _parse(text, start)
        if _skip_space(text, end) != len(text):
            raise _invalid_at(text, end, "text follows the JSON array; a history is one array, or JSON Lines")
        yield from ((f"messages[{index}]", item) for index, item in enumerate(value))
        return
    line, counted = 1, 0
    while start < len(text):
        value, end = _parse(text, start)
        line, counted = line + text.count("\n", counted, start), start
        yield f"line {line}", value
        start = _skip_space(text, end)


def _skip_space(text: str, start: int) -> int:
    """Return the position of the next character that is not white space, or the length of the text."""
    match = _NO_SPACE.search(text, start)
    return match.start() if match else len(text)


def _load_message(item: Any, place: str) -> Message:
    """Return the message in a JSON value. Raises HistoryInvalid, which names the place, for any other value."""
    with suppress(ValidationError):  # invalid, or written by a newer version: see below
        message: Message = Message.__pydantic_validator__.validate_python(item)
        return message
    if not isinstance(item, dict):
        json_type = _JSON_TYPES.get(type(item), "null")
        raise HistoryInvalid(f"{place} is {json_type}; a history contains messages, which are objects")
    if "payload" not in item and ("role" in item or "messages" in item or "contents" in item):
        remedy = "read it with sabir.dialect(name).decode_history(body)"
        raise HistoryInvalid(f"{place} is a vendor's message ({', '.join(sorted(item))}); {remedy}")
    try:
        json.dumps(item, ensure_ascii=False).encode()
        return load_stored(Message.model_validate, item)
    except ValidationError as error:
        raise HistoryInvalid(f"{place} is not a message: {one_line(describe_validation_error(error), 300)}") from None
    except UnicodeEncodeError as error:
        surrogate = f"lone surrogate U+{ord(error.object[error.start]):04X}"
        raise HistoryInvalid(f"{place} contains a {surrogate}; a history must be valid Unicode") from None
    except RecursionError:
        raise HistoryInvalid(f"{place} is nested too deeply") from None


_JSON_TYPES = {str: "a string", bool: "a boolean", int: "a number", float: "a number", list: "an array"}
