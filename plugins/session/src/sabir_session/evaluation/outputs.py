"""The output of an evaluation: what type the answer must have, how it is asked for, read, checked, and asked again.

    Trip · Trip | Hotel · list[Trip] · int · a function ──▶ Outputs ── format ──▶ the schema of the reply's text
                                                                    └─ option ──▶ a call, where a model takes no schema
    reply ──read──▶ value ──finish──▶ the function's return value, checked by the validator
              └───────────────┴─ OutputInvalid ──▶ complaint: a message of the runtime, the model answers again

A type whose schema is no object is wrapped in one, because vendors take no other, and its value is unwrapped again.
"""

import inspect
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Generic, Protocol, cast

from pydantic import BaseModel, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUserError
from sabir import (
    RUNTIME,
    Adapter,
    Message,
    Option,
    OutputInvalid,
    PartsPayload,
    Reply,
    ResponseFormat,
    Settings,
    SettingsInvalid,
    TextPart,
    user,
)
from sabir.authoring import ArgumentsRefused, Bound, JSONText, Signature, describe, one_line

from sabir_session.evaluation.prompts import Output, Validator
from sabir_session.records import OUTPUT_OPTION, is_output

RETRIES = 2
"""How often a model is asked again where the caller names no other number."""
_NO_SCHEMA = ("settings.response_format", "settings.response_format.schema")
"""Paths of the losses that say that the model takes no schema."""

_RECEIVES = {"function": lambda: "The answer was received.", "binder": lambda arguments: Bound((), {})}
"""What the option does: whether the arguments fit is said later, as of a text."""
ANY_OUTPUT = Option(name=OUTPUT_OPTION).model_copy(update=_RECEIVES)
"""Answers a recorded call that gave an output, where nobody wants it any more."""


class Applies(Protocol):
    """Calls the function that was given as `argument` in the manner of the evaluation: in its loop, or here."""

    async def __call__(self, argument: str, function: Callable[[], Any]) -> Any:  # each function has its own type
        """The function's result; that of a coroutine function is awaited."""


class Outputs(Generic[Output]):
    """What an evaluation ends with: a value of the type `form`, approved by `validator`; asked again `retries` times.

    Raises OptionInvalid for a function whose signature cannot be read, SettingsInvalid for a type without a JSON
    schema.
    """

    def __init__(self, form: object, validator: Validator[Output] | None = None, retries: int = RETRIES) -> None:
        self.retries = retries
        self._validator = validator
        self._function = form if inspect.isroutine(form) or isinstance(form, partial) else None
        if self._function is not None:
            said = Signature.of(self._function)
            name, schema, description = said.name, said.parameters, said.description
            self._read: Callable[[JSONText], object] = said.binder
            self._partial: Callable[[str], object] = _nothing
        else:
            name, adapter = _adapter_of(form)
            schema = adapter.json_schema()
            description = str(schema.get("description", ""))
            self._read = partial(_read, adapter, form)
            self._partial = partial(adapter.validate_json, experimental_allow_partial="trailing-strings")
        self.name = name
        self.format = ResponseFormat(name=name, schema=schema, description=description or None)
        parameters = {key: value for key, value in schema.items() if key not in ("title", "description")}
        shown = description or "Gives the answer."
        self.option = Option.from_schema(OUTPUT_OPTION, shown, parameters).model_copy(update=_RECEIVES)

    def by_format(self, settings: Settings | None) -> Settings:
        """Settings that ask for text of the schema, unless they ask for another form."""
        asked = Settings(response_format=self.format)
        return asked if settings is None else settings.laid_over(asked)

    def by_call(self, settings: Settings | None) -> Settings:
        """Settings under which the model must choose an option, unless they say otherwise."""
        asked = Settings(option_choice="required")
        return asked if settings is None else settings.laid_over(asked)

    def goes_by_call(self, adapter: Adapter, options: Sequence[Option], settings: Settings | None) -> bool:
        """Whether the model takes no schema for its text, by the losses of a rendering."""
        asked = self.by_format(settings)
        losses = adapter.render([user("?")], options=options, settings=asked, strict=False).losses
        return any(loss.kind == "dropped" and loss.path in _NO_SCHEMA for loss in losses)

    def read(self, reply: Reply, results: Iterable[Message]) -> object:
        """The value in a reply: of its call that a result accepted, else of its text; raises OutputError."""
        taken = {result.result.invocation_id for result in results if result.result and is_output(result)}
        given = [each.call.arguments_json for each in reply.option_calls if each.call.invocation_id in taken]
        if not given:
            with suppress(OutputInvalid):  # what follows says it better
                reply.parse(object)  # raises for a refusal, and for a text that was cut off
        try:
            return self._read(given[0] if given else JSONText(reply.text))
        except (ArgumentsRefused, ValidationError) as error:
            raise OutputInvalid(f"the reply does not fit {self.name}: {_told(error)}", reply) from error

    async def finish(self, value: object, reply: Reply, apply: Applies) -> Output:
        """The output of a value that was read: the function's return value, approved by the validator.

        Raises OutputInvalid where one of the two raises ValueError.
        """
        try:
            if isinstance(value, Bound) and self._function is not None:
                value = await apply("output", partial(self._function, *value.positional, **value.named))
            value = self._unwrapped(value)
            if self._validator is not None:
                checked = await apply("output_validator", partial(self._validator, cast("Output", value)))
                value = value if checked is None else checked
        except ValueError as error:
            raise OutputInvalid(f"the answer was refused: {_told(error)}", reply) from error
        return cast("Output", value)

    def part(self, text: str) -> Output | None:
        """The output as far as a text goes that has not ended; None while it lacks anything that is required."""
        try:
            return cast("Output", self._unwrapped(self._partial(text)))
        except ValueError:
            return None

    def tries(self, messages: Iterable[Message]) -> int:
        """How many answers of a turn with these messages were refused."""
        return sum(message.kind == "parts" and message.policy == RUNTIME for message in messages)

    def _unwrapped(self, value: object) -> object:
        return value.value if isinstance(value, _Wrapper) else value


class _Wrapper(BaseModel):
    """The object around a value whose own schema is none."""

    value: Any


def _adapter_of(form: Any) -> tuple[str, TypeAdapter[Any]]:  # any type, for the caller knows which
    """A name, and what validates the type, or the object around it."""
    name = getattr(form, "__name__", "") or "output"
    try:
        adapter = TypeAdapter[Any](form)
        schema = adapter.json_schema()
        if (schema.get("type") == "object" and "properties" in schema) or "$ref" in schema:
            return name, adapter
        adapter = TypeAdapter(create_model(name, __base__=_Wrapper, value=(form, ...)))
        adapter.json_schema()
    except (PydanticUserError, TypeError) as error:
        raise SettingsInvalid(f"output={one_line(repr(form), 80)} has no JSON schema: {one_line(error)}") from None
    return name, adapter


def _read(adapter: TypeAdapter[Any], form: Any, text: JSONText) -> object:  # any type, for the caller knows which
    """The value of a JSON text: in its object, or as it is where a model left the object out."""
    try:
        return adapter.validate_json(text)
    except ValidationError:
        try:
            return TypeAdapter[Any](form).validate_json(text)
        except ValidationError:
            pass
        raise


def complaint(error: OutputInvalid, *, by_call: bool) -> Message:
    """The message after which a model answers again."""
    asked = f"Answer again, by the option {OUTPUT_OPTION}." if by_call else "Answer again."
    return Message(policy=RUNTIME, payload=PartsPayload(parts=(TextPart(text=f"{error}. {asked}"),)))


def _told(error: ValueError) -> str:
    return describe(error) if isinstance(error, ValidationError) else one_line(str(error))


def _nothing(_: str) -> object:
    raise ValueError("a function is called with whole arguments only")
