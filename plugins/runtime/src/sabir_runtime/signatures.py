"""What a policy says of itself: its keyword parameters are its argument schema (RN-03, UP-31).

    async def search_web(ctx, observations, options=None, *, query: str, most: int = 5) -> list[Message]
                                                             └───────── parameters ────┘

Arguments travel as JSON, by the parameters' own types (RN-29); a policy that takes `**others` takes plain JSON there.
"""

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, get_type_hints
from weakref import WeakKeyDictionary

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_json
from sabir import NotJSON, Option, OptionInvalid
from sabir.arguments import Binder, describe
from sabir.errors import one_line
from sabir.signatures import first_paragraph, read_function, unwrap
from sabir.values import encode_json

from sabir_runtime.errors import PolicyInvalid

ALWAYS_GIVEN = 3
"""Context, observations and options come first in every policy."""


@dataclass(frozen=True)
class PolicySignature:
    """Name, description and parameters of a policy, and the way of its arguments to JSON and back."""

    function_name: str
    description: str
    annotations: Mapping[str, Any]
    schema: Mapping[str, Any]
    binder: Binder = field(repr=False)
    is_open: bool = False
    """Whether it takes arguments that it does not name."""

    def described(self, description: str) -> "PolicySignature":
        """The same signature with another description."""
        return replace(self, description=description)

    def as_option(self, name: str, function: Callable[..., Any]) -> Option:
        """The option of that name that runs a function with this policy's arguments."""
        made = Option.from_schema(name, self.description, dict(self.schema), function)
        return made if self.is_open else made.model_copy(update={"binder": self.binder})

    def encode(self, arguments: Mapping[str, Any]) -> str:
        """Arguments as the text of a JSON object; PolicyInvalid names one that JSON cannot hold as it is."""
        return "{" + ",".join(f"{json.dumps(name)}:{self._encode(name, arguments[name])}" for name in arguments) + "}"

    def decode(self, text: str) -> dict[str, Any]:
        """The arguments that a text holds, of their parameters' types; PolicyInvalid for those that do not fit."""
        try:
            given: dict[str, Any] = json.loads(text)
            return {name: self._decode(name, value) for name, value in given.items()}
        except (ValueError, AttributeError) as error:
            reason = describe(error) if isinstance(error, ValidationError) else str(error)
            raise PolicyInvalid(
                f"arguments of policy {self.function_name!r} do not fit: {one_line(reason, 300)}"
            ) from None

    @cached_property
    def _adapters(self) -> dict[str, TypeAdapter[Any]]:
        return {name: TypeAdapter(annotation) for name, annotation in self.annotations.items()}

    def _encode(self, name: str, value: Any) -> str:
        try:
            if name in self._adapters:
                return self._adapters[name].dump_json(value, by_alias=True, warnings="error").decode()
            text = encode_json(value)
            if json.loads(text) != value:
                raise NotJSON(f"a value of type {type(value).__name__} would come back as something else")
            return text
        except (PydanticSerializationError, NotJSON) as error:
            remedy = "annotate the parameter with a type that pydantic knows, or pass plain JSON"
            raise PolicyInvalid(
                f"argument {name!r} of policy {self.function_name!r} is no JSON: {one_line(str(error), 200)}; {remedy}"
            ) from None

    def _decode(self, name: str, value: Any) -> Any:
        # From JSON text: its rules (a list is a tuple there, a string a date) are laxer than those of Python values.
        return self._adapters[name].validate_json(to_json(value)) if name in self._adapters else value


def read_policy(policy: Callable[..., Any]) -> PolicySignature:
    """The signature of a policy: a function, method, partial or callable object.

    It is read once: a program may make a context, and bind all its policies, for each request. Raises PolicyInvalid for
    what does not take context, observations and options first, and for parameters that no schema can describe.
    """
    kind: Callable[..., Any] = policy if inspect.isfunction(policy) else type(policy)
    is_plain = kind is policy or inspect.isfunction(getattr(kind, "__call__", None))  # noqa: B004
    if not is_plain or hasattr(policy, "__signature__"):  # a method, a partial, or one that says itself what it takes
        return _read(policy)
    known = _KNOWN.get(kind)
    if known is None:
        known = _KNOWN[kind] = _read(policy)
    return known


_KNOWN: WeakKeyDictionary[Callable[..., Any], PolicySignature] = WeakKeyDictionary()
"""What functions, and classes of callable objects, take."""


def _read(policy: Callable[..., Any]) -> PolicySignature:
    inner = unwrap(policy)
    name = getattr(inner, "__name__", None) or type(inner).__name__
    try:
        given = list(inspect.signature(policy).parameters.values())
    except (TypeError, ValueError):
        raise PolicyInvalid(f"{_shown(policy)} is no policy: it cannot be called") from None
    positional = [each for each in given if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    if len(positional) < ALWAYS_GIVEN:
        raise PolicyInvalid(
            f"policy {name!r} takes {_names(given)}; a policy is async def {name}(ctx, observations, options=None, …)"
        )
    own = [each for each in given if each not in positional[:ALWAYS_GIVEN]]
    return _describe(policy, name, [each for each in own if each.kind is not each.VAR_KEYWORD], own)


def _describe(
    policy: Callable[..., Any], name: str, named: list[inspect.Parameter], own: list[inspect.Parameter]
) -> PolicySignature:
    inner = unwrap(policy)
    function = inner if inspect.isroutine(inner) else type(inner).__call__
    written = inspect.get_annotations(function)

    async def described() -> None: ...

    described.__doc__ = inspect.getdoc(function)
    # Its own parameters alone: what says of which class the context is may be known to type checkers only.
    described.__annotations__ = {each.name: written[each.name] for each in named if each.name in written}
    try:
        resolved = get_type_hints(described, getattr(function, "__globals__", {}), include_extras=True)
    except NameError as error:
        remedy = "import it, or define it at the module's top level"
        raise PolicyInvalid(f"policy {name!r} is annotated with an unknown name: {error}; {remedy}") from None
    described.__annotations__ = resolved
    described.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]  # what inspect reads
    is_open = len(named) < len(own)
    try:
        signature = read_function(described, name)
    except OptionInvalid as error:
        raise PolicyInvalid(str(error).replace("option", "policy", 1)) from None
    schema = {**signature.parameters, "additionalProperties": True} if is_open else signature.parameters
    description = first_paragraph(described.__doc__ or "")
    return PolicySignature(name, description, described.__annotations__, schema, signature.binder, is_open)


def _names(parameters: list[inspect.Parameter]) -> str:
    return f"({', '.join(each.name for each in parameters)})"


def _shown(value: object) -> str:
    return one_line(repr(value), 80)
