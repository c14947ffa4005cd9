"""The Message: immutable, and of one of three kinds.

    Message ── id, policy, role_hint_for_llm, step_num, origin
       └── payload ── parts          text, media and other content
                   ├─ option_call    an option that a policy chose
                   └─ option_result  what the option returned, or its error

`==` compares all fields, the id included; `same_content` ignores id, origin and schema number. Only adapters read the
role hint (law 7).

Loading keeps data that a newer version of sabir wrote, and so does validation of a message whose `schema` is higher
than SCHEMA: a payload, a role hint or a part that this version does not know is written back unchanged. Renderings
report a loss for it, except for the role hint of a call or a result.

This module also decides which call a result answers, from kinds and ids only. A run is a group of calls with no other
message of a known kind between them. A result answers the first unanswered call with its id, in the nearest earlier run
that has one.
"""

from collections.abc import Mapping
from contextlib import suppress
from os import urandom
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias, get_args

from pydantic import (
    Field,
    ModelWrapValidatorHandler,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from sabir.base.models import StoredModel, is_constructing, is_loading, load_stored
from sabir.base.shown import Arguments
from sabir.base.values import (
    JSONObjectDocumentField,
    JSONText,
    JSONValue,
    JSONValueField,
    JSONView,
    ObjectView,
    encode_json,
    parse_json,
)
from sabir.vocabulary.fields import NonEmpty, Text
from sabir.vocabulary.parts import Part, Stateful, TextPart, UnknownKind, keep_parts

RoleHint: TypeAlias = Literal["user", "assistant", "tool", "system"]
"""A role as vendors name it: "user", "assistant", "tool" or "system"."""
Kind: TypeAlias = Literal["parts", "option_call", "option_result", "unknown"]
"""The kind of a message: "parts", "option_call" or "option_result"; "unknown" for a kind that only a newer version of
sabir knows.
"""

RUNTIME = "runtime"
"""The policy "runtime", for results that sabir itself creates, for example when the arguments of a call are invalid. An
option with this name raises OptionInvalid, and `speaks_as="runtime"` raises SettingsInvalid.
"""
RESERVED = f"{RUNTIME!r} is reserved for results that sabir creates, so it cannot be an option's name or speaks_as"
"""The text in the error message if an option or `speaks_as` has the reserved name."""
SCHEMA = 2
"""The number of the message format that this version of sabir writes: the default of `Message.schema_number`."""


def new_id() -> str:
    """Return a new random UUID of version 4 as 32 hexadecimal digits. Faster than the module `uuid`."""
    digits = urandom(16).hex()
    return f"{digits[:12]}4{digits[13:16]}{'89ab'[int(digits[16], 16) % 4]}{digits[17:]}"


class Origin(StoredModel):
    """The provider, API and model that produced a message. Adapters set the origin of the messages in a reply.

    Signed data, such as encrypted reasoning, and ids of data on the provider's server are sent back only to the origin
    that they came from, or to a model of the same family.

    `provider` and `dialect` (an API format) are names, `endpoint` is the URL without secrets. `model` is the model's
    name in the request; if the request named none, the name in the response. `reported_model` is the model's name in
    the response if that differs from the request's name, else None. `response_id` is the provider's id of the response,
    or None.
    """

    provider: NonEmpty
    dialect: NonEmpty
    endpoint: Text = ""
    model: Text = ""
    """The model's name in the request; if the request named none, the name in the response."""
    reported_model: Text | None = None
    """The model's name in the response if that differs from the request's name, else None."""
    response_id: Text | None = None


class PartsPayload(StoredModel):
    """The contents of a message of the kind "parts": at least one part, such as text or an image, in order."""

    kind: Literal["parts"] = "parts"
    parts: tuple[Part, ...] = Field(min_length=1, fail_fast=True)


class OptionCallPayload(Stateful):
    """The contents of a message of the kind "option_call": the model (or another policy) calls an option.

    `invocation_id` identifies the call and `option_name` names the option. `arguments` is a JSON object, which is not
    yet validated against the option's parameters. Its keys keep their order.
    `raw_arguments` is the text of the arguments exactly as a provider sent them, or None. `invalid_arguments` is True
    if this text is not a JSON object, or if the reply may have ended before the arguments were complete; in the second
    case `cut_off` is True too. Answering a call with invalid arguments gives an error result without running the
    option.
    """

    kind: Literal["option_call"] = "option_call"
    invocation_id: NonEmpty
    option_name: NonEmpty
    arguments_json: JSONObjectDocumentField = Field(default=JSONText("{}"), alias="arguments")
    raw_arguments: Text | None = None
    invalid_arguments: bool = False
    cut_off: bool = Field(default=False, exclude_if=lambda cut_off: not cut_off)

    arguments: ClassVar = ObjectView("arguments_json", "The arguments of the call as an immutable mapping.")

    @property
    def unreadable_arguments(self) -> str:
        """The text of the arguments if `invalid_arguments` is True and the text is neither blank nor a JSON object.
        Else "".
        """
        text = self.raw_arguments or ""
        if not self.invalid_arguments or not text.strip():
            return ""
        with suppress(ValueError):
            if type(parse_json(text)) is dict:
                return ""
        return text

    def __brief_args__(self) -> Arguments:
        """Yield the arguments of the short `repr`: the option, its arguments or their invalid text, and `cut_off`."""
        values = dict(super().__brief_args__())
        arguments = "raw_arguments" if self.unreadable_arguments else "arguments"
        names = ("option_name", arguments, "cut_off", "invocation_id")
        return ((name, values[name]) for name in names if name in values)


class OptionResultPayload(StoredModel):
    """The contents of a message of the kind "option_result": what an option returned, or the error of the call.

    `invocation_id` and `option_name` are the call's. A success has either `result`, a JSON value, or `parts` (text and
    media). An error has `is_error` True, `error_type` (a short name) and `error_message`; it may have `parts`, but no
    `result`. `retryable` says whether the same call may succeed later; None means unknown. Other combinations raise
    pydantic's ValidationError.
    """

    kind: Literal["option_result"] = "option_result"
    invocation_id: NonEmpty
    option_name: NonEmpty
    result_json: JSONValueField = Field(default=JSONText("null"), alias="result")
    parts: tuple[Part, ...] = Field(default=(), fail_fast=True)
    is_error: bool = False
    error_type: Text | None = None
    error_message: Text | None = None
    retryable: bool | None = None

    result: ClassVar = JSONView("result_json", "The returned JSON value, immutable. None for an error and for parts.")

    def plain_result(self) -> JSONValue:
        """Return the result as new plain dicts, lists and values, which the caller may change."""
        text: str = self.result_json[:]
        return text[1:-1] if text[0] == '"' and "\\" not in text else parse_json(text)

    @property
    def error_text(self) -> str:
        """The error as JSON text, `{"error": {"type": …, "message": …, "retryable": …}}`. Fields that are None are left
        out. Meaningful only if `is_error` is True.
        """
        error = {"type": self.error_type, "message": self.error_message, "retryable": self.retryable}
        return encode_json({"error": {name: value for name, value in error.items() if value is not None}})

    @model_validator(mode="after")
    def _check_combination(self) -> "OptionResultPayload":
        if self.is_error and not (self.error_type and self.error_message is not None):
            raise ValueError("an error result needs `error_type` and `error_message`")
        if not self.is_error and (self.error_type, self.error_message, self.retryable) != (None, None, None):
            raise ValueError(
                "a successful result cannot have error_type, error_message or retryable; set is_error=True"
            )
        if self.is_error and self.result_json != "null":
            raise ValueError("an error result cannot have a `result`; put the description into `error_message`")
        if self.parts and self.result_json != "null":
            raise ValueError("a result cannot have both `parts` and a `result`; put the value into a text part")
        return self


KNOWN_PAYLOADS = ("parts", "option_call", "option_result")
"""The kinds of payloads that this version of sabir knows."""


class UnknownPayload(UnknownKind):
    """The contents of a stored message whose kind only a newer version of sabir knows.

    Created by loading, never by a program. `save` and `dumps` write the contents back unchanged. Renderings leave the
    message out and report a loss.
    """

    known_kinds = KNOWN_PAYLOADS

    @property
    def parts(self) -> tuple[Part, ...]:
        """Always an empty tuple."""
        return ()


class UnknownHint(str):
    """A role hint that only a newer version of sabir knows. Created by loading. Renderings ignore the hint, with a loss
    if the message is of the kind "parts".
    """

    __slots__ = ()


def _check_hint(hint: object) -> object:
    """Return a known hint, or an UnknownHint that loading created. Any other value raises a validation error."""
    if isinstance(hint, UnknownHint):
        return hint
    for known in get_args(RoleHint):
        if hint == known:
            return known  # a plain str, even if `hint` is an equal member of an enumeration
    raise PydanticCustomError("role_hint", f"the hint must be one of {', '.join(get_args(RoleHint))}")


_HINTS = {"type": "string", "enum": list(get_args(RoleHint))}
_STORED_HINTS = WithJsonSchema({"anyOf": [_HINTS, {"type": "string", "minLength": 1}]})
Hint = Annotated[RoleHint | UnknownHint, PlainValidator(_check_hint), _STORED_HINTS]
"""A role hint: one of the four known hints, or an unknown hint that loading kept."""

Payload = Annotated[
    PartsPayload | OptionCallPayload | OptionResultPayload | UnknownPayload, Field(discriminator="kind")
]


_PROPERTIES: Mapping[type, str] = {OptionCallPayload: "call", OptionResultPayload: "result"}
"""The class of a payload → the property of the message that returns the payload. `repr` shows this name."""


class Message(StoredModel):
    """One message of a conversation, immutable. Make messages with `user`, `system` and `assistant`; replies contain
    messages too.

    `policy` names who made the message: "user", "system", the model ("llm" unless an adapter has another `speaks_as`),
    the option that returned a result, or "runtime" for a result that sabir created. `role_hint_for_llm` overrides the
    role that an adapter derives from the policy, but not in calls and results; None means no override. `step_num` is
    the number of the program's step, or None. `origin` is the provider, API and model that produced the message, or
    None. `payload` is a PartsPayload, an OptionCallPayload, an OptionResultPayload, or an UnknownPayload after loading.
    `schema_number` (argument: `schema`) is the number of the message format. Two messages are equal if all fields are
    equal, `id` included.

    >>> import sabir
    >>> message = sabir.user("Hello!")
    >>> message.kind, message.text, message.policy
    ('parts', 'Hello!', 'user')
    >>> message.model_copy(update={"step_num": 2}).step_num
    2
    """

    schema_number: int = Field(default=SCHEMA, alias="schema", ge=1)
    id: NonEmpty = Field(default_factory=new_id)
    policy: NonEmpty
    role_hint_for_llm: Hint | None = None
    step_num: int | None = Field(default=None, ge=0)
    origin: Origin | None = None
    payload: Payload

    @model_validator(mode="wrap")
    @classmethod
    def _keep_newer(cls, value: Any, handler: ModelWrapValidatorHandler["Message"], info: ValidationInfo) -> "Message":
        """Validate. If that fails while loading, or if `schema` is newer than SCHEMA, keep the data that only a newer
        version of sabir knows.
        """
        try:
            return handler(value)
        except ValidationError:
            if not isinstance(value, dict) or is_constructing(info):
                raise
            if is_loading(info):
                return handler(_keep_unknown(value))
            if not _is_newer(value):
                if info.mode != "json":
                    raise
                return handler(_with_tuples(value))
        return load_stored(cls.model_validate, value)

    @staticmethod
    def new_id() -> str:
        """Return a new random id of 32 hexadecimal digits."""
        return new_id()

    @property
    def kind(self) -> Kind:
        """The kind of the message: "parts", "option_call" or "option_result"; "unknown" for a kind of a newer version
        of sabir.
        """
        return self.payload.kind

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of a "parts" message, or the parts in an option result or error result. An empty tuple if there are
        none, for example for an option call.
        """
        return () if self.payload.kind == "option_call" else self.payload.parts

    @property
    def call(self) -> OptionCallPayload | None:
        """The option call, or None if the message is not an option call."""
        return self.payload if self.payload.kind == "option_call" else None

    @property
    def result(self) -> OptionResultPayload | None:
        """The option result, or None if the message is not an option result."""
        return self.payload if self.payload.kind == "option_result" else None

    @property
    def text(self) -> str:
        """The text parts of the message, joined without a separator. The JSON value and the error message of an option
        result are not included.
        """
        return "".join(part.text for part in self.parts if part.kind == "text")

    def __repr_args__(self) -> Arguments:
        """Yield the arguments of `repr`, with the text, the parts, the call or the result in place of the payload."""
        fields = dict(super().__repr_args__())
        yield "policy", fields.pop("policy", None)
        if isinstance(payload := fields.pop("payload", None), PartsPayload):
            is_text = payload.parts == (TextPart(text=self.text),)
            yield ("text", self.text) if is_text else ("parts", payload.parts)
        else:
            yield _PROPERTIES.get(type(payload), "payload"), payload
        yield from fields.items()

    def __brief_args__(self) -> Arguments:
        """Yield the arguments of the short `repr`: all except the origin."""
        return ((name, value) for name, value in self.__repr_args__() if name != "origin")

    def same_content(self, other: "Message") -> bool:
        """Return whether two messages are equal except for their ids, origins and schema numbers."""
        return self._compared_fields() == other._compared_fields()

    def _compared_fields(self) -> tuple[object, ...]:
        extra = self.__pydantic_extra__ or None
        return self.policy, self.role_hint_for_llm, self.step_num, self.payload, extra


def _is_newer(stored: dict[Any, Any]) -> bool:
    number = stored.get("schema")
    return type(number) is int and number > SCHEMA


def _keep_unknown(stored: dict[Any, Any]) -> dict[Any, Any]:
    """Return a stored message in which the hint, the payload and the parts that this version does not know are replaced
    by UnknownHint, UnknownPayload and UnknownPart.
    """
    loaded = dict(stored)
    hint, payload = stored.get("role_hint_for_llm"), stored.get("payload")
    if isinstance(hint, str) and hint and hint not in get_args(RoleHint):
        loaded["role_hint_for_llm"] = UnknownHint(hint)
    if isinstance(payload, dict) and isinstance(kind := payload.get("kind"), str):
        is_known = kind in KNOWN_PAYLOADS
        loaded["payload"] = keep_parts(payload) if is_known else load_stored(UnknownPayload.model_validate, payload)
    return loaded


if TYPE_CHECKING:

    class OptionCall(Message):
        """The type of a message that is an option call, for type checkers: `call` is never None. At run time, this is
        Message.
        """

        @property
        def call(self) -> OptionCallPayload:
            """The option call; never None."""
            ...

else:
    OptionCall = Message
    """At run time every message is a Message."""


def _with_tuples(stored: Any, fields: tuple[str, ...] = ("payload", "parts", "citations")) -> Any:
    """Return a message read from JSON with the arrays in `fields` as tuples, because strict validation
    refuses lists.
    """
    if isinstance(stored, list):
        return tuple(_with_tuples(each, fields) for each in stored)
    if not fields or not isinstance(stored, dict) or fields[0] not in stored:
        return stored
    return {**stored, fields[0]: _with_tuples(stored[fields[0]], fields[1:])}


Stack: TypeAlias = tuple[int, "Stack"] | tuple[()]
"""The calls with one id: the position of the call that the next result answers, and the stack of the others."""


class Unanswered:
    """Tracks the calls without a result. Pass all payloads to `take`, in order. `stacks` are the calls without a result
    in earlier messages.
    """

    __slots__ = ("run", "stacks")

    def __init__(self, stacks: Mapping[str, Stack] | None = None) -> None:
        self.stacks = dict(stacks) if stacks else {}
        """Invocation id → the unanswered calls with this id, without the calls of the present run."""
        self.run: list[tuple[str, int]] = []
        """The present run: invocation ids and positions of the latest consecutive calls, before any other message."""

    def take(self, position: int, payload: Payload) -> None:
        """Track the next message, which is at `position`: add a call, or remove the call that a result answers. Every
        message except a call or one of an unknown kind ends the present run.
        """
        if payload.kind == "option_call":
            self.run.append((payload.invocation_id, position))
        elif payload.kind == "option_result":
            self.end_run()
            self.answer(payload.invocation_id)
        elif payload.kind != "unknown":
            self.end_run()

    def answer(self, identifier: str) -> None:
        """Remove the call that a result with this invocation id answers. Does nothing if there is no such call. Call
        `end_run` before, because calls of the present run are not considered.
        """
        if (calls := self.stacks.pop(identifier, None)) and calls[1]:
            self.stacks[identifier] = calls[1]

    def end_run(self) -> None:
        """End the present run of consecutive calls: move its calls to `stacks`."""
        while self.run:
            identifier, position = self.run.pop()
            self.stacks[identifier] = position, self.stacks.get(identifier, ())

    def positions(self) -> list[int]:
        """Return the positions of the unanswered calls, in order. Ends the present run."""
        self.end_run()
        positions = []
        for calls in self.stacks.values():
            stack = calls
            while stack:
                position, stack = stack
                positions.append(position)
        return sorted(positions)
