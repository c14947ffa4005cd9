"""Options: functions that a model may call, each with a name, a description and a JSON schema of its arguments.

    typed function ─┐
    pydantic model ─┼─▶ Option ──answer(call)──▶ option result
    JSON schema ────┘
    reply | messages ──unanswered calls──▶ each by its option ──▶ results, to be appended to the conversation

    call ──bind──▶ BoundArguments ──(function)──▶ Outcome ──finish──▶ option result
           └─ arguments refused ────────────────────────────▶ error result, the function never ran

Calls are answered in their order, and an error result of one call does not affect the results of the others. An
exception of the function becomes an error result; CallsTooDeep and KeyboardInterrupt are raised to the caller. If the
arguments do not fit or the option was not offered, the function does not run, and the error result has the policy
`runtime`. Runners use this implementation too.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, NamedTuple, TypeAlias, TypeVar, cast, overload

from pydantic import AfterValidator, BaseModel, Field, SkipValidation, ValidationError
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import from_json

from sabir.base.errors import BuilderError, CallsTooDeep, NotJSON, OptionFailed, OptionInvalid, one_line
from sabir.base.models import Frozen, describe_validation_error
from sabir.base.values import JSONObjectDocumentField, JSONText, JSONValue, ObjectView
from sabir.options.execution import RaisedError, RunOutcome, logger, run, run_in_loop
from sabir.options.signatures import (
    ArgumentsRefused,
    Binder,
    BoundArguments,
    Provided,
    Signature,
    bind_model,
    bind_provided,
    bind_schema,
    first_paragraph,
    provided_to,
    schema_of_model,
)
from sabir.vocabulary.constructors import as_messages, describe_kind, option_result, result_fields
from sabir.vocabulary.fields import NonEmpty, Text
from sabir.vocabulary.messages import RESERVED, RUNTIME, Message, OptionCallPayload, Unanswered
from sabir.vocabulary.parts import Hints, Sections
from sabir.vocabulary.reply import Reply

Function = TypeVar("Function", bound=Callable[..., Any])
Model = TypeVar("Model", bound=BaseModel)

_NO_PARAMETERS = JSONText('{"type":"object","properties":{}}')


def _check_name(name: str) -> str:
    if name == RUNTIME:
        raise OptionInvalid(f"{RESERVED}; give the option another name, for example sabir.option(name='my_runtime')")
    return name


def _check_object_schema(text: JSONText) -> JSONText:
    if (kind := text.view().get("type", "object")) != "object":
        raise OptionInvalid(f"the JSON schema `parameters` must describe an object, but its type is {kind!r}")
    return text


class Option(Frozen):
    """A function or action that a model may call: name, description and JSON schema of the arguments (vendors: tool).

    Make options with `sabir.option` or `from_function`, `from_model` and `from_schema`, and pass them as `options=[…]`.
    `parameters` is the JSON schema of the arguments. `vendor` maps a provider's name to hints for that provider, and
    "*" to hints for every provider. `function` runs when the option is called; None means that the program answers the
    calls itself. `binder` converts the JSON arguments to the function's arguments; None means that they are checked
    against `parameters` and passed by name. Two options are equal if a model sees no difference; `function` and
    `binder` are not compared, dumped or shown.

    >>> import sabir
    >>> schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    >>> weather = sabir.Option.from_schema("weather", "The weather.", schema, lambda city: "rain")
    >>> reply = sabir.adapter("echo:m").complete_sync('call weather {"city": "Oslo"}', options=[weather])
    >>> weather.answer_sync(reply.option_calls[0]).result.result
    'rain'
    """

    name: Annotated[NonEmpty, AfterValidator(_check_name)]
    description: Text = ""
    parameters_json: Annotated[JSONObjectDocumentField, AfterValidator(_check_object_schema)] = Field(
        default=_NO_PARAMETERS, alias="parameters"
    )
    vendor_json: Hints = Field(default=None, alias="vendor")
    function: Annotated[SkipValidation[Callable[..., Any] | None], SkipJsonSchema()] = Field(
        default=None, exclude=True, repr=False
    )
    binder: Annotated[SkipValidation[Binder | None], SkipJsonSchema()] = Field(default=None, exclude=True, repr=False)

    is_native: ClassVar[bool] = False
    """Whether a vendor runs the tool: True for a NativeOption."""

    parameters: ClassVar = ObjectView("parameters_json", "The JSON schema of the arguments, as an immutable mapping.")
    vendor: ClassVar = ObjectView("vendor_json", 'Provider name → hints for that provider; "*" for every provider.')

    @classmethod
    def from_function(
        cls,
        function: Function,
        *,
        name: str | None = None,
        description: str | None = None,
        vendor: Sections | None = None,
    ) -> "CallableOption[Function]":
        """Return an option that calls a typed function: sync or async, also a method, a partial or a callable object.

        `name` defaults to the function's name and `description` to the first paragraph of its docstring. The
        parameters' types become the JSON schema, and the function receives validated values of these types. A parameter
        whose type has the class method `__sabir_provide__`, such as ToolContext, is hidden from the model, and sabir
        fills it in when the option runs.

        Raises OptionInvalid for a signature that JSON schema cannot describe, such as `*args` or a missing type, for a
        generator function, for a lambda or an object without a name if `name` is None, and for the reserved name
        "runtime".
        """
        signature = Signature.of(function, name)
        if description is not None:
            signature = signature._replace(description=description)
        return cast("CallableOption[Function]", _new_option(**signature._asdict(), function=function, vendor=vendor))

    @classmethod
    def from_model(
        cls,
        model: type[Model],
        function: Callable[[Model], Any] | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        vendor: Sections | None = None,
    ) -> "Option":
        """Return an option whose arguments are the fields of a pydantic model; `function` receives one validated
        instance.

        `name` defaults to the class's name and `description` to the first paragraph of its docstring. Without
        `function`, the program answers the calls itself, for example with OptionResultBuilder. Raises OptionInvalid for
        a model that JSON schema cannot describe or that is not of an object, and for the reserved name "runtime".
        """
        if description is None:
            description = first_paragraph(model.__doc__ or "")
        fields = {"description": description, "parameters": schema_of_model(model), "vendor": vendor}
        name = name or model.__name__
        provided = provided_to(function, name) if function else ()
        return _new_option(name, **fields, function=function, binder=partial(bind_model, model), provided=provided)

    @classmethod
    def from_schema(
        cls,
        name: str,
        description: str,
        parameters: Mapping[str, JSONValue],
        function: Callable[..., Any] | None = None,
        *,
        vendor: Sections | None = None,
    ) -> "Option":
        """Return an option with a JSON schema that you wrote; `function` receives the arguments by name, as immutable
        JSON values.

        sabir checks the keywords `type`, `enum`, `const`, `required`, `properties`, `additionalProperties` and `items`.
        The function must check all other keywords. Without `function`, the program answers the calls itself. Raises
        OptionInvalid if `parameters` is not JSON or has another `type` than "object", and for an empty name or the
        reserved name "runtime".
        """
        option = _new_option(name, description=description, parameters=parameters, function=function, vendor=vendor)
        provided = provided_to(function, name) if function else ()
        binder = partial(bind_provided, partial(bind_schema, option.parameters), provided)
        return option.model_copy(update={"binder": binder}) if provided else option

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the option's function directly with these arguments, without validation, and return its result.

        An option of a coroutine function returns a coroutine. Raises OptionInvalid if there is no function. Arguments
        and result are Any, because each option has its own signature.
        """
        if self.function is None:
            raise OptionInvalid(f"option {self.name!r} has no function to call; create it with one")
        return self.function(*arguments, **named)

    def answer_sync(self, call: Message) -> Message:
        """Sync version of `answer`. The function runs in the calling thread.

        Also raises OptionInvalid for a coroutine function. If another function returns a coroutine, the error is raised
        after the call of the function, and the coroutine does not run.
        """
        bound = self._bind(call, asynchronous=False)
        return bound if isinstance(bound, Message) else bound.run_sync()

    async def answer(self, call: Message) -> Message:
        """Run the option's function for a call of the model, and return the option result, a message to append.

        Coroutine functions are awaited; other functions run in a thread each, at most 512 at once for each event loop.
        Failures become error results for the model. `error_type` is "invalid_arguments" if the arguments do not fit or
        were cut off, "result_invalid" if JSON cannot represent the returned value, the `error_type` of an OptionFailed,
        else the class name of the function's exception.

        Raises OptionInvalid, before the function runs, for a message that is not a call of this option, for an option
        without a function, and if a parameter that sabir fills in has no value here, such as a ToolContext outside of
        an evaluation. Raises CallsTooDeep if the function raises it, for endlessly nested evaluations.
        """
        bound = self._bind(call, asynchronous=True)
        return bound if isinstance(bound, Message) else await bound.run()

    @property
    def answered_here(self) -> "tuple[Option, ...]":
        """The options whose calls this program answers: this option; for a native option, its `otherwise` if any."""
        return (self,)

    def check_runs(self, *, asynchronous: bool) -> Callable[..., Any]:
        """Return the option's function if the caller can run it. Raises OptionInvalid if there is no function.

        `asynchronous` says whether the caller can await. If False, also raises OptionInvalid for a coroutine function.
        """
        if self.function is None:
            remedy = "answer its calls yourself: OptionResultBuilder.response_to(call).success(…)"
            raise OptionInvalid(f"option {self.name!r} has no function to run; {remedy}")
        if not asynchronous and Signature.is_asynchronous(self.function):
            raise OptionInvalid(_advise_await(self.name))
        return self.function

    def _bind(self, call: object, *, asynchronous: bool) -> "_BoundCall | Message":
        """Return the function with its arguments for a call, or an error result if they do not fit or were cut off.

        Raises OptionInvalid like `check_runs`, for a message that is not a call of this option, and if a parameter that
        sabir fills in has no value here.
        """
        function = self.check_runs(asynchronous=asynchronous)
        if not isinstance(call, Message) or call.call is None:
            answers = f"option {self.name!r} answers option calls, not {describe_kind(call)}"
            raise OptionInvalid(f"{answers}; see reply.option_calls")
        payload = call.call
        if payload.option_name != self.name:
            raise OptionInvalid(f"option {self.name!r} received a call of {payload.option_name!r}; use sabir.answer")
        if payload.invalid_arguments:
            return error_result(call, INVALID_ARGUMENTS, _describe_invalid(payload), policy=RUNTIME)
        try:
            binder = self.binder or partial(bind_schema, from_json(self.parameters_json))
            return _BoundCall(call, function, binder(payload.arguments_json))
        except ArgumentsRefused as error:
            return error_result(call, INVALID_ARGUMENTS, str(error), policy=RUNTIME)

    @classmethod
    def all_of(cls, options: "Iterable[OptionLike]") -> "tuple[Option, ...]":
        """Convert typed functions, pydantic model classes and options to a tuple of Options.

        Raises OptionInvalid for any other item, for a function or model that cannot be an option, for two options of
        the same name, and if `options` is a single option, function or class, a string or a mapping.
        """
        if isinstance(options, Option | str | Mapping) or callable(options):
            place = _describe_place(options)
            raise OptionInvalid(f"options must be a list or other iterable, not one {place}; write options=[…]")
        listed: list[Option] = []
        by_name: dict[str, tuple[int, Option]] = {}
        for index, candidate in enumerate(options):
            each = _as_option(candidate, index)
            listed.append(each)
            for named in dict.fromkeys((each, *each.answered_here)) if each.is_native else (each,):
                earlier, other = by_name.setdefault(named.name, (index, named))
                if earlier != index:
                    both = f"options[{earlier}] and options[{index}] are both named {named.name!r}"
                    places = f"{_describe_place(other)} and {_describe_place(named)}"
                    raise OptionInvalid(f"{both}: {places}; rename one with sabir.option(name=…)")
        return tuple(listed)

    def __eq__(self, other: object) -> bool:
        """Return whether `other` is an option with equal name, description, parameters and vendor hints."""
        return isinstance(other, Option) and self._seen_by_a_model() == other._seen_by_a_model()

    def __hash__(self) -> int:
        """Return a hash that is the same for equal options."""
        return hash(self._seen_by_a_model())

    def _seen_by_a_model(self) -> tuple[object, ...]:
        return self.name, self.description, self.parameters_json, self.vendor_json


if TYPE_CHECKING:
    Called_co = TypeVar("Called_co", covariant=True)
    """The type of a function. Covariant and unbounded, so that a list of different options is a list of options."""

    class CallableOption(Option, Generic[Called_co]):
        """The type of an option that type checkers can still call like its function. At run time, this is Option."""

        @property
        def __call__(self) -> Called_co:  # type: ignore[override]  # it has the function's own signature
            """The option's function, with its own signature."""
            ...

else:
    CallableOption = Option
    """At run time every option is an Option."""


OptionLike: TypeAlias = Option | Callable[..., Any] | type[BaseModel]
"""What `options=[…]` accepts: an Option, a typed function, or a pydantic model class."""


@overload
def option(function: Function, /) -> "CallableOption[Function]": ...


@overload
def option(
    *, name: str | None = None, description: str | None = None, vendor: Sections | None = None
) -> "Callable[[Function], CallableOption[Function]]": ...


def option(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    vendor: Sections | None = None,
) -> Any:  # the overloads give the types
    """Make an Option from a typed function. Use as the decorator `@sabir.option` or `@sabir.option(name=…, …)`.

    `name` defaults to the function's name, `description` to the first paragraph of its docstring. `vendor` maps a
    provider's name to hints for that provider. The option can still be called like the function, without validation.
    Raises OptionInvalid in the same cases as `Option.from_function`, for example for a parameter without a type.

    >>> import sabir
    >>> @sabir.option
    ... def add(a: int, b: int) -> int:
    ...     "Add two numbers."
    ...     return a + b
    >>> add(1, 2), add.name, add.description
    (3, 'add', 'Add two numbers.')
    """
    if function is None:
        return lambda decorated: Option.from_function(decorated, name=name, description=description, vendor=vendor)
    return Option.from_function(function, name=name, description=description, vendor=vendor)


def _as_option(candidate: object, index: int) -> Option:
    """Return the Option for one item of `options=[…]`. Raises OptionInvalid with the item's index."""
    if isinstance(candidate, Option):
        return candidate
    if isinstance(candidate, type) and issubclass(candidate, BaseModel):
        return Option.from_model(candidate)
    if getattr(candidate, "__module__", "") == "sabir.options.native":
        raise OptionInvalid(f"options[{index}] is the function {_describe_place(candidate)}; call it")
    if callable(candidate) and not isinstance(candidate, type):
        return Option.from_function(candidate)
    remedy = "pass a typed function, a pydantic model class, or Option.from_schema(name, description, parameters)"
    raise OptionInvalid(f"options[{index}] is {_describe_place(candidate)}, which is not an option; {remedy}")


def _new_option(name: str, *, provided: tuple[Provided, ...] = (), **fields: Any) -> Option:
    """Return an Option. `provided` are parameters that sabir fills in. Raises OptionInvalid if a field is invalid."""
    if provided:
        fields["binder"] = partial(bind_provided, fields["binder"], provided)
    try:
        return Option.model_validate({"name": name, **fields})
    except ValidationError as error:
        raise OptionInvalid(f"option {name!r}: {one_line(describe_validation_error(error))}") from None


def _describe_place(value: object) -> str:
    """Return the module and name of a function, a class or an option's function; of another value, the repr."""
    if isinstance(value, Option) and value.function is not None:
        value = value.function
    place = getattr(value, "__qualname__", None)
    return f"{value.__module__}.{place}" if place else one_line(repr(value), 80)


INVALID_ARGUMENTS = "invalid_arguments"
"""The `error_type` of the result if the arguments of a call do not fit the option's parameters, or were cut off."""
RESULT_INVALID = "result_invalid"
"""The `error_type` of the result if the value that the option's function returned cannot be an option result."""
OPTION_NOT_OFFERED = "option_not_offered"
"""The `error_type` of the result if the called option is not among the options that were passed to `sabir.answer`."""


def _advise_await(name: str) -> str:
    return f"option {name!r} is asynchronous; use `await option.answer(call)` or `await sabir.answer(reply, options)`"


def _describe_invalid(payload: OptionCallPayload) -> str:
    """Return the error text for a call with `invalid_arguments`. The model reads the text, and its remedy."""
    if payload.cut_off:
        arrived = one_line(payload.unreadable_arguments or payload.arguments_json, 100)
        remedy = "call it again with shorter arguments, or raise max_output_tokens"
        return f"the call was cut off before its arguments were complete, so it was not run; {remedy} ({arrived!r})"
    return f"the arguments are not a JSON object: {one_line(payload.raw_arguments or '', 100)!r}"


def _build_result(call: Message, outcome: RunOutcome) -> Message:
    """Return the result of a call for the outcome of its option's function. Raises the error if it is CallsTooDeep."""
    error = outcome.error
    if isinstance(error, CallsTooDeep):
        raise error
    if error is None:
        try:
            return option_result(call, result_fields(outcome.value))
        except (BuilderError, NotJSON) as refused:
            return error_result(call, RESULT_INVALID, str(refused))
    raised = RaisedError.from_exception(error)
    if not isinstance(error, OptionFailed):  # the model reads one line of it; only the log has the traceback
        logger.warning("option %r raised %s", call.call and call.call.option_name, raised.type, exc_info=error)
    return error_result(call, raised.type, raised.message, retryable=raised.retryable)


def error_result(call: Message, kind: str, text: str, *, policy: str | None = None, retryable: bool = False) -> Message:
    """Return an error result for a call, with `text` in one line of at most 500 characters. `policy` None means the
    option's name.
    """
    failure = {"is_error": True, "error_type": kind, "error_message": one_line(text), "retryable": retryable}
    return option_result(call, failure, policy=policy)


def answer_sync(reply: Reply | Message | Iterable[Message], options: Iterable[OptionLike]) -> list[Message]:
    """Sync version of `answer`. The functions run one after another in the calling thread.

    Also raises OptionInvalid, before anything runs, if a called option has a coroutine function.
    """
    bound = _bind_calls(reply, options, asynchronous=False)
    return [each if isinstance(each, Message) else each.run_sync() for each in bound]


async def answer(reply: Reply | Message | Iterable[Message], options: Iterable[OptionLike]) -> list[Message]:
    """Run the option calls that have no result yet, one after another, and return the option result of each, in order.

    `reply` is a reply, a message or a list of messages; without open calls, the result is an empty list. Append the
    results to the conversation and send it again. Coroutine functions are awaited; other functions run in a thread
    each. Exceptions, invalid arguments and unknown options become error results, which the model reads.

    Raises OptionInvalid, before anything runs, for invalid `options`, if a called option has no function, and if a
    called function needs a ToolContext, which only evaluations and runners (other packages of sabir) provide. Raises
    CallsTooDeep if a function raises it, for endlessly nested evaluations.

    >>> import asyncio, sabir
    >>> @sabir.option
    ... def add(a: int, b: int) -> int:
    ...     return a + b
    >>> chat = [sabir.user('call add {"a": 1, "b": 2}')]
    >>> reply = sabir.adapter("echo:m").complete_sync(chat, options=[add])
    >>> chat += [*reply.messages, *asyncio.run(sabir.answer(reply, [add]))]
    >>> chat[-1].result.result
    3
    """
    bound = _bind_calls(reply, options, asynchronous=True)
    return [each if isinstance(each, Message) else await each.run() for each in bound]


def unanswered(messages: Iterable[Message]) -> list[Message]:
    """Return the option calls in a conversation that have no result yet, in order.

    A result belongs to a call with the same invocation id: to the first such call without a result, in the nearest
    group of adjacent calls before the result.
    """
    conversation, calls = list(messages), Unanswered()
    for position, message in enumerate(conversation):
        calls.take(position, message.payload)
    return [conversation[position] for position in calls.positions()]


def _bind_calls(
    reply: Reply | Message | Iterable[Message], options: Iterable[OptionLike], *, asynchronous: bool
) -> "list[_BoundCall | Message]":
    """Return each unanswered call, ready to run, or the error result for an unknown option or for invalid arguments.

    Raises OptionInvalid if a called option cannot run.
    """
    offered = {option.name: option for each in Option.all_of(options) for option in each.answered_here}
    bound: list[_BoundCall | Message] = []
    for call in unanswered(reply.messages if isinstance(reply, Reply) else as_messages(reply)):
        name = call.call.option_name if call.call else ""
        if name in offered:
            bound.append(offered[name]._bind(call, asynchronous=asynchronous))
        else:
            text = f"option {name!r} was not offered; the offered options are: {', '.join(offered) or 'none'}"
            bound.append(error_result(call, OPTION_NOT_OFFERED, text, policy=RUNTIME))
    return bound


class _BoundCall(NamedTuple):
    """A call whose arguments fit, ready to run."""

    call: Message
    function: Callable[..., Any]
    arguments: BoundArguments

    async def run(self) -> Message:
        """Run the function, and return the option result."""
        return _build_result(self.call, await run_in_loop(self.function, self.arguments))

    def run_sync(self) -> Message:
        """Run the function in this thread, and return the option result. Raises OptionInvalid for a coroutine."""
        outcome = run(self.function, self.arguments)
        if inspect.iscoroutine(outcome.value):
            outcome.value.close()
            raise OptionInvalid(_advise_await(self.call.call.option_name if self.call.call else ""))
        return _build_result(self.call, outcome)
