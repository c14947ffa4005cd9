"""JSON values that cannot change.

A value is stored as text and read through an immutable view, which is created at each access. Changing the view raises
TypeError, and a change forced by `dict.update(view, …)` affects only that view.

    any JSON value ──encode──▶ JSONText (compact; results have sorted keys, all others their original order)
    JSONText ──view──▶ str, int, float, bool, None, FrozenList, FrozenDict
    field_json: JSONText ──JSONView, ObjectView──▶ a property `field` of the model, which returns the view

Results have sorted keys, so their text does not depend on the order of the keys. Arguments of calls and documents (a
provider's own block, a schema) keep the order of their keys. Non-finite numbers, lone surrogates and values of more
than 100 nested levels are refused.
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
"""The greatest depth to which arrays and objects may be nested in a value."""
DEEPEST_TEXT = 120
"""The greatest depth to which arrays and objects may be nested in a text. A request's body contains values of up to
DEEPEST levels inside some levels of its own.
"""

_SHALLOW = 2 * DEEPEST
"""A text of at most this many characters cannot be nested deeper than DEEPEST."""

_QUOTED = 200
"""The number of characters that are read to show the beginning of a text."""
_TO_COMMA = re.compile(rb'[^",\[{]*+(?:"[^"\\]*+(?:\\(?:.|\Z)[^"\\]*+)*+(?:"|\Z)[^",\[{]*+)*+(?:[,\[{]|\Z)', re.DOTALL)
"""JSON text up to the next comma or opening bracket outside strings, or up to its end: matches leave no gap."""
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"')
_NO_BRACKETS = re.compile(r"[^\[\]]++")
_ONE_KIND = str.maketrans("{}", "[]")
"""Replaces braces by brackets, because only the depth of the nesting counts."""


def _refuse_change(self: object, *_: object, **__: object) -> NoReturn:
    """Raise TypeError, because the value is immutable."""
    raise TypeError(f"{type(self).__name__} is immutable; make a changed copy instead")


class _View:
    """The base class of FrozenDict and FrozenList. `__new__` adds the items, so that calling `__init__` changes
    nothing.
    """

    __slots__ = ()

    def __init__(self, items: object = ()) -> None:
        """Do nothing; `__new__` has added the items."""

    __setitem__ = __delitem__ = clear = pop = _refuse_change

    def __copy__(self) -> Self:
        """Return the object itself, because it is immutable."""
        return self

    def __deepcopy__(self, memo: object) -> Self:
        """Return the object itself, because it is immutable."""
        return self


class FrozenDict(_View, dict[str, Any]):
    """A dict with string keys that cannot be changed, usually a JSON object. Equal to a dict with the same content.

    Changing a FrozenDict raises TypeError. The constructor does not freeze the values.
    """

    __slots__ = ()

    def __new__(cls, items: Mapping[str, Any] | Iterable[tuple[str, Any]] = ()) -> Self:
        """Create a FrozenDict with these items."""
        view = super().__new__(cls)
        dict.update(view, items)
        return view

    __ior__ = popitem = setdefault = update = _refuse_change

    def __hash__(self) -> int:  # type: ignore[override]
        """Return a hash that is the same for equal objects. Raises TypeError if a value is not hashable."""
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a plain dict, which `freeze` converts back."""
        return freeze, (dict(self),)


class FrozenList(_View, list[Any]):
    """A list that cannot be changed, usually a JSON array. Equal to a list with the same items. Changing it raises
    TypeError.
    """

    __slots__ = ()

    def __new__(cls, items: Iterable[Any] = ()) -> Self:
        """Create a FrozenList with these items."""
        view = super().__new__(cls)
        list.extend(view, items)
        return view

    __iadd__ = __imul__ = append = extend = insert = remove = reverse = sort = _refuse_change

    def __hash__(self) -> int:  # type: ignore[override]
        """Return a hash that is the same for equal arrays. Raises TypeError if an item is not hashable."""
        return hash(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a plain list, which `freeze` converts back."""
        return freeze, (list(self),)


def freeze(value: JSONValue) -> JSONValue:
    """Return a JSON value with dicts as FrozenDict, and lists and tuples as FrozenList, at all levels.

    A FrozenDict, a FrozenList and any other value is returned unchanged.
    """
    # Loops, because comprehensions would put more frames on the stack for each level. Most values are strings and
    # numbers, so a call for each of them would take most of the time.
    if type(value) is dict:
        fields: FrozenDict = _new_dict(FrozenDict)
        for key, item in value.items():
            _set_item(fields, key, freeze(item) if type(item) in _MUTABLE else item)
        return fields
    if type(value) is list or type(value) is tuple:
        items: FrozenList = _new_list(FrozenList)
        for item in value:
            _append(items, freeze(item) if type(item) in _MUTABLE else item)
        return items
    return value


_MUTABLE = frozenset((dict, list, tuple))
"""The types that `freeze` converts."""
_new_dict, _set_item, _new_list, _append = dict.__new__, dict.__setitem__, list.__new__, list.append


class JSONText(str):
    """The JSON text of one value, as a str. Created by `encode_json`, which returns a JSONText unchanged."""

    __slots__ = ()

    def view(self) -> JSONValue:
        """Parse the text and return the value, with immutable lists and dicts. A new value at each call."""
        return FrozenDict() if self == "{}" else freeze(from_json(self))


def object_view(text: JSONText) -> FrozenDict:
    """Parse the JSON text of an object and return it as an immutable mapping."""
    view: FrozenDict = text.view()
    return view


class JSONView(property):
    """A property that parses a JSONText field of a model at each access. The value is immutable; None for a field that
    is None.

    `field` is the field's name, `meaning` the property's docstring. `absent` creates the value for a field that is
    None.
    """

    def __init__(self, field: str, meaning: str, absent: Callable[[], JSONValue] = lambda: None) -> None:
        def read(model: object) -> JSONValue:
            text: JSONText | None = getattr(model, field)
            return absent() if text is None else text.view()

        super().__init__(read)
        self.__doc__ = meaning


class ObjectView(JSONView):
    """A JSONView of a field that contains a JSON object: an immutable mapping, empty if the field is None."""

    def __init__(self, field: str, meaning: str) -> None:
        super().__init__(field, meaning, absent=FrozenDict)

    if TYPE_CHECKING:

        def __get__(self, model: object, kind: type | None = None, /) -> FrozenDict: ...  # type: ignore[override]


def _encoder(*, sort_keys: bool) -> Callable[[JSONValue], str]:
    """Return a function that encodes compact JSON, faster than `json.dumps`.

    The function does not look for circular references, because they exceed Python's recursion limit anyway.
    """
    layout: dict[str, Any] = {"ensure_ascii": False, "allow_nan": False, "separators": (",", ":")}
    encoder = json.JSONEncoder(**layout, sort_keys=sort_keys, check_circular=False)
    if c_make_encoder is None:  # an interpreter without json's encoder in C
        return encoder.encode
    pieces = c_make_encoder(None, encoder.default, encode_basestring, None, ":", ",", sort_keys, False, False)
    return lambda value: "".join(pieces(value, 0))


_UNSORTED, _SORTED = _encoder(sort_keys=False), _encoder(sort_keys=True)


def encode_json(value: JSONValue, *, sort_keys: bool = False) -> JSONText:
    """Return compact JSON text of a value. With `sort_keys`, the keys of objects are sorted at all levels.

    A JSONText is returned unchanged, also with `sort_keys`. Pydantic models, dates, bytes, tuples and sets are
    converted to JSON first. Raises NotJSON for a value that JSON cannot represent, such as NaN or a lone surrogate, and
    for more than 100 nested levels.
    """
    if type(value) is JSONText:
        return value
    encode = _SORTED if sort_keys else _UNSORTED
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
        raise NotJSON(f"{_shorten(value)} is not a JSON value: {_describe_error(error, DEEPEST)}") from None
    return JSONText(text)


def _is_deeper(text: str, levels: int) -> bool:
    """Return whether JSON text has more than `levels` nested arrays and objects."""
    if text.count("[") + text.count("{") <= levels:
        return False
    brackets = _NO_BRACKETS.sub("", _STRING.sub("", text).translate(_ONE_KIND))
    for _ in range(levels):  # each round removes the innermost brackets
        brackets = brackets.replace("[]", "")
    return bool(brackets)


def _describe_error(error: Exception, levels: int) -> str:
    """Return the end of a NotJSON message: why a value is not JSON."""
    if isinstance(error, RecursionError):
        return f"it is nested deeper than {levels} levels"
    if isinstance(error, UnicodeEncodeError):
        return f"lone surrogate U+{ord(error.object[error.start]):04X}"
    if "Out of range float" in str(error):
        return "numbers must be finite"
    return str(error).split("\n")[0] or type(error).__name__


def _shorten(value: object) -> str:
    """Return the beginning of a value's repr for an error message."""
    if isinstance(value, str | bytes):
        value = value[:_QUOTED]
    try:
        return one_line(ascii(value), 60)
    except Exception:  # the value is nested too deep, or its own repr fails
        return f"a value of type {type(value).__name__}"


def parse_json(text: str | bytes) -> JSONValue:
    """Parse JSON text faster than `decode_json`, and return plain Python values.

    Raises ValueError for invalid JSON, invalid Unicode and more than about 200 nested levels. A number too large for a
    float becomes infinite, and more than 100 nested levels are accepted; `encode_json` refuses both.
    """
    try:
        return from_json(text, allow_inf_nan=False)
    except TypeError as error:  # a str with a lone surrogate
        raise ValueError(str(error)) from None


def decode_json(text: str | bytes) -> JSONValue:
    """Parse JSON text and return plain Python values. Bytes may be UTF-8, UTF-16 or UTF-32; lone surrogates are
    accepted.

    Raises NotJSON for invalid JSON, numbers that are not finite, and more than 120 nested levels.
    """
    try:
        decoded = text if isinstance(text, str) else text.decode(json.detect_encoding(text), "surrogatepass")
        value = DECODER.decode(decoded)
        if _is_deeper(decoded, DEEPEST_TEXT):
            raise RecursionError
    except (ValueError, RecursionError) as error:
        raise NotJSON(f"{_shorten(text)} is not JSON text: {_describe_error(error, DEEPEST_TEXT)}") from None
    return value


def has_more_values(text: str | bytes, most: int) -> bool:
    """Return whether JSON text has more than `most` values, as `count_values` counts, without parsing the text. For
    limits on responses of a server.
    """
    if len(text) <= most:
        return False
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if sum(map(data.count, (b",", b"[", b"{"))) <= most:  # an upper limit: commas in strings are counted
        return False
    return count_values(data, most) > most


def count_values(text: str | bytes, most: int) -> int:
    """Return an estimate of the number of values in JSON text, without parsing it; `most + 1` if it is over `most`.

    The estimate is one more than the number of values, and one more again for each empty array or object.
    """
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return sum(1 for _ in islice(_TO_COMMA.finditer(data), most + 1))


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a finite number")
    return number


DECODER = json.JSONDecoder(parse_constant=_finite, parse_float=_finite)
"""A JSON decoder that raises ValueError for numbers that are not finite, such as NaN and 1e999."""


def _encode_object(value: JSONValue, *, sort_keys: bool = False) -> JSONText:
    text = encode_json(value, sort_keys=sort_keys)
    if not text.startswith("{"):
        raise ValueError(f"expected a JSON object, got {_shorten(value)}")
    return text


_as_json = PlainSerializer(lambda text: None if text is None else from_json(text), return_type=Any)

_sorted_value, _sorted_object = partial(encode_json, sort_keys=True), partial(_encode_object, sort_keys=True)
_any_schema, _object_schema = WithJsonSchema({}), WithJsonSchema({"type": "object"})

JSONValueField = Annotated[Any, PlainValidator(_sorted_value), _as_json, _any_schema]
"""The type of a pydantic field that accepts any JSON value (hence Any) and stores it as JSONText with sorted keys."""
JSONObjectField = Annotated[Any, PlainValidator(_sorted_object), _as_json, _object_schema]
"""The type of a pydantic field that accepts a JSON object and stores it as JSONText with sorted keys."""
JSONDocumentField = Annotated[Any, PlainValidator(encode_json), _as_json, _any_schema]
"""The type of a pydantic field that accepts any JSON value and stores it as JSONText. The order of the keys is
preserved.
"""
JSONObjectDocumentField = Annotated[Any, PlainValidator(_encode_object), _as_json, _object_schema]
"""The type of a pydantic field that accepts a JSON object and stores it as JSONText. The order of the keys is
preserved.
"""
