"""Options, which a policy may choose: a name, a description, JSON-schema parameters, perhaps a function.

    typed function ─┐
    pydantic model ─┼─▶ Option ──answer(call)──▶ option result
    JSON schema ────┘
    reply | messages ──unanswered calls──▶ each by its option ──▶ results, to be appended to the conversation

    call ──bind──▶ BoundArguments ──(function)──▶ Outcome ──finish──▶ option result
           └─ arguments refused ────────────────────────────▶ error result, the function never ran

Calls are answered in their order, and a failure of one loses none of the others. An exception of the function becomes
an error result; CallsTooDeep is raised to the caller. An error before the function ran is answered by the policy
`runtime`, as is a call of an option that was not offered. Runners build on this one implementation.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, TypeAlias, TypeVar, cast, overload

from pydantic import AfterValidator, BaseModel, Field, SkipValidation, ValidationError
from pydantic.json_schema import SkipJsonSchema

from sabir.base.errors import BuilderError, CallsTooDeep, NotJSON, OptionFailed, OptionInvalid, one_line
from sabir.base.models import Frozen, describe_validation_error
from sabir.base.values import JSONObjectDocumentField, JSONText, JSONValue, ObjectView
from sabir.options.execution import Outcome, RaisedError, logger, run, run_in_loop
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
from sabir.vocabulary.messages import RESERVED, RUNTIME, Message, OptionCallPayload, Unanswered
from sabir.vocabulary.parts import Hints, NonEmpty, Sections, Text
from sabir.vocabulary.reply import Reply

Function = TypeVar("Function", bound=Callable[..., Any])
Model = TypeVar("Model", bound=BaseModel)

_NO_PARAMETERS = JSONText('{"type":"object","properties":{}}')


def _free(name: str) -> str:
    if name == RUNTIME:
        raise OptionInvalid(f"{RESERVED}; give the option another, for example sabir.option(name='my_runtime')")
    return name


def _of_an_object(text: JSONText) -> JSONText:
    if (found := text.view().get("type", "object")) != "object":
        raise OptionInvalid(f"parameters must be the JSON schema of an object, not of {found!r}")
    return text


class Option(Frozen):
    """An option that a policy may choose. Two options are equal if a model sees no difference between them.

    `parameters` is the JSON schema of an object, its keys in the order given. `function` runs when the option is
    chosen, `binder` turns JSON arguments into the function's; both stay in the process: they are in no dump, no repr
    and no comparison. `vendor` maps a provider's name to hints that only that provider knows; "*" is for every
    provider that knows them.
    """

    name: Annotated[NonEmpty, AfterValidator(_free)]
    description: Text = ""
    parameters_json: Annotated[JSONObjectDocumentField, AfterValidator(_of_an_object)] = Field(
        default=_NO_PARAMETERS, alias="parameters"
    )
    vendor_json: Hints = Field(default=None, alias="vendor")
    function: Annotated[SkipValidation[Callable[..., Any] | None], SkipJsonSchema()] = Field(
        default=None, exclude=True, repr=False
    )
    binder: Annotated[SkipValidation[Binder | None], SkipJsonSchema()] = Field(default=None, exclude=True, repr=False)

    parameters: ClassVar = ObjectView("parameters_json", "The JSON schema of the arguments.")
    vendor: ClassVar = ObjectView("vendor_json", "Provider name → its own hints.")

    @classmethod
    def from_function(
        cls,
        function: Function,
        *,
        name: str | None = None,
        description: str | None = None,
        vendor: Sections | None = None,
    ) -> "CallableOption[Function]":
        """An option of a typed function, sync or async: method, partial or callable object alike.

        Name, description (the docstring's first paragraph) and parameters come from its signature; the function
        receives validated, typed arguments. A parameter whose type has `__sabir_provide__` is filled in.
        Raises OptionInvalid for a signature that no schema can describe.
        """
        signature = Signature.of(function, name)
        if description is not None:
            signature = signature._replace(description=description)
        return cast("CallableOption[Function]", _make(**signature._asdict(), function=function, vendor=vendor))

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
        """An option whose parameters are the fields of a pydantic model; the function takes one instance of it."""
        if description is None:
            description = first_paragraph(model.__doc__ or "")
        said = {"description": description, "parameters": schema_of_model(model), "vendor": vendor}
        name = name or model.__name__
        provided = provided_to(function, name) if function else ()
        return _make(name, **said, function=function, binder=partial(bind_model, model), provided=provided)

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
        """An option of a raw JSON schema; the function takes the arguments by name, as plain JSON values."""
        made = _make(name, description=description, parameters=parameters, function=function, vendor=vendor)
        provided = provided_to(function, name) if function else ()
        binder = partial(bind_provided, partial(bind_schema, made.parameters), provided)
        return made.model_copy(update={"binder": binder}) if provided else made

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the function as it was written, without validation; raises OptionInvalid if there is none.

        Arguments and result are Any, because each option has its own signature.
        """
        if self.function is None:
            raise OptionInvalid(f"option {self.name!r} has no function to call")
        return self.function(*arguments, **named)

    def answer_sync(self, call: Message) -> Message:
        """Validate a call's arguments, run the function, and return the result that answers the call.

        Arguments that do not fit give an error result of type `invalid_arguments`, an exception an error result named
        after its class, a value that JSON cannot hold one of type `result_invalid`. Raises OptionInvalid, before
        anything runs, for a call of another option and for an asynchronous function.
        """
        function = self.check_runs(asynchronous=False)
        bound = self._bind(call)
        if isinstance(bound, Message):
            return bound
        outcome = run(function, bound)
        if inspect.iscoroutine(outcome.value):
            outcome.value.close()
            raise OptionInvalid(_await_instead(self.name))
        return _finish(call, outcome)

    async def answer(self, call: Message) -> Message:
        """As `answer_sync`; asynchronous functions are awaited, others run in a thread of their own.

        At most 512 threads run for each event loop; further functions wait for a free one.
        """
        function = self.check_runs(asynchronous=True)
        bound = self._bind(call)
        return bound if isinstance(bound, Message) else _finish(call, await run_in_loop(function, bound))

    def check_runs(self, *, asynchronous: bool) -> Callable[..., Any]:
        """Return the function; raises OptionInvalid if there is none, or one that cannot run without a loop."""
        if self.function is None:
            remedy = "answer its calls yourself: OptionResultBuilder.response_to(call).success(…)"
            raise OptionInvalid(f"option {self.name!r} has no function to run; {remedy}")
        if not asynchronous and Signature.is_asynchronous(self.function):
            raise OptionInvalid(_await_instead(self.name))
        return self.function

    def _bind(self, call: object) -> BoundArguments | Message:
        """Return the function's arguments for a call, or an error result if they do not fit or were cut off."""
        if not isinstance(call, Message) or call.call is None:
            answers = f"option {self.name!r} answers option calls, not {describe_kind(call)}"
            raise OptionInvalid(f"{answers}; see reply.option_calls")
        payload = call.call
        if payload.option_name != self.name:
            raise OptionInvalid(f"option {self.name!r} was given a call of {payload.option_name!r}; use sabir.answer")
        if payload.invalid_arguments:
            return error_result(call, INVALID_ARGUMENTS, _describe_invalid(payload), policy=RUNTIME)
        try:
            binder = self.binder or partial(bind_schema, self.parameters)
            return binder(payload.arguments_json)
        except ArgumentsRefused as error:
            return error_result(call, INVALID_ARGUMENTS, str(error), policy=RUNTIME)

    @classmethod
    def all_of(cls, options: "Iterable[OptionLike]") -> "tuple[Option, ...]":
        """Of all that may be offered as one; OptionInvalid names what is none, and a name offered twice."""
        if isinstance(options, Option | str | Mapping) or callable(options):
            raise OptionInvalid(f"options must be a list, not one {_shown(options)}; write options=[…]")
        found: dict[str, Option] = {}
        for index, candidate in enumerate(options):
            each = _as_option(candidate, index)
            if each.name in found:
                first = list(found).index(each.name)
                raise OptionInvalid(
                    f"options[{first}] and options[{index}] are both named {each.name!r}: {_shown(found[each.name])} "
                    f"and {_shown(each)}; rename one with sabir.option(name=…)"
                )
            found[each.name] = each
        return tuple(found.values())

    def __eq__(self, other: object) -> bool:
        """Whether name, description, parameters and hints are equal, the order of their keys included."""
        return isinstance(other, Option) and self._seen_by_a_model() == other._seen_by_a_model()

    def __hash__(self) -> int:
        """Equal options hash alike."""
        return hash(self._seen_by_a_model())

    def _seen_by_a_model(self) -> tuple[str | None, ...]:
        return self.name, self.description, self.parameters_json, self.vendor_json


if TYPE_CHECKING:
    Called_co = TypeVar("Called_co", covariant=True)
    """A function's type; covariant and without a bound, so that a list of two options is one of options."""

    class CallableOption(Option, Generic[Called_co]):
        """An option for type checkers: still callable with its function's own signature."""

        @property
        def __call__(self) -> Called_co:  # type: ignore[override]  # it has the function's own signature
            """Call the function as it was written."""
            ...

else:
    CallableOption = Option
    """At run time every option is an Option."""


OptionLike: TypeAlias = Option | Callable[..., Any] | type[BaseModel]
"""The values that may be offered as options: an option, a typed function, or a pydantic model class."""


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
    """Make a typed function an option: `@sabir.option`, or `@sabir.option(name=…, description=…, vendor=…)`.

    The option can still be called like the function. Raises OptionInvalid for a signature that no schema can describe.
    """
    if function is None:
        return lambda decorated: Option.from_function(decorated, name=name, description=description, vendor=vendor)
    return Option.from_function(function, name=name, description=description, vendor=vendor)


def _as_option(candidate: object, index: int) -> Option:
    if isinstance(candidate, Option):
        return candidate
    if isinstance(candidate, type) and issubclass(candidate, BaseModel):
        return Option.from_model(candidate)
    if callable(candidate) and not isinstance(candidate, type):
        return Option.from_function(candidate)
    remedy = "give a typed function, a pydantic model class, or Option.from_schema(name, description, parameters)"
    raise OptionInvalid(f"options[{index}] is {_shown(candidate)}, which is no option; {remedy}")


def _make(name: str, *, provided: tuple[Provided, ...] = (), **fields: Any) -> Option:
    if provided:
        fields["binder"] = partial(bind_provided, fields["binder"], provided)
    try:
        return Option.model_validate({"name": name, **fields})
    except ValidationError as error:
        raise OptionInvalid(f"option {name!r}: {one_line(describe_validation_error(error))}") from None


def _shown(value: object) -> str:
    if isinstance(value, Option) and value.function is not None:
        value = value.function
    place = getattr(value, "__qualname__", None)
    return f"{value.__module__}.{place}" if place else one_line(repr(value), 80)


INVALID_ARGUMENTS = "invalid_arguments"
"""The error type of the result for a call whose arguments do not fit."""
RESULT_INVALID = "result_invalid"
"""The error type of the result for a returned value that no message can hold."""
OPTION_NOT_OFFERED = "option_not_offered"
"""The error type of the result for an option that was not offered."""


def _await_instead(name: str) -> str:
    return f"option {name!r} is asynchronous; use `await option.answer(call)` or `await sabir.answer(reply, options)`"


def _describe_invalid(payload: OptionCallPayload) -> str:
    """Return the error text for a call with `invalid_arguments`, with the remedy for the model and its user."""
    if payload.cut_off:
        arrived = one_line(payload.unreadable_arguments or payload.arguments_json, 100)
        remedy = "call it again with shorter arguments, or have max_output_tokens raised"
        return f"the call was cut off before its arguments were complete, so it was not run; {remedy} ({arrived!r})"
    return f"the arguments are no JSON object: {one_line(payload.raw_arguments or '', 100)!r}"


def _finish(call: Message, outcome: Outcome) -> Message:
    """Return the result of a call for the outcome of its option's function."""
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


def error_result(
    call: Message, error_type: str, text: str, *, policy: str | None = None, retryable: bool = False
) -> Message:
    """Return an error result for a call, its text in one line; its policy is `policy`, or else the option's name."""
    failure = {"is_error": True, "error_type": error_type, "error_message": one_line(text), "retryable": retryable}
    return option_result(call, failure, policy=policy)


def answer_sync(reply: Reply | Message | Iterable[Message], options: Iterable[OptionLike]) -> list[Message]:
    """Answer every unanswered option call of a reply, or of a history, in order; one result a call.

    Raises OptionInvalid, before anything runs, for an option that was called but has no function, or an asynchronous
    one: `await sabir.answer(...)` runs those.
    """
    answered_by = _answered_by(reply, options, asynchronous=False)
    return [by if isinstance(by, Message) else by.answer_sync(call) for call, by in answered_by]


async def answer(reply: Reply | Message | Iterable[Message], options: Iterable[OptionLike]) -> list[Message]:
    """As `answer_sync`, one call after another; asynchronous options are awaited, others run in threads."""
    answered_by = _answered_by(reply, options, asynchronous=True)
    return [by if isinstance(by, Message) else await by.answer(call) for call, by in answered_by]


def unanswered(messages: Iterable[Message]) -> list[Message]:
    """The option calls without a result, in order.

    A result answers the first unanswered call of its id in the nearest earlier run of calls that has such a call.
    """
    given, calls = list(messages), Unanswered()
    for position, message in enumerate(given):
        calls.take(position, message.payload)
    return [given[position] for position in calls.positions()]


def _answered_by(
    reply: Reply | Message | Iterable[Message], options: Iterable[OptionLike], *, asynchronous: bool
) -> list[tuple[Message, Option | Message]]:
    """Each unanswered call with the option that answers it, or with the refusal that does."""
    offered = {option.name: option for option in Option.all_of(options)}
    calls = unanswered(reply.messages if isinstance(reply, Reply) else as_messages(reply))
    found = [(call, _option_or_refusal(call, offered)) for call in calls]
    for _, by in found:
        if isinstance(by, Option):
            by.check_runs(asynchronous=asynchronous)
    return found


def _option_or_refusal(call: Message, offered: dict[str, Option]) -> Option | Message:
    name = call.call.option_name if call.call else ""
    if name in offered:
        return offered[name]
    known = ", ".join(offered) or "none"
    text = f"option {name!r} was not offered; offered are: {known}"
    return error_result(call, OPTION_NOT_OFFERED, text, policy=RUNTIME)
