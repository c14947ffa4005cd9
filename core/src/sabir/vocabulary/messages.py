"""The message: atomic, deeply immutable, of exactly three kinds.

    Message ── id, policy, role_hint_for_llm, step_num, origin
       └── payload ── parts          text, media and other content
                   ├─ option_call    an option that a policy chose
                   └─ option_result  what the option returned, or its error

`==` includes the id; `same_content` ignores id and origin. Nothing but adapters reads the role hint (law 7).

Loading, and validation of data whose `schema` is above this version's, keep a newer writer's data: a payload, a hint
or a part that this version does not know is written back unchanged; every rendering reports it as a loss.

Which call a result answers is decided here too, from kinds and ids alone: the first unanswered call of its id in the
nearest earlier run (calls with no other message between them) that has such a call.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias, get_args
from uuid import uuid4

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
    JSONObjectField,
    JSONText,
    JSONValue,
    JSONValueField,
    JSONView,
    ObjectView,
    encode_json,
    parse_json,
)
from sabir.vocabulary.parts import Kept, NonEmpty, Part, Stateful, Text, TextPart, keep_parts

RoleHint: TypeAlias = Literal["user", "assistant", "tool", "system"]
Kind: TypeAlias = Literal["parts", "option_call", "option_result", "unknown"]
"""The kind of a message: one of three, or `unknown` for a newer writer's kind, kept by loading."""

RUNTIME = "runtime"
"""The policy of results and errors that the executor itself generates."""
RESERVED = f"the name {RUNTIME!r} is reserved for results that no policy made"
"""The reason that errors give where another policy or option has that name."""
SCHEMA = 1
"""The number of the message schema that this version writes."""


class Origin(StoredModel):
    """The producer of a message. Signed or server-bound state goes back only to its origin."""

    provider: NonEmpty
    dialect: NonEmpty
    endpoint: Text = ""
    model: Text = ""
    """The model's name in the request, or else in the response."""
    reported_model: Text | None = None
    """The model's name in the response, if it differs."""
    response_id: Text | None = None


class PartsPayload(StoredModel):
    """Parts in the order given: text and media, and a model's reasoning, refusals and opaque blocks."""

    kind: Literal["parts"] = "parts"
    parts: tuple[Part, ...] = Field(min_length=1, fail_fast=True)


class OptionCallPayload(Stateful):
    """A policy's choice of an option. Arguments are any JSON object; core never checks them.

    A call decoded from a wire keeps the argument text unchanged in `raw_arguments`. `invalid_arguments` is set if that
    text is not a JSON object, or if the reply ended before the arguments were finished: then `cut_off` is set too.
    Answering such a call gives an error result.
    """

    kind: Literal["option_call"] = "option_call"
    invocation_id: NonEmpty
    option_name: NonEmpty
    arguments_json: JSONObjectField = Field(default=JSONText("{}"), alias="arguments")
    raw_arguments: Text | None = None
    invalid_arguments: bool = False
    cut_off: bool = Field(default=False, exclude_if=lambda cut_off: not cut_off)

    arguments: ClassVar = ObjectView("arguments_json", "The arguments of the call.")

    @property
    def unreadable_arguments(self) -> str:
        """The argument text that is not a JSON object; "" if `arguments` holds all that arrived."""
        text = self.raw_arguments or ""
        if not self.invalid_arguments or not text.strip():
            return ""
        with suppress(ValueError):
            if type(parse_json(text)) is dict:
                return ""
        return text

    def __brief_args__(self) -> Arguments:
        """The option, its arguments or their unreadable text, and whether they were cut off."""
        values = dict(super().__brief_args__())
        arguments = "raw_arguments" if self.unreadable_arguments else "arguments"
        names = ("option_name", arguments, "cut_off", "invocation_id")
        return ((name, values[name]) for name in names if name in values)


class OptionResultPayload(StoredModel):
    """The value that an option returned, or its error.

    `parts` holds text and media for the model, if the option returned such; `result` is None then, and if the option
    failed.
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

    result: ClassVar = JSONView("result_json", "The returned value.")

    def plain_result(self) -> JSONValue:
        """The result as plain values, which are the caller's own."""
        text: str = self.result_json[:]
        return text[1:-1] if text[0] == '"' and "\\" not in text else parse_json(text)

    @property
    def error_text(self) -> str:
        """An error as JSON text that says that it is one."""
        error = {"type": self.error_type, "message": self.error_message, "retryable": self.retryable}
        return encode_json({"error": {name: value for name, value in error.items() if value is not None}})

    @model_validator(mode="after")
    def _errors_are_whole(self) -> "OptionResultPayload":
        if self.is_error and not (self.error_type and self.error_message is not None):
            raise ValueError("an error result needs `error_type` and `error_message`")
        if not self.is_error and (self.error_type, self.error_message, self.retryable) != (None, None, None):
            raise ValueError("a success carries no error_type, error_message or retryable; set is_error=True")
        if self.is_error and self.result_json != "null":
            raise ValueError("an error has no `result`; say what went wrong in `error_message`")
        if self.parts and self.result_json != "null":
            raise ValueError("a result has `parts` or a `result`, not both; put the value into a text part")
        return self


KNOWN_PAYLOADS = ("parts", "option_call", "option_result")


class UnknownPayload(Kept):
    """A payload of a kind that this version does not know; no rendering sends it, and each reports it as a loss."""

    known_kinds = KNOWN_PAYLOADS

    @property
    def parts(self) -> tuple[Part, ...]:
        """Always empty: this version reads no parts of it."""
        return ()


class UnknownHint(str):
    """A role hint that this version does not know, kept by loading; the message renders as if it had none."""

    __slots__ = ()


def _known_or_kept(hint: object) -> object:
    """A known hint, or one that loading kept; validation makes no UnknownHint of a string."""
    if isinstance(hint, UnknownHint):
        return hint
    for known in get_args(RoleHint):
        if hint == known:
            return known  # not an equal member of an enumeration
    raise PydanticCustomError("role_hint", f"the hint is one of {', '.join(get_args(RoleHint))}")


_HINTS = {"type": "string", "enum": list(get_args(RoleHint))}
_STORED_HINTS = WithJsonSchema({"anyOf": [_HINTS, {"type": "string", "minLength": 1}]})
Hint = Annotated[RoleHint | UnknownHint, PlainValidator(_known_or_kept), _STORED_HINTS]
"""A role hint: one of four, or an unknown hint that loading kept."""

Payload = Annotated[
    PartsPayload | OptionCallPayload | OptionResultPayload | UnknownPayload,
    Field(discriminator="kind"),
]


_PROPERTIES: Mapping[type, str] = {OptionCallPayload: "call", OptionResultPayload: "result"}
"""The property of a message that holds a payload."""


class Message(StoredModel):
    """One message. `policy` names who made it: the decider of a call, the option that ran for a result."""

    schema_number: int = Field(default=SCHEMA, alias="schema", ge=1)
    id: NonEmpty = Field(default_factory=lambda: uuid4().hex)
    policy: NonEmpty
    role_hint_for_llm: Hint | None = None
    step_num: int | None = Field(default=None, ge=0)
    origin: Origin | None = None
    payload: Payload

    @model_validator(mode="wrap")
    @classmethod
    def _keep_newer(cls, value: Any, handler: ModelWrapValidatorHandler["Message"], info: ValidationInfo) -> "Message":
        """Validate strictly; if that fails, keep a newer writer's data when loading or if `schema` is newer."""
        try:
            return handler(value)
        except ValidationError:
            if not isinstance(value, dict) or is_constructing(info):
                raise
            if is_loading(info):
                return handler(_kept(value))
            if not _is_newer(value):
                if info.mode != "json":
                    raise
                return handler(_with_tuples(value))
        return load_stored(cls.model_validate, value)

    @staticmethod
    def new_id() -> str:
        """Return a random id, as each message gets one."""
        return uuid4().hex

    @property
    def kind(self) -> Kind:
        """Which of the three kinds this message is."""
        return self.payload.kind

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of a `parts` message or of a result; empty for a call, and for a result without parts."""
        return () if self.payload.kind == "option_call" else self.payload.parts

    @property
    def call(self) -> OptionCallPayload | None:
        """The option call, or None if the message is no option call."""
        return self.payload if self.payload.kind == "option_call" else None

    @property
    def result(self) -> OptionResultPayload | None:
        """The option result, or None if the message is no option result."""
        return self.payload if self.payload.kind == "option_result" else None

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return "".join(part.text for part in self.parts if part.kind == "text")

    def __repr_args__(self) -> Arguments:
        """What a program reads of it, in place of the payload: its text, its parts, its call or its result."""
        said = dict(super().__repr_args__())
        yield "policy", said.pop("policy", None)
        if isinstance(payload := said.pop("payload", None), PartsPayload):
            is_text = payload.parts == (TextPart(text=self.text),)
            yield ("text", self.text) if is_text else ("parts", payload.parts)
        else:
            yield _PROPERTIES.get(type(payload), "payload"), payload
        yield from said.items()

    def __brief_args__(self) -> Arguments:
        """All but its origin."""
        return ((name, value) for name, value in self.__repr_args__() if name != "origin")

    def same_content(self, other: "Message") -> bool:
        """Whether two messages are equal in everything but id and origin."""
        return self._content() == other._content()

    def _content(self) -> tuple[object, ...]:
        extra = self.__pydantic_extra__ or None
        return self.policy, self.role_hint_for_llm, self.step_num, self.payload, extra


def _is_newer(stored: dict[Any, Any]) -> bool:
    number = stored.get("schema")
    return type(number) is int and number > SCHEMA


def _kept(stored: dict[Any, Any]) -> dict[Any, Any]:
    """A stored message whose hint, payload and parts are kept verbatim where this version does not know them."""
    kept = dict(stored)
    hint, payload = stored.get("role_hint_for_llm"), stored.get("payload")
    if isinstance(hint, str) and hint and hint not in get_args(RoleHint):
        kept["role_hint_for_llm"] = UnknownHint(hint)
    if isinstance(payload, dict) and isinstance(kind := payload.get("kind"), str):
        is_known = kind in KNOWN_PAYLOADS
        kept["payload"] = keep_parts(payload) if is_known else load_stored(UnknownPayload.model_validate, payload)
    return kept


if TYPE_CHECKING:

    class OptionCall(Message):
        """A message that is known to be an option call, for type checkers: its `call` is not None."""

        @property
        def call(self) -> OptionCallPayload:
            """The option call."""
            ...

else:
    OptionCall = Message
    """At run time every message is a Message."""


def _with_tuples(stored: Any, fields: tuple[str, ...] = ("payload", "parts", "citations")) -> Any:
    """A message read from JSON, with its arrays as tuples, because strict validation of values takes no lists."""
    if isinstance(stored, list):
        return tuple(_with_tuples(each, fields) for each in stored)
    if not fields or not isinstance(stored, dict) or fields[0] not in stored:
        return stored
    return {**stored, fields[0]: _with_tuples(stored[fields[0]], fields[1:])}


Stack: TypeAlias = tuple[int, "Stack"] | tuple[()]
"""The position of the call that the next result of an id answers, and the stack of the calls after it."""


class Unanswered:
    """The calls without a result so far; payloads are taken one by one. `stacks` holds the calls left from before."""

    __slots__ = ("run", "stacks")

    def __init__(self, stacks: Mapping[str, Stack] | None = None) -> None:
        self.stacks = dict(stacks) if stacks else {}
        """Invocation id → its unanswered calls, without the calls of the present run."""
        self.run: list[tuple[str, int]] = []
        """Invocation ids and positions of the calls of the present run."""

    def take(self, position: int, payload: Payload) -> None:
        """Take the next payload."""
        if payload.kind == "option_call":
            self.run.append((payload.invocation_id, position))
        elif payload.kind == "option_result":
            self.end_run()
            self.answer(payload.invocation_id)
        elif payload.kind != "unknown":
            self.end_run()

    def answer(self, identifier: str) -> None:
        """Take a result, which answers the first of the unanswered calls of its id."""
        if (found := self.stacks.pop(identifier, None)) and found[1]:
            self.stacks[identifier] = found[1]

    def end_run(self) -> None:
        """End the present run of calls."""
        while self.run:
            identifier, position = self.run.pop()
            self.stacks[identifier] = position, self.stacks.get(identifier, ())

    def positions(self) -> list[int]:
        """The positions of the unanswered calls, in order."""
        self.end_run()
        found = []
        for held in self.stacks.values():
            stack = held
            while stack:
                position, stack = stack
                found.append(position)
        return sorted(found)
