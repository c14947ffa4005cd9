"""The output of an evaluation: request, parse and validate an answer of a type, and let the model correct it.

    Trip · Trip | Hotel · list[Trip] · int · a function ──▶ Outputs ─ "native" ─▶ the schema of the reply's text
                                                                    ├ "call" ───▶ the arguments of an option call
                                                                    └ "text" ───▶ a message with the schema
    str ──▶ the reply's text as it is
    reply ──read──▶ value ──finish──▶ the function's return value, checked by the validator
              └───────────────┴─ OutputInvalid ──▶ a message of the runtime, after which the model answers again

Without a mode, the mode is "native", or "call" if a model accepts no schema. A type whose schema
is not an object is wrapped in an object, because vendors accept objects only. Its value is then unwrapped.
"""

import inspect
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cached_property, partial
from typing import Any, Generic, Protocol, cast, get_origin

from pydantic import TypeAdapter, ValidationError, create_model
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
from sabir_session.evaluation.json_scanner import find_json
from sabir_session.evaluation.partials import JSONVersions, OutputForm, OutputVersions, OutputWrapper, TextVersions
from sabir_session.evaluation.prompts import Output, OutputMode, Validator

MOST_VALUES = Bounds().most_values
"""The largest number of JSON values in an output. The bounds of a reply do not count values inside texts."""
RETRIES = 2
"""The default of `retries`: how often a model may correct an answer that does not fit."""
_NO_SCHEMA = ("settings.response_format", "settings.response_format.schema")
"""The paths of the losses which show that a model accepts no schema of the answer."""

OUTPUT_OPTION = "final_answer"
"""The option whose arguments are the output, if the output is requested as a call."""
_TEXT_REQUEST = "Give your final answer as one JSON object that fits this JSON schema, and write nothing else:"
"""The beginning of the message that requests an output as text."""


class UserFunctionCaller(Protocol):
    """Calls a function of the caller, in the event loop or in this thread."""

    async def __call__(self, argument: str, function: Callable[[], Any]) -> Any:  # each function has its own type
        """Return the function's result, awaited if it is a coroutine. `argument` names the function in errors."""


class Outputs(Generic[Output]):
    """The parser of an output. `output_type` is a type, or a function to call with the model's values.

    `validator` checks the output, `retries` is how often the model may correct an answer that does not fit, and `mode`
    how the output is requested. Raises OptionInvalid for a function whose signature cannot be read, and SettingsInvalid
    for a type without a JSON schema.
    """

    def __init__(
        self,
        output_type: object,
        validator: Validator[Output] | None = None,
        retries: int = RETRIES,
        mode: OutputMode | None = None,
    ) -> None:
        self.retries = retries
        self.mode = mode
        self.is_plain_text = output_type is str
        self._validator = validator
        self._function = output_type if inspect.isroutine(output_type) or isinstance(output_type, partial) else None
        self._form: OutputForm | None = None
        if self._function is not None:
            signature = Signature.of(self._function)
            if signature.provided:
                parameter = f"the output function {signature.name!r} has the parameter {signature.provided[0].name!r}"
                raise OptionInvalid(f"{parameter}, whose type is available to options only; remove the parameter")
            name, schema, description = signature.name, signature.parameters, signature.description
            self._read: Callable[[JSONText], object] = signature.binder
        else:
            name, adapter, inner = _build_validator(output_type)
            schema = adapter.json_schema()
            description = str(schema.get("description", ""))
            self._read = partial(_parse_json, adapter, inner)
            self._form = OutputForm(self._read_output, adapter, inner, searches=mode == "text", most_values=MOST_VALUES)
        self.name = name
        self.format = ResponseFormat(name=name, schema=schema, description=description or None)
        parameters = {key: value for key, value in schema.items() if key not in ("title", "description")}
        self.option = Option.from_schema(OUTPUT_OPTION, description or "Gives the answer.", parameters)

    @property
    def is_asynchronous(self) -> bool:
        """Whether the function or the validator is a coroutine function."""
        return any(each is not None and Signature.is_asynchronous(each) for each in (self._function, self._validator))

    @property
    def is_requested_as_text(self) -> bool:
        """Whether a message requests the output."""
        return self.mode == "text" and not self.is_plain_text

    @cached_property
    def text_request(self) -> Message:
        """The message that requests the output as JSON in the reply's text."""
        schema = to_json(self.format.schema_view, fallback=dict).decode()
        return Message(policy=RUNTIME, payload=PartsPayload(parts=(TextPart(text=f"{_TEXT_REQUEST}\n{schema}"),)))

    def read(self, reply: Reply, call: str | None) -> object:
        """Return the value of a reply, from the arguments of the call with the invocation id `call`.

        Without such a call, the value is read from the text, and OutputRefused is raised if the model refused. Raises
        OutputInvalid if the value does not fit; if the reply was also cut off at its length limit, raises
        OutputTruncated instead.
        """
        named = [each.call for each in reply.option_calls if each.call.option_name == OUTPUT_OPTION]
        calls = [each for each in named if each.invocation_id == call]
        if not calls:
            with suppress(OutputInvalid, OutputTruncated):  # the errors below are more exact
                reply.parse(object)  # raises for a refusal
        if self.is_plain_text:
            return reply.text
        text = calls[0].raw_arguments or calls[0].arguments_json if calls else reply.text
        try:
            if calls and calls[0].cut_off:  # the arguments that arrived may fit the type all the same
                raise ArgumentsRefused("the call was cut off before its arguments were complete")
            return self._read_json(text)
        except (ArgumentsRefused, ValidationError) as error:
            if reply.finish_reason == "length":
                cut = f"the reply for {self.name} was cut off at {len(text)} characters; raise max_output_tokens"
                raise OutputTruncated(cut, reply) from None
            raise OutputInvalid(f"the reply does not fit {self.name}: {_describe_fault(error)}", reply) from error

    async def finish(self, value: object, reply: Reply, call_user: UserFunctionCaller) -> Output:
        """Return the output of a value from `read`: call the function with the value, then the validator.

        Raises OutputInvalid if one of them raises a ValueError, unless the ValueError is a SabirError.
        """
        try:
            if isinstance(value, BoundArguments) and self._function is not None:
                value = await call_user("output", partial(self._function, *value.positional, **value.named))
            value = self._unwrap(value)
            if self._validator is not None:
                checked = await call_user("output_validator", partial(self._validator, cast("Output", value)))
                value = value if checked is None else checked
        except SabirError:
            raise
        except ValueError as error:
            raise OutputInvalid(f"the answer was refused: {_describe_fault(error)}", reply) from error
        return cast("Output", value)

    def versions(self) -> OutputVersions[Output]:
        """Return the converter from the events of an answer to the versions of its output.

        An output function has no versions, because it is called once, with the complete values.
        """
        if self.is_plain_text:
            return OutputVersions(TextVersions)
        return OutputVersions(None if self._form is None else partial(JSONVersions, self._form))

    def _read_json(self, text: str) -> object:
        if self.mode == "text":
            text = find_json(text, MOST_VALUES)
        if has_more_values(text, MOST_VALUES):
            raise ArgumentsRefused(f"the output has more than {MOST_VALUES:,} JSON values")
        return self._read(JSONText(text))

    def _read_output(self, text: str) -> object:
        """Return the output of a complete JSON text, without calling the validator."""
        try:
            return self._unwrap(self._read_json(text))
        except ArgumentsRefused as error:
            raise ValueError(str(error)) from error

    def _unwrap(self, value: object) -> object:
        return value.value if isinstance(value, OutputWrapper) else value


# The output type is Any: only the caller knows it.
def _build_validator(output_type: Any) -> tuple[str, TypeAdapter[Any], TypeAdapter[Any] | None]:
    """Return the name of a type and its validator. If it is wrapped in an object, also return its own validator."""
    name = getattr(output_type, "__name__", "") or "output"
    is_class = isinstance(output_type, type)
    is_typing = is_class or get_origin(output_type) is not None or hasattr(output_type, "__supertype__")
    if isinstance(output_type, list | tuple | dict) or (callable(output_type) and not is_typing):
        remedy = "pass a type (A | B for one of two) or a function"
        raise SettingsInvalid(f"output={one_line(repr(output_type), 80)} is not a type; {remedy}")
    try:
        adapter = TypeAdapter[Any](output_type)
        schema = adapter.json_schema()
        root = schema["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
        if root.get("type") == "object" and "properties" in root:
            return name, adapter, None
        wrapped = TypeAdapter[Any](create_model(name, __base__=OutputWrapper, value=(output_type, ...)))
        wrapped.json_schema()
        return name, wrapped, adapter
    except (PydanticUserError, TypeError) as error:
        reason = f"output={one_line(repr(output_type), 80)} has no JSON schema"
        raise SettingsInvalid(f"{reason}: {one_line(error)}") from None


def _parse_json(adapter: TypeAdapter[Any], inner: TypeAdapter[Any] | None, text: JSONText) -> object:
    """Return the value of a JSON text. Also accepts a value without the object around it, as some models answer."""
    try:
        return adapter.validate_json(text)
    except ValidationError:
        if inner is not None:
            with suppress(ValueError):
                if not (isinstance(answer := from_json(text), dict) and [*answer] == ["value"]):
                    return inner.validate_json(text)
        raise


class Requests:
    """The adapter, options, output and settings of the requests of an evaluation."""

    def __init__(
        self,
        adapter: Adapter,
        options: tuple[Option, ...],
        outputs: Outputs[Any] | None,
        settings: Settings | None,
        strict: Strict | None,
    ) -> None:
        self.adapter = adapter
        self.options = options
        self.outputs = outputs
        self._settings = settings
        self._strict = strict

    @cached_property
    def functions(self) -> tuple[Option, ...]:
        """The options that run in this program. A native option without `otherwise` runs at the vendor only."""
        return self.options and tuple(function for option in self.options for function in option.answered_here)

    @property
    def speaks_as(self) -> str:
        """The policy whose messages the adapter sends as the model's."""
        return str(getattr(self.adapter, "speaks_as", "llm"))

    @cached_property
    def sends_renderings(self) -> bool:
        """Whether the adapter's `complete` only sends the result of its `render`."""
        return sends_renderings(self.adapter)

    @cached_property
    def sends_output_option(self) -> bool:
        """Whether the output is requested as a call: by its mode, or because a model accepts no schema."""
        if self.outputs is None or self.outputs.is_plain_text:
            return False
        if self.outputs.mode is not None:
            return self.outputs.mode == "call"
        how = CallArguments(
            options=self.options, settings=self._with_response_format(self.outputs.format), strict=False
        )
        members = getattr(self.adapter, "members", (self.adapter,))
        losses = [loss for each in members for loss in each.render([user("?")], **how).losses]
        return any(loss.kind == "dropped" and loss.path in _NO_SCHEMA for loss in losses)

    @cached_property
    def call_arguments(self) -> CallArguments:
        """The arguments of each request.

        Raises OptionInvalid if the output needs the option `final_answer` and the caller has an option of this name.
        """
        options, settings = self.options, self._settings
        if self.outputs is not None and self.sends_output_option:
            if OUTPUT_OPTION in [option.name for option in self.functions]:
                cause = "output_mode='call'" if self.outputs.mode else f"{self.adapter.target} accepts no schema"
                reason = f"{cause}, so {OUTPUT_OPTION!r} is reserved for the output"
                raise OptionInvalid(f"{reason}; rename your option of this name with sabir.option(name=…)")
            options = (*options, self.outputs.option)
            settings = self._merge_settings(Settings(option_choice="required"))
        elif self._requested_format is not None:
            settings = self._with_response_format(self._requested_format)
        return CallArguments(options=options, settings=settings, strict=self._strict)

    def is_output(self, call: OptionCall) -> bool:
        """Return whether the arguments of a call are the requested output."""
        return self.outputs is not None and self.has_output_name(call)

    def has_output_name(self, call: OptionCall) -> bool:
        """Return whether a call has the name of the output's option, and no option of the caller has this name."""
        return call.call.option_name == OUTPUT_OPTION not in [each.name for each in self.functions]

    def correction(self, error: OutputInvalid) -> Message:
        """Return the message that tells the model why its answer was refused, and asks for another answer."""
        request = f"Answer again, by the option {OUTPUT_OPTION}." if self.sends_output_option else "Answer again."
        return Message(policy=RUNTIME, payload=PartsPayload(parts=(TextPart(text=f"{error}. {request}"),)))

    def messages(self, messages: list[Message]) -> list[Message]:
        """Return the messages of a request: these, and the message that requests the output as text, if any.

        That message is not recorded, because it holds for the next reply only.
        """
        outputs = self.outputs
        return [*messages, outputs.text_request] if outputs is not None and outputs.is_requested_as_text else messages

    @property
    def _requested_format(self) -> ResponseFormat | None:
        """The response format of each request, or None if the output is not requested by a response format."""
        outputs = self.outputs
        return None if outputs is None or outputs.is_plain_text or outputs.mode == "text" else outputs.format

    def _with_response_format(self, response_format: ResponseFormat) -> Settings:
        return self._merge_settings(Settings(response_format=response_format))

    def _merge_settings(self, defaults: Settings) -> Settings:
        return defaults if self._settings is None else self._settings.laid_over(defaults)


def output_received(call: OptionCall) -> Message:
    """Return the result message for the call whose arguments are the output. The arguments are validated later."""
    return OptionResultBuilder.response_to(call, policy=RUNTIME).success("The answer was received.")


def count_retries(messages: Iterable[Message]) -> int:
    """Return how many messages of a turn ask the model to answer again."""
    return sum(message.kind == "parts" and message.policy == RUNTIME for message in messages)


def _describe_fault(error: ValueError) -> str:
    return describe_validation_error(error) if isinstance(error, ValidationError) else one_line(str(error))
