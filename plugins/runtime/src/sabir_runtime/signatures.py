"""Policy signatures: a policy's keyword parameters become the JSON schema of its arguments.

    async def search_web(ctx, observations, options=None, *, query: str, most: int = 5) -> list[Message]
                                                             └───────── parameters ────┘

    arguments ──check──▶ with the parameters' types ──encode──▶ JSON ──decode──▶ the same values, elsewhere or later

Under every runner a policy receives the values that `check` returns, or equal values that `decode` returns. `encode`
raises for values that JSON would change, and for secrets. In a parameter `**others` of a policy, `encode` accepts only
JSON values: texts, numbers, true, false, null, lists and objects.

Equality does not show that a value is unchanged: `True == 1`, and an enum's member may equal its text. Therefore:

    difference(value, read again)   ""                          the same, types included
                                    "[0] has the type int, …"   the path of a difference, and what differs
    secret_in(value)                ".login.password"           the path of a secret; None if there is none
"""

import dataclasses
import inspect
import json
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime, time
from functools import cached_property
from typing import Any, TypeAlias, get_origin, get_type_hints
from weakref import WeakKeyDictionary

from pydantic import BaseModel, Secret, SecretBytes, SecretStr, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError
from sabir import Option
from sabir.authoring import (
    ArgumentsRefused,
    BoundArguments,
    JSONText,
    Signature,
    decode_json,
    describe_validation_error,
    encode_json,
    one_line,
)
from sabir.errors import NotJSON, OptionInvalid

from sabir_runtime.failures import PolicyInvalid

Parts: TypeAlias = list[tuple[str, object]]
"""The parts of a value, each with its path inside the value."""


def difference(was: object, now: object, path: str = "") -> str:
    """Describe the first difference between a value and the value read back from JSON. Return "" if there is none.

    Types are compared, too. `path` is the path of both values inside of the argument.
    """
    at = path.lstrip(".") or "the value"
    if type(was) is not type(now):
        return f"{at} has the type {type(was).__name__}, but would be read back as {type(now).__name__}"
    if lost := _describe_loss(was, now):
        return f"{at} {lost}"
    parts, others = _parts_of(was), _parts_of(now)
    if parts is None or others is None:
        is_same = was == now or (was != was and now != now)  # noqa: PLR0124  # NaN
        return "" if is_same else f"{at} would be read back as another value"
    if len(parts) != len(others):
        return f"{at} has {len(parts)} values, but would be read back with {len(others)} values"
    pairs = zip(parts, others, strict=True)
    differences = (difference(part, other, path + name) for (name, part), (_, other) in pairs)
    return next(filter(None, differences), "")


def _describe_loss(was: object, now: object) -> str:
    """Describe a loss in JSON that comparing the two values does not show. Return "" if there is none.

    The text follows the path of the value, and begins with a verb.
    """
    if isinstance(was, Iterator):
        return "is an iterator, which can be read only once"
    if isinstance(was, datetime | time) and was.tzinfo is not None and was.tzinfo.utcoffset(None) is None:
        return f"is in the time zone {was.tzinfo}, but would be read back with a fixed offset or without a time zone"
    if isinstance(was, deque) and isinstance(now, deque) and was.maxlen != now.maxlen:
        return f"is a deque with maxlen={was.maxlen}, but would be read back as a deque with maxlen={now.maxlen}"
    return ""


def secret_in(value: object, path: str = "") -> str | None:
    """Return the path of the first pydantic secret in a value: "" for the value itself, None if there is no secret."""
    if isinstance(value, Secret | SecretStr | SecretBytes):
        return path
    secrets = (secret_in(part, path + name) for name, part in _parts_of(value) or ())
    return next((each for each in secrets if each is not None), None)


def _parts_of(value: object) -> Parts | None:
    """Return the parts of a container, model or dataclass; None for any other value."""
    if isinstance(value, str | bytes | bytearray | memoryview):
        return None
    if isinstance(value, BaseModel):
        fields = {name: getattr(value, name) for name in type(value).model_fields}
        fields |= (value.__pydantic_extra__ or {}) | (value.__pydantic_private__ or {})
        return [(f".{name}", item) for name, item in fields.items()]
    if dataclasses.is_dataclass(value):
        return [(f".{field.name}", getattr(value, field.name, None)) for field in dataclasses.fields(value)]
    if isinstance(value, Mapping):
        return [(f"[{key!r}]", part) for key, item in value.items() for part in (key, item)]
    if isinstance(value, Set):
        return [("{…}", item) for item in sorted(value, key=lambda each: (hash(each), repr(each)))]
    if isinstance(value, Collection):
        return [(f"[{index}]", item) for index, item in enumerate(value)]
    return None


POSITIONAL_PARAMETERS = 3
"""The number of parameters that every policy receives by position: context, observations and options."""
_CALL_PARAMETERS = frozenset({"self", "observations", "options"})
"""The parameter names of `BoundPolicy.__call__`. No argument of a policy may have one of these names."""


@dataclass(frozen=True)
class PolicySignature:
    """The name, description and parameters of a policy, read by `read_policy`.

    Checks the policy's arguments, and converts them to JSON and back. The attribute `signature` of a BoundPolicy.
    `annotations` are the types of the parameters, `schema` their JSON schema, and `binder` converts the JSON text of an
    option call to arguments, unless `is_open`.
    """

    function_name: str
    description: str
    annotations: Mapping[str, Any]
    schema: Mapping[str, Any]
    binder: Callable[[JSONText], BoundArguments] = field(repr=False)
    required: frozenset[str] = frozenset()
    """The names of the parameters without a default, except the parameters that the library fills in."""
    is_open: bool = False
    """True if the policy has a `**` parameter, so that any argument name is allowed."""
    provide: Callable[[], dict[str, Any]] = field(default=dict, repr=False)
    """Returns the values of parameters that the library fills in, such as a ToolContext."""
    reserved: frozenset[str] = frozenset()
    """Parameter names that the library fills in, such as `observations`. Arguments of these names are refused."""

    def as_option(self, name: str, function: Callable[..., Any]) -> Option:
        """Return an option `name` with this policy's schema. It calls `function` with the validated arguments."""
        option = Option.from_schema(name, self.description, dict(self.schema), function)
        return option.model_copy(update={"binder": self._bind_open if self.is_open else self.binder})

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Validate arguments and return them in a new dict, converted to their parameters' types.

        Arguments of a `**` parameter are not converted, and defaults are not added. Raises PolicyInvalid for arguments
        that are missing, unknown, reserved or of a wrong type. The error lists all of them, cut at 300 characters.
        """
        return self._convert_arguments(
            arguments, lambda adapter, value: adapter.validate_python(value) if adapter else value
        )

    def encode(self, arguments: Mapping[str, Any]) -> str:
        """Return arguments as the text of a JSON object. `arguments` must be the return value of `check` or `decode`.

        Raises PolicyInvalid for an argument that is not JSON, that `decode` would return changed, or that contains a
        secret.
        """
        return (
            "{"
            + ",".join(f"{json.dumps(name)}:{self._encode_argument(name, arguments[name])}" for name in arguments)
            + "}"
        )

    def decode(self, text: str) -> dict[str, Any]:
        """Return the arguments in a JSON text, converted to their parameters' types.

        Raises PolicyInvalid if the text is not a JSON object, and for arguments that are missing, unknown, reserved or
        of a wrong type.
        """
        try:
            arguments = decode_json(text)
        except ValueError:
            arguments = None
        if not isinstance(arguments, dict):
            raise self._wrong_arguments("the arguments are not a JSON object")
        return self._convert_arguments(arguments, _read_again)

    def _convert_arguments(
        self, arguments: Mapping[str, Any], read: Callable[[TypeAdapter[Any] | None, Any], Any]
    ) -> dict[str, Any]:
        misfits = [f"argument {name!r}: missing" for name in sorted(self.required.difference(arguments))]
        known, converted = self._adapters, dict(arguments)
        takes = f"the policy accepts {', '.join(known) or 'no arguments'}"
        for name, value in arguments.items():
            if name not in known and not self.is_open:
                misfits.append(f"argument {name!r}: unknown; {takes}")
            elif name in self.reserved:
                misfits.append(f"argument {name!r}: the library fills in this parameter; rename your argument")
            else:
                try:
                    converted[name] = read(known.get(name), value)
                except (ValidationError, NotJSON) as error:
                    reason = describe_validation_error(error) if isinstance(error, ValidationError) else str(error)
                    misfits.append(f"argument {name!r}: {reason}")
        if misfits:
            raise self._wrong_arguments("; ".join(misfits))
        return converted

    def _wrong_arguments(self, reason: str) -> PolicyInvalid:
        return PolicyInvalid(f"wrong arguments for policy {self.function_name!r}: {one_line(reason, 300)}")

    def _bind_open(self, text: JSONText) -> BoundArguments:
        try:
            return BoundArguments((), self.decode(text))
        except PolicyInvalid as error:
            raise ArgumentsRefused(str(error)) from None

    @cached_property
    def _adapters(self) -> dict[str, TypeAdapter[Any]]:
        return {name: TypeAdapter(annotation) for name, annotation in self.annotations.items()}

    def _encode_argument(self, name: str, value: Any) -> str:
        policy = f"of policy {self.function_name!r}"
        adapter = self._adapters.get(name)
        try:
            dumped = adapter and adapter.dump_json(value, by_alias=True, warnings="error").decode()
            text = encode_json(value) if dumped is None else dumped
            secret = secret_in(value)
            plain = decode_json(text)
            encode_json(plain)
            again = plain if adapter is None else adapter.validate_json(text)
        except (PydanticSerializationError, ValueError, RecursionError) as error:
            reason = describe_validation_error(error) if isinstance(error, ValidationError) else str(error)
            remedy = "annotate the parameter with a type that pydantic knows, or pass plain JSON"
            raise PolicyInvalid(f"argument {name!r} {policy} is not JSON: {one_line(reason, 200)}; {remedy}") from None
        if secret is not None:
            remedy = "pass a name with which the policy looks up the secret where it runs"
            raise PolicyInvalid(
                f"argument {name!r}{secret} {policy} is a secret, and secrets are neither stored nor sent; {remedy}"
            )
        if changed := difference(value, again):
            remedy = "annotate the parameter with the value's own type, or pass plain JSON"
            raise PolicyInvalid(f"argument {name!r} {policy} would change in JSON: {one_line(changed, 200)}; {remedy}")
        return text


def _read_again(adapter: TypeAdapter[Any] | None, value: Any) -> Any:
    # From JSON text, because pydantic then accepts a list for a tuple, and a string for a date.
    text = encode_json(value)
    return adapter.validate_json(text) if adapter else value


def read_policy(policy: Callable[..., Any]) -> PolicySignature:
    """Return the signature of a policy: an async function, method, partial or callable object.

    The result is usually cached for functions, and for the classes of callable objects, because a program may bind all
    its policies for each request. Raises PolicyInvalid if the policy cannot be called, has fewer than three positional
    parameters (for context, observations and options), or neither is or wraps an async function nor is annotated to
    return an awaitable, and for annotations that cannot be resolved or that JSON Schema cannot describe.
    """
    kind: Callable[..., Any] = policy if inspect.isfunction(policy) else type(policy)
    is_plain = kind is policy or inspect.isfunction(getattr(kind, "__call__", None))  # noqa: B004
    if not is_plain or hasattr(policy, "__signature__"):  # a method, a partial, or an object with its own signature
        return _read_signature(policy)
    if kind not in _SIGNATURES:
        _SIGNATURES[kind] = _read_signature(policy)
    return _SIGNATURES[kind]


_SIGNATURES: WeakKeyDictionary[Callable[..., Any], PolicySignature] = WeakKeyDictionary()
"""Function, or class of callable objects → its signature."""


def _read_signature(policy: Callable[..., Any]) -> PolicySignature:
    inner = Signature.unwrap(policy)
    name = getattr(inner, "__name__", None) or type(inner).__name__
    try:
        parameters = list(inspect.signature(policy).parameters.values())
    except (TypeError, ValueError):
        raise PolicyInvalid(f"{one_line(repr(policy), 80)} is not a policy, because it cannot be called") from None
    positional = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    if len(positional) < POSITIONAL_PARAMETERS:
        names = ", ".join(each.name for each in parameters)
        remedy = f"write async def {name}(ctx, observations, options=None, …)"
        raise PolicyInvalid(f"policy {name!r} has too few positional parameters in ({names}); {remedy}")
    if not _is_awaited(policy):
        remedy = f"write async def {name}, or annotate the return type: -> Awaitable[list[Message]]"
        raise PolicyInvalid(f"policy {name!r} is not an async function; {remedy}")
    own = [each for each in parameters if each not in positional[:POSITIONAL_PARAMETERS]]
    return _build_signature(
        policy, name, own, _CALL_PARAMETERS.union(each.name for each in positional[:POSITIONAL_PARAMETERS])
    )


def _is_awaited(policy: Callable[..., Any]) -> bool:
    """Return whether a policy is async, wraps an async function, or is annotated to return an awaitable."""
    inner = Signature.unwrap(policy)
    if Signature.is_asynchronous(inner) or Signature.is_asynchronous(inspect.unwrap(inner)):
        return True
    try:
        returned = _resolve_hints(policy, {"return"}).get("return")
    except NameError:  # the annotation exists only for type checkers
        return False
    kind = get_origin(returned) or returned
    return isinstance(kind, type) and issubclass(kind, Awaitable)


def _resolve_hints(policy: Callable[..., Any], names: Set[str]) -> dict[str, Any]:
    """Return the resolved annotations of the parameters `names`.

    The annotations of other parameters are not resolved, because a context's type may exist for type checkers only.
    """
    function = _function_of(policy)

    def annotated() -> None: ...

    written = inspect.get_annotations(function)
    annotated.__annotations__ = {name: written[name] for name in written if name in names}
    return get_type_hints(annotated, getattr(function, "__globals__", {}), include_extras=True)


def _function_of(policy: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function inside partials and wrappers."""
    inner = Signature.unwrap(policy)
    function: Callable[..., Any] = inner if inspect.isroutine(inner) else type(inner).__call__
    written: Callable[..., Any] = inspect.unwrap(function, stop=lambda each: hasattr(each, "__signature__"))
    return written


def _build_signature(
    policy: Callable[..., Any], name: str, own: list[inspect.Parameter], reserved: frozenset[str]
) -> PolicySignature:
    async def described() -> None: ...

    named = [each for each in own if each.kind is not each.VAR_KEYWORD]
    described.__doc__ = inspect.getdoc(_function_of(policy))
    try:
        resolved = _resolve_hints(policy, {each.name for each in named})
    except NameError as error:
        remedy = "import it, or define it at the module's top level"
        raise PolicyInvalid(f"policy {name!r} has an annotation that cannot be resolved: {error}; {remedy}") from None
    described.__annotations__ = resolved
    described.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]  # read by inspect
    is_open = len(named) < len(own)
    try:
        signature = Signature.of(described, name)
    except OptionInvalid as error:
        raise PolicyInvalid(str(error).replace("option", "policy", 1)) from None
    provided = {each.name for each in signature.provided}
    return PolicySignature(
        name,
        signature.description,
        {name: hint for name, hint in described.__annotations__.items() if name not in provided},
        {**signature.parameters, "additionalProperties": True} if is_open else signature.parameters,
        signature.binder,
        frozenset(each.name for each in named if each.default is each.empty) - provided,
        is_open,
        signature.provide,
        reserved | provided,
    )
