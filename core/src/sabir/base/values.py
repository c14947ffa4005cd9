"""JSON values that cannot change.

A value is held as text and read through an immutable view, made anew at each access: the view refuses every change, and
a change forced by `dict.update(view, …)` reaches that view alone.

    given value ──encode──▶ JSONText (compact; keys sorted for values, kept for documents)
    JSONText ──view──▶ str, int, float, bool, None, FrozenList, FrozenDict
    field_json: JSONText ──JSONView, ObjectView──▶ a property `field` of the model, which shows it so

Values (`arguments`, `result`) are canonical: equal values have equal text. Documents (a provider's own
block, a schema) keep the order of their keys. Non-finite numbers and lone surrogates are refused, and so are values
nested deeper than 100 levels, because no view of them could be made.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import islice
from json.encoder import c_make_encoder, encode_basestring  # type: ignore[attr-defined]
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, Self, TypeAlias

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema
from pydantic_core import from_json, to_jsonable_python

from sabir.base.errors import NotJSON, one_line

JSONValue: TypeAlias = Any
"""Any JSON value: None, bool, int, float, str, list or dict. Only the code that created the value knows its type, hence
Any.
"""

DEEPEST = 100
"""The most levels of arrays and objects in a value."""
DEEPEST_TEXT = 120
"""The most levels in a text: a body wraps values, which may have DEEPEST levels, in some levels of its own."""

_SHALLOW = 2 * DEEPEST
"""A text of at most so many characters cannot be nested deeper than DEEPEST."""

_SHOWN = 200
"""How many characters of a text are read to show its beginning."""
_TO_SEPARATOR = re.compile(
    rb'[^",\[{]*+(?:"[^"\\]*+(?:\\(?:.|\Z)[^"\\]*+)*+(?:"|\Z)[^",\[{]*+)*+(?:[,\[{]|\Z)', re.DOTALL
)
"""JSON text up to the next comma or opening bracket outside strings, or up to its end: matches leave no gap."""
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"')
_NO_BRACKETS = re.compile(r"[^\[\]]++")
_ONE_KIND = str.maketrans("{}", "[]")


def _refuse(self: object, *_: object, **__: object) -> NoReturn:
    """Raise TypeError, because the value is immutable."""
    raise TypeError(f"{type(self).__name__} is immutable; make a changed copy instead")


class _View:
    """The base of both immutable containers. `__new__` fills them, so that a second `__init__` changes nothing."""

    __slots__ = ()

    def __init__(self, items: object = ()) -> None:
        """Do nothing; `__new__` has put the items in."""

    __setitem__ = __delitem__ = clear = pop = _refuse

    def __copy__(self) -> Self:
        """The view itself: an immutable value needs no copy."""
        return self

    def __deepcopy__(self, memo: object) -> Self:
        """The view itself: an immutable value needs no copy."""
        return self


class FrozenDict(_View, dict[str, Any]):
    """A JSON object, or any mapping with string keys, that cannot be changed. Equal to a dict with the same content.
    Changing it raises TypeError.
    """

    __slots__ = ()

    def __new__(cls, items: Mapping[str, Any] | Iterable[tuple[str, Any]] = ()) -> Self:
        """A new FrozenDict that holds the items."""
        view = super().__new__(cls)
        dict.update(view, items)
        return view

    __ior__ = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        """Equal objects hash alike."""
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by way of a plain dict."""
        return freeze, (dict(self),)


class FrozenList(_View, list[Any]):
    """A JSON array that refuses every change; it compares equal to the same plain list."""

    __slots__ = ()

    def __new__(cls, items: Iterable[Any] = ()) -> Self:
        """A new FrozenList that holds the items."""
        view = super().__new__(cls)
        list.extend(view, items)
        return view

    __iadd__ = __imul__ = append = extend = insert = remove = reverse = sort = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        """Equal arrays hash alike."""
        return hash(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by way of a plain list."""
        return freeze, (list(self),)


def freeze(value: JSONValue) -> JSONValue:
    """The immutable view of a JSON value; a view is returned as it is."""
    # Loops, because comprehensions would put more frames on the stack for each level.
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
    """The JSON text of one value, as a str. Returned by `encode_json`, which does not encode a JSONText again."""

    __slots__ = ()

    def view(self) -> JSONValue:
        """Return the value, with immutable lists and dicts."""
        return freeze(from_json(self))


def object_view(text: JSONText) -> FrozenDict:
    """The immutable view of a JSON object."""
    view: FrozenDict = text.view()
    return view


class JSONView(property):
    """Shows the JSON text of a model's field as an immutable value; None if the field is None."""

    def __init__(self, field: str, meaning: str, absent: Callable[[], JSONValue] = lambda: None) -> None:
        def read(model: object) -> JSONValue:
            text: JSONText | None = getattr(model, field)
            return absent() if text is None else text.view()

        super().__init__(read)
        self.__doc__ = meaning


class ObjectView(JSONView):
    """Shows the JSON object of a model's field as an immutable mapping; an empty one if the field is None."""

    def __init__(self, field: str, meaning: str) -> None:
        super().__init__(field, meaning, absent=FrozenDict)

    if TYPE_CHECKING:

        def __get__(self, model: object, kind: type | None = None, /) -> FrozenDict: ...  # type: ignore[override]


def _encoder(*, sort_keys: bool) -> Callable[[JSONValue], str]:
    """What json.dumps does, by one encoder for all calls, which looks for no loops: a loop is too deep."""
    written: dict[str, Any] = {"ensure_ascii": False, "allow_nan": False, "separators": (",", ":")}
    encoder = json.JSONEncoder(**written, sort_keys=sort_keys, check_circular=False)
    if c_make_encoder is None:  # an interpreter without json's encoder in C
        return encoder.encode
    pieces = c_make_encoder(None, encoder.default, encode_basestring, None, ":", ",", sort_keys, False, False)
    return lambda value: "".join(pieces(value, 0))


_AS_GIVEN, _SORTED = _encoder(sort_keys=False), _encoder(sort_keys=True)


def encode_json(value: JSONValue, *, sort_keys: bool = False) -> JSONText:
    """Return compact JSON text of a value. `sort_keys` sorts the keys of objects.

    Pydantic models, dates, bytes, tuples and sets are converted to JSON first. Raises NotJSON for a value that JSON
    cannot represent, or with more than 100 nested levels.
    """
    if type(value) is JSONText:
        return value
    encode = _SORTED if sort_keys else _AS_GIVEN
    try:
        try:
            text = encode(value)
        except TypeError:
            text = encode(to_jsonable_python(value, inf_nan_mode="constants"))
        if not text.isascii():
            text.encode()
        if len(text) > _SHALLOW and _is_deeper(text, DEEPEST):
            raise RecursionError
    except (TypeError, ValueError, RecursionError) as error:
        raise NotJSON(f"{_shorten(value)} is not a JSON value: {_reason(error, DEEPEST)}") from None
    return JSONText(text)


def _is_deeper(text: str, levels: int) -> bool:
    """Whether JSON text is nested deeper than `levels`: each round removes the innermost brackets."""
    if text.count("[") + text.count("{") <= levels:
        return False
    brackets = _NO_BRACKETS.sub("", _STRING.sub("", text).translate(_ONE_KIND))
    for _ in range(levels):
        brackets = brackets.replace("[]", "")
    return bool(brackets)


def _reason(error: Exception, levels: int) -> str:
    if isinstance(error, RecursionError):
        return f"it is nested deeper than {levels} levels"
    if isinstance(error, UnicodeEncodeError):
        return f"lone surrogate U+{ord(error.object[error.start]):04X}"
    if "Out of range float" in str(error):
        return "numbers must be finite"
    return str(error).split("\n")[0] or type(error).__name__


def _shorten(value: object) -> str:
    if isinstance(value, str | bytes):
        value = value[:_SHOWN]
    try:
        return one_line(ascii(value), 60)
    except Exception:  # a value too deep to be shown, or one whose own repr fails
        return f"a value of type {type(value).__name__}"


def parse_json(text: str | bytes) -> JSONValue:
    """Plain Python values, as decode_json gives, for a text of valid Unicode; raises ValueError for any other text.

    A number beyond all floats is infinite here: `encode_json`, through which all values of models go, refuses it, as it
    refuses a value that is nested too deep.
    """
    try:
        return from_json(text, allow_inf_nan=False)
    except TypeError as error:  # a str that holds a lone surrogate
        raise ValueError(str(error)) from None


def decode_json(text: str | bytes) -> JSONValue:
    """Parse JSON text and return plain Python values. Raises NotJSON for invalid JSON, numbers that are not finite, and
    more than 120 nested levels.
    """
    try:
        decoded = text if isinstance(text, str) else text.decode(json.detect_encoding(text), "surrogatepass")
        value = DECODER.decode(decoded)
        if _is_deeper(decoded, DEEPEST_TEXT):
            raise RecursionError
    except (ValueError, RecursionError) as error:
        raise NotJSON(f"{_shorten(text)} is not JSON text: {_reason(error, DEEPEST_TEXT)}") from None
    return value


def has_more_values(text: str | bytes, most: int) -> bool:
    """Return whether JSON text has more than `most` values, without parsing it. For limits on answers from a server."""
    if len(text) <= most:
        return False
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if sum(map(data.count, (b",", b"[", b"{"))) <= most:  # an upper limit: commas in strings are counted
        return False
    return count_values(data, most) > most


def count_values(text: str | bytes, most: int) -> int:
    """Return the number of values in JSON text, without parsing it; `most + 1` if there are more than `most`.

    The number is an estimate: an empty array or object counts as two values.
    """
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return sum(1 for _ in islice(_TO_SEPARATOR.finditer(data), most + 1))


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a finite number")
    return number


DECODER = json.JSONDecoder(parse_constant=_finite, parse_float=_finite)
"""Decodes strict JSON; raises ValueError for a number that is not finite."""


def _encode_object(value: JSONValue, *, sort_keys: bool = False) -> JSONText:
    text = encode_json(value, sort_keys=sort_keys)
    if not text.startswith("{"):
        raise ValueError(f"expected a JSON object, got {_shorten(value)}")
    return text


_as_json = PlainSerializer(lambda text: None if text is None else from_json(text), return_type=Any)

_value, _object = partial(encode_json, sort_keys=True), partial(_encode_object, sort_keys=True)
_any_schema, _object_schema = WithJsonSchema({}), WithJsonSchema({"type": "object"})

JSONValueField = Annotated[Any, PlainValidator(_value), _as_json, _any_schema]
"""A field that takes any JSON value (hence Any) and holds it as canonical JSONText."""
JSONObjectField = Annotated[Any, PlainValidator(_object), _as_json, _object_schema]
"""A field that takes a JSON object and holds it as canonical JSONText."""
JSONDocumentField = Annotated[Any, PlainValidator(encode_json), _as_json, _any_schema]
"""A field that takes any JSON value and holds it as JSONText with its keys in the order given."""
JSONObjectDocumentField = Annotated[Any, PlainValidator(_encode_object), _as_json, _object_schema]
"""The type of a pydantic field that accepts a JSON object and stores it as JSONText. The order of the keys is
preserved.
"""
