"""The output of an evaluation: what type the answer must have, how it is asked for, read, checked, and asked again.

    Trip · Trip | Hotel · list[Trip] · int · a function ──▶ Outputs ── format ──▶ the schema of the reply's text
                                                                    └─ option ──▶ a call, where a model takes no schema
    reply ──read──▶ value ──finish──▶ the function's return value, checked by the validator
              └───────────────┴─ OutputInvalid ──▶ complaint: a message of the runtime, the model answers again

A type whose schema is no object is wrapped in one, because vendors take no other, and its value is unwrapped again.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cached_property, partial
from typing import Any, Generic, Protocol, cast, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic_core import from_json, to_json
from sabir import (
    RUNTIME,
    Adapter,
    Bounds,
    Message,
    Option,
    OptionResultBuilder,
    OutputInvalid,
    PartsPayload,
    Reply,
    ResponseFormat,
    SabirError,
    Settings,
    SettingsInvalid,
    TextPart,
    user,
)
from sabir.authoring import (
    ArgumentsRefused,
    BoundArguments,
    CallArguments,
    JSONText,
    OptionCall,
    Signature,
    Strict,
    describe_validation_error,
    has_more_values,
    one_line,
)
from sabir.errors import OptionInvalid, OutputTruncated

from sabir_session.evaluation.budgets import sends_renderings
from sabir_session.evaluation.prompts import Output, Validator

MOST_VALUES = Bounds().most_values
"""The most JSON values of an output: an answer's bounds count no values inside its texts."""
RETRIES = 2
"""How often a model is asked again where the caller names no other number."""
_NO_SCHEMA = ("settings.response_format", "settings.response_format.schema")
"""Paths of the losses that say that the model takes no schema."""

_NUMBER_AT_END = re.compile(r"([:\[,]\s*)-?\d[-+.\deE]*$")
OUTPUT_OPTION = "final_answer"
"""The option by whose call a model gives an output where it takes no schema."""


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
            if said.provided:
                shown = f"the output function {said.name!r} takes {said.provided[0].name!r}"
                raise OptionInvalid(f"{shown}, which only an option is given; make it a parameter with a default")
            name, schema, description = said.name, said.parameters, said.description
            self._read: Callable[[JSONText], object] = said.binder
        else:
            name, adapter, schema = _adapter_of(form)
            description = str(schema.get("description", ""))
            self._read = partial(_read, adapter, form)
        self.name = name
        self.format = ResponseFormat(name=name, schema=schema, description=description or None)
        parameters = {key: value for key, value in schema.items() if key not in ("title", "description")}
        self.option = Option.from_schema(OUTPUT_OPTION, description or "Gives the answer.", parameters)

    @property
    def is_asynchronous(self) -> bool:
        """Whether the function or the validator has to be awaited."""
        return any(each is not None and Signature.is_asynchronous(each) for each in (self._function, self._validator))

    def read(self, reply: Reply, call: str | None) -> object:
        """Return the value in a reply: of its call of that invocation id, else of its text.

        Raises OutputTruncated if the reply was cut off at its length limit, OutputRefused if the model refused,
        OutputInvalid if the value does not fit.
        """
        named = [each.call for each in reply.option_calls if each.call.option_name == OUTPUT_OPTION]
        calls = [each for each in named if each.invocation_id == call]
        if not calls:
            with suppress(OutputInvalid, OutputTruncated):  # the errors below are more exact
                reply.parse(object)  # raises for a refusal
        text = calls[0].raw_arguments or calls[0].arguments_json if calls else reply.text
        try:
            if calls and calls[0].cut_off:  # the arguments that arrived may fit the type all the same
                raise ArgumentsRefused("the call was cut off before its arguments were complete")
            if has_more_values(text, MOST_VALUES):
                raise ArgumentsRefused(f"it has more than {MOST_VALUES:,} JSON values")
            return self._read(JSONText(text))
        except (ArgumentsRefused, ValidationError) as error:
            if reply.finish_reason == "length":
                cut = f"the reply for {self.name} was cut off at {len(text)} characters; raise max_output_tokens"
                raise OutputTruncated(cut, reply) from None
            raise OutputInvalid(f"the reply does not fit {self.name}: {_told(error)}", reply) from error

    async def finish(self, value: object, reply: Reply, apply: Applies) -> Output:
        """The output of a value that was read: the function's return value, approved by the validator.

        Raises OutputInvalid where one of the two raises ValueError that is no error of sabir.
        """
        try:
            if isinstance(value, BoundArguments) and self._function is not None:
                value = await apply("output", partial(self._function, *value.positional, **value.named))
            value = self._unwrapped(value)
            if self._validator is not None:
                checked = await apply("output_validator", partial(self._validator, cast("Output", value)))
                value = value if checked is None else checked
        except SabirError:
            raise
        except ValueError as error:
            raise OutputInvalid(f"the answer was refused: {_told(error)}", reply) from error
        return cast("Output", value)

    def part(self, text: str) -> Output | None:
        """The output as far as a text goes that has not ended; None while it lacks anything that is required."""
        if self._function is not None:  # which is called once
            return None
        with suppress(ValueError):
            whole_numbers = _NUMBER_AT_END.sub(r"\1", text)  # more digits may follow
            for value in _shrunk(from_json(whole_numbers, allow_partial="trailing-strings")):
                with suppress(ValueError):
                    return cast("Output", self._unwrapped(self._read(JSONText(to_json(value).decode()))))
        return None

    def _unwrapped(self, value: object) -> object:
        return value.value if isinstance(value, _Wrapper) else value


class _Wrapper(BaseModel):
    """The object around a value whose own schema is none."""

    value: Any


def _adapter_of(form: Any) -> tuple[str, TypeAdapter[Any], dict[str, Any]]:  # any type, for the caller knows which
    """A name, what validates the type or the object around it, and the JSON schema of that."""
    name = getattr(form, "__name__", "") or "output"
    is_typing = isinstance(form, type) or get_origin(form) is not None or hasattr(form, "__supertype__")
    if isinstance(form, list | tuple | dict) or (callable(form) and not is_typing):
        remedy = "give a type (A | B for one of two) or a function"
        raise SettingsInvalid(f"output={one_line(repr(form), 80)} is no type; {remedy}")
    try:
        adapter = TypeAdapter[Any](form)
        schema = adapter.json_schema()
        root = schema["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
        if root.get("type") == "object" and "properties" in root:
            return name, adapter, schema
        adapter = TypeAdapter(create_model(name, __base__=_Wrapper, value=(form, ...)))
        return name, adapter, adapter.json_schema()
    except (PydanticUserError, TypeError) as error:
        raise SettingsInvalid(f"output={one_line(repr(form), 80)} has no JSON schema: {one_line(error)}") from None


def _read(adapter: TypeAdapter[Any], form: Any, text: JSONText) -> object:  # any type, for the caller knows which
    """The value of a JSON text: in its object, or as it is where a model left the object out."""
    try:
        return adapter.validate_json(text)
    except ValidationError:
        with suppress(ValueError):
            if not (isinstance(found := from_json(text), dict) and [*found] == ["value"]):
                return TypeAdapter[Any](form).validate_json(text)
        raise


class Requests:
    """With what the requests of an evaluation are made; whether the output goes by a call is found out at the first."""

    def __init__(
        self,
        adapter: Adapter,
        offered: tuple[Option, ...],
        outputs: Outputs[Any] | None,
        settings: Settings | None,
        strict: Strict | None,
    ) -> None:
        self.adapter = adapter
        self.offered = offered
        self.outputs = outputs
        self._settings = settings
        self._strict = strict

    @property
    def speaks_as(self) -> str:
        """The policy on whose behalf the adapter speaks."""
        return str(getattr(self.adapter, "speaks_as", "llm"))

    @property
    def sends_renderings(self) -> bool:
        """Whether the adapter's `complete` sends what its `render` returns."""
        return sends_renderings(self.adapter)

    @cached_property
    def by_call(self) -> bool:
        """Whether the output goes by a call: the model, or one that a fallback may ask, takes no schema."""
        if self.outputs is None:
            return False
        how = CallArguments(options=self.offered, settings=self._by_format(self.outputs), strict=False)
        members = getattr(self.adapter, "members", (self.adapter,))
        losses = [loss for each in members for loss in each.render([user("?")], **how).losses]
        return any(loss.kind == "dropped" and loss.path in _NO_SCHEMA for loss in losses)

    @cached_property
    def how(self) -> CallArguments:
        """The arguments of each call; raises OptionInvalid if an option has the name of the output's."""
        options, settings = self.offered, self._settings
        if self.outputs is not None and self.by_call:
            if OUTPUT_OPTION in [option.name for option in options]:
                shown = f"{self.adapter.target} takes no schema, and gives an output by the option {OUTPUT_OPTION!r}"
                raise OptionInvalid(f"{shown}; rename yours of that name: sabir.option(name=…)")
            options, settings = (*options, self.outputs.option), self._laid_over(Settings(option_choice="required"))
        elif self.outputs is not None:
            settings = self._by_format(self.outputs)
        return CallArguments(options=options, settings=settings, strict=self._strict)

    def is_output(self, call: OptionCall) -> bool:
        """Whether a call gives the output that is wanted: no option of the caller has its name."""
        return self.outputs is not None and self.is_named(call)

    def is_named(self, call: OptionCall) -> bool:
        """Whether a call gives an output, wanted or not; one that nobody wants any more is answered as not offered."""
        return call.call.option_name == OUTPUT_OPTION not in [each.name for each in self.offered]

    def complaint(self, error: OutputInvalid) -> Message:
        """The message after which the model answers again."""
        asked = f"Answer again, by the option {OUTPUT_OPTION}." if self.by_call else "Answer again."
        return Message(policy=RUNTIME, payload=PartsPayload(parts=(TextPart(text=f"{error}. {asked}"),)))

    def _by_format(self, outputs: Outputs[Any]) -> Settings:
        return self._laid_over(Settings(response_format=outputs.format))

    def _laid_over(self, asked: Settings) -> Settings:
        return asked if self._settings is None else self._settings.laid_over(asked)


def received(call: OptionCall) -> Message:
    """The result of the call that gives an output; whether its arguments fit is said later, as of a text."""
    return OptionResultBuilder.response_to(call, policy=RUNTIME).success("The answer was received.")


def tries(messages: Iterable[Message]) -> int:
    """How many answers of a turn with these messages were refused."""
    return sum(message.kind == "parts" and message.policy == RUNTIME for message in messages)


def _told(error: ValueError) -> str:
    return describe_validation_error(error) if isinstance(error, ValidationError) else one_line(str(error))


def _shrunk(value: Any) -> Iterator[Any]:  # any JSON
    """A JSON value that ends in the middle, then without its last item, ever further out."""
    yield value
    around = []
    while isinstance(value, dict | list) and value:
        key = next(reversed(value)) if isinstance(value, dict) else len(value) - 1
        around.append((value, key))
        value = value[key]
    whole = around[0][0] if around else None
    for holder, key in reversed(around):
        del holder[key]
        yield whole
