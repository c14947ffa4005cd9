"""JSON values that cannot change.

A value is held as text and seen through an immutable view that is made at first access:

    given value ──encode──▶ JSONText (compact; keys sorted for values, kept for documents)
    JSONText ──view──▶ str, int, float, bool, None, FrozenList, FrozenDict

Values (`arguments`, `result`) are canonical: equal values have equal text. Documents (a provider's own
block, a schema) keep the order of their keys. Non-finite numbers and lone surrogates are refused (D-01), and so is
what is nested deeper than 100 levels: a view of it could not be made.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from json.encoder import c_make_encoder, encode_basestring  # type: ignore[attr-defined]
from typing import Annotated, Any, NoReturn, Self, TypeAlias

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema
from pydantic_core import PydanticSerializationError, from_json, to_jsonable_python

from sabir.errors import NotJSON

JSONValue: TypeAlias = Any
"""Any JSON value: its type is known only to whoever made it, hence `Any`."""

DEEPEST = 100
"""Levels of arrays and objects that a value may have."""
DEEPEST_TEXT = 120
"""Levels that a text may have: a body wraps values of the deepest kind in some levels of its own."""

_SHALLOW = 2 * DEEPEST
"""A text of so many characters is not nested deeper."""

_SHOWN = 200
"""How much of a text is looked at to show its beginning."""
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"')
_NO_BRACKETS = re.compile(r"[^\[\]]++")
_ONE_KIND = str.maketrans("{}", "[]")


def _refuse(self: object, *_: object, **__: object) -> NoReturn:
    raise TypeError(f"{type(self).__name__} is immutable; make a changed copy instead")


class FrozenDict(dict[str, Any]):
    """A JSON object that refuses every change; it compares equal to the same plain dict."""

    __slots__ = ()

    def __new__(cls, items: Mapping[str, Any] | Iterable[tuple[str, Any]] = ()) -> Self:
        """Filled here, so that a second `__init__` finds nothing to do."""
        view = super().__new__(cls)
        dict.update(view, items)
        return view

    def __init__(self, items: Mapping[str, Any] | Iterable[tuple[str, Any]] = ()) -> None:
        """Nothing: `__new__` filled it."""

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        """Equal objects hash alike."""
        return hash(frozenset(self.items()))

    def __copy__(self) -> "FrozenDict":
        """Itself: there is nothing to copy for."""
        return self

    def __deepcopy__(self, memo: object) -> "FrozenDict":
        """Itself: there is nothing to copy for."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by way of a plain dict."""
        return freeze, (dict(self),)


class FrozenList(list[Any]):
    """A JSON array that refuses every change; it compares equal to the same plain list."""

    __slots__ = ()

    def __new__(cls, items: Iterable[Any] = ()) -> Self:
        """Filled here, so that a second `__init__` finds nothing to do."""
        view = super().__new__(cls)
        list.extend(view, items)
        return view

    def __init__(self, items: Iterable[Any] = ()) -> None:
        """Nothing: `__new__` filled it."""

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        """Equal arrays hash alike."""
        return hash(tuple(self))

    def __copy__(self) -> "FrozenList":
        """Itself: there is nothing to copy for."""
        return self

    def __deepcopy__(self, memo: object) -> "FrozenList":
        """Itself: there is nothing to copy for."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by way of a plain list."""
        return freeze, (list(self),)


def freeze(value: JSONValue) -> JSONValue:
    """The immutable view of a JSON value; a view is returned as it is."""
    # Loops, where comprehensions would put more frames on the stack for each level.
    if type(value) is dict:
        fields = {}
        for key, item in value.items():
            fields[key] = freeze(item)
        return FrozenDict(fields)
    if type(value) is list or type(value) is tuple:
        items = []
        for item in value:
            items.append(freeze(item))
        return FrozenList(items)
    return value


class JSONText(str):
    """JSON text of one value. A plain `str` in its place is the JSON string of those characters."""

    __slots__ = ()

    def view(self) -> JSONValue:
        """The immutable view of the value."""
        return freeze(from_json(self))


_Encoder: TypeAlias = Callable[[JSONValue, bool], Iterable[str]]
"""Takes a value; gives the pieces of its text."""


def _encoder(*, sort_keys: bool) -> _Encoder:
    """json.dumps with one encoder for all calls, which looks for no loops: a loop is too deep."""
    if c_make_encoder is None:  # an interpreter without json's encoder in C
        return json.JSONEncoder(**_WRITING, sort_keys=sort_keys, check_circular=False).iterencode
    default = json.JSONEncoder().default
    encode: _Encoder = c_make_encoder(None, default, encode_basestring, None, ":", ",", sort_keys, False, False)
    return encode


_WRITING: dict[str, Any] = {"ensure_ascii": False, "allow_nan": False, "separators": (",", ":")}
_AS_GIVEN, _SORTED = _encoder(sort_keys=False), _encoder(sort_keys=True)


def encode_json(value: JSONValue, *, sort_keys: bool = False) -> JSONText:
    """Compact JSON text of a value; pydantic models, dates, bytes, tuples, sets become JSON first.

    Raises NotJSON in one line for what JSON cannot hold.
    """
    if type(value) is JSONText:
        return value
    encode = _SORTED if sort_keys else _AS_GIVEN
    try:
        text = "".join(encode(value, False))
        if not text.isascii():
            text.encode()
    except TypeError:
        return _encode_foreign(value, encode)
    except (ValueError, RecursionError) as error:
        raise NotJSON(f"{_shorten(value)} is no JSON value: {_reason(error)}") from None
    return JSONText(text) if len(text) <= _SHALLOW else _checked(text, value)


def _encode_foreign(value: JSONValue, encode: _Encoder) -> JSONText:
    try:
        text = "".join(encode(to_jsonable_python(value, inf_nan_mode="constants"), False))
        text.encode()
    except (PydanticSerializationError, TypeError, ValueError, RecursionError) as error:
        raise NotJSON(f"{_shorten(value)} is no JSON value: {_reason(error)}") from None
    return _checked(text, value)


def _checked(text: str, value: JSONValue) -> JSONText:
    if _is_deeper(text, DEEPEST):
        raise NotJSON(f"{_shorten(value)} is no JSON value: {_too_deep(DEEPEST)}")
    return JSONText(text)


def _is_deeper(text: str, levels: int) -> bool:
    """Whether JSON text is nested deeper: each round takes the innermost brackets away."""
    if text.count("[") + text.count("{") <= levels:
        return False
    brackets = _NO_BRACKETS.sub("", _STRING.sub("", text).translate(_ONE_KIND))
    for _ in range(levels):
        if not brackets:
            return False
        brackets = brackets.replace("[]", "")
    return bool(brackets)


def _too_deep(levels: int) -> str:
    return f"it is nested deeper than {levels} levels"


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return _too_deep(DEEPEST)
    if isinstance(error, UnicodeEncodeError):
        return f"lone surrogate U+{ord(error.object[error.start]):04X}"
    if "Out of range float" in str(error):
        return "numbers must be finite"
    return str(error).split("\n")[0] or type(error).__name__


def _shorten(value: object) -> str:
    if isinstance(value, str | bytes):
        value = value[:_SHOWN]
    try:
        text = " ".join(ascii(value).split())
    except Exception:  # a value too deep to be shown, or one whose own repr fails
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def parse_json(text: str | bytes) -> JSONValue:
    """What decode_json gives, for a text of valid Unicode; ValueError for any other.

    A number beyond all floats is infinite here: `encode_json`, through which all values of models go, refuses it, as it
    refuses what is too deep.
    """
    try:
        return from_json(text, allow_inf_nan=False)
    except TypeError as error:  # a str that holds half a character
        raise ValueError(str(error)) from None


def decode_json(text: str | bytes) -> JSONValue:
    """Parse strict JSON text into plain Python values; NotJSON for anything else, non-finite numbers included."""
    try:
        decoded = text if isinstance(text, str) else text.decode(json.detect_encoding(text), "surrogatepass")
        value = DECODER.decode(decoded)
        if not _is_deeper(decoded, DEEPEST_TEXT):
            return value
        reason = _too_deep(DEEPEST_TEXT)
    except RecursionError:
        reason = _too_deep(DEEPEST_TEXT)
    except ValueError as error:
        reason = _reason(error)
    raise NotJSON(f"{_shorten(text)} is no JSON text: {reason}") from None


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is no finite number")
    return number


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)
"""Of strict JSON: non-finite numbers are ValueErrors."""


def _encode_value(value: JSONValue) -> JSONText:
    return encode_json(value, sort_keys=True)


def _encode_object(value: JSONValue) -> JSONText:
    return _object(encode_json(value, sort_keys=True), value)


def _encode_document(value: JSONValue) -> JSONText:
    return encode_json(value)


def _encode_object_document(value: JSONValue) -> JSONText:
    return _object(encode_json(value), value)


def _object(text: JSONText, value: JSONValue) -> JSONText:
    if not text.startswith("{"):
        raise ValueError(f"expected a JSON object, got {_shorten(value)}")
    return text


_as_json = PlainSerializer(lambda text: None if text is None else from_json(text), return_type=Any)

JSONValueField = Annotated[Any, PlainValidator(_encode_value), _as_json, WithJsonSchema({})]
"""Takes any JSON value (hence Any), held as canonical JSONText."""
JSONObjectField = Annotated[Any, PlainValidator(_encode_object), _as_json, WithJsonSchema({"type": "object"})]
"""Takes a JSON object, held as canonical JSONText."""
JSONDocumentField = Annotated[Any, PlainValidator(_encode_document), _as_json, WithJsonSchema({})]
"""Takes any JSON value, held as JSONText with its keys in the order given."""
JSONObjectDocumentField = Annotated[
    Any, PlainValidator(_encode_object_document), _as_json, WithJsonSchema({"type": "object"})
]
"""Takes a JSON object, held as JSONText with its keys in the order given."""
