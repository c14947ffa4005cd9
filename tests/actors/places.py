"""Every place of the examples' data that a model names, and messages that lack it or hold what it does not take."""

import copy
from collections.abc import Iterator
from typing import Any, TypeAlias, get_args

from pydantic import BaseModel
from sabir_actors import TYPES, ErrorResponse, Message, Response
from sabir_actors import data as typed
from sabir_actors.protocol import AnyMessage

from tests.actors.examples import MESSAGES

Path: TypeAlias = tuple[str | int, ...]
"""Where a value stands: names of fields, and places in lists."""
WRONG: dict[type, Any] = {str: [], list: "x", dict: [], float: "many", int: "many", bool: "perhaps"}
"""Type of a value → one that no field takes in its place."""
RESULT = (
    Message(type="THREAD_RESULT", data={"thread_id": "t", "status": "failed", "error_message": "no"}),
    Response(type="THREAD_RESULT_ACKNOWLEDGED", data={"thread_id": "t"}),
)
OUTCOME = Message(type="THREAD_RESULT", data={"thread_id": "t", "status": "completed", "output": {"response": "Yes."}})
SHOWN = (*MESSAGES, *RESULT, OUTCOME)


def model_of(message: AnyMessage) -> type[typed.Data]:
    if isinstance(message, ErrorResponse):
        return typed.ErrorData
    if isinstance(message, Message):
        return TYPES[message.type].data
    return next(each.response_data for each in TYPES.values() if each.response == message.type)


def places(model: type[BaseModel], said: Any, path: Path = ()) -> Iterator[tuple[Path, bool]]:
    """Every place of an example's data that its model names, and whether it must be there."""
    for name, field in model.model_fields.items():
        if said.get(name) is None:
            continue
        here, value = (*path, name), said[name]
        yield here, field.is_required()
        inner = [each for each in (field.annotation, *get_args(field.annotation)) if isinstance(each, type)]
        for each in (one for one in inner if issubclass(one, BaseModel)):
            if isinstance(value, list) and value:
                yield from places(each, value[0], (*here, 0))
            elif isinstance(value, dict):
                yield from places(each, value, here)


ALL = [(message, path, required) for message in SHOWN for path, required in places(model_of(message), message.data)]
MISSING = [(message, path) for message, path, required in ALL if required]
MISTAKEN = [(message, path) for message, path, _ in ALL if path[-1] != "details"]


def shown(value: object) -> str:
    return value.type if isinstance(value, Message | Response) else ".".join(map(str, value))  # type: ignore[call-overload]


def changed(message: AnyMessage, path: Path, value: Any = None) -> AnyMessage:
    """The message with another value at a place, or without any where none is given."""
    said = copy.deepcopy(message.model_dump()["data"])
    holder = said
    for step in path[:-1]:
        holder = holder[step]
    if value is None:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return type(message).model_construct(**{**dict(message), "data": said})


def held(message: AnyMessage, path: Path) -> Any:
    found: Any = message.model_dump()["data"]
    for step in path:
        found = found[step]
    return found
