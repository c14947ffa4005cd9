"""An option is read from a signature, a model or a schema; arguments are validated before a function sees them."""

import enum
import functools
import warnings
from collections.abc import AsyncIterator, Iterator
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, RootModel
from sabir.base.models import PlainSchema
from sabir.errors import OptionInvalid
from sabir.options.option import Option, option

from tests.core.support import option_call as call
from tests.core.support import raises_line


class Unit(enum.Enum):
    CELSIUS = "C"
    FAHRENHEIT = "F"


class Place(BaseModel):
    """Somewhere.

    On earth.
    """

    city: str = Field(description="Its name.")
    country: str | None = None


def test_a_typed_function_says_its_name_description_and_parameters() -> None:
    """UP-31: the schema comes from pydantic, the description is the docstring's first paragraph."""

    @option
    def weather(
        place: Place, unit: Unit = Unit.CELSIUS, days: Annotated[int, Field(ge=1, description="Ahead.")] = 1
    ) -> str:
        """Current weather
        in a place.

        Never wrong.
        """
        return "rain"

    assert weather.name == "weather"
    assert weather.description == "Current weather in a place."
    assert weather.parameters == {
        "type": "object",
        "properties": {
            "place": {"$ref": "#/$defs/Place"},
            "unit": {"$ref": "#/$defs/Unit", "default": "C"},
            "days": {"type": "integer", "minimum": 1, "default": 1, "description": "Ahead."},
        },
        "required": ["place"],
        "additionalProperties": False,
        "$defs": {
            "Place": {
                "type": "object",
                "title": "Place",
                "description": "Somewhere.\n\nOn earth.",
                "properties": {
                    "city": {"type": "string", "description": "Its name."},
                    "country": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
                },
                "required": ["city"],
            },
            "Unit": {"enum": ["C", "F"], "title": "Unit", "type": "string"},
        },
    }


SECTION = """Search.

    Args:
        query: What to look for,
            in words.
        limit (int): How many.

    Returns:
        hits: all.

    Example:
        query: rain
        limit: 2
    """
FIELDS = """Search.

    :param query: What to look for,
        in words.
    :param int limit: How many.
    :returns: all
    """


@pytest.mark.parametrize("documentation", [SECTION, FIELDS, SECTION.replace("limit (int): How many.", "")])
def test_a_docstring_describes_parameters(documentation: str) -> None:
    """Both usual forms are read; what follows them is not: a name in an example is no description."""

    def search(query: str, limit: int = 3) -> list[str]:
        return []

    search.__doc__ = documentation
    described = {"description": "How many."} if "How many" in documentation else {}

    assert Option.from_function(search).parameters["properties"] == {
        "query": {"type": "string", "description": "What to look for, in words."},
        "limit": {"type": "integer", "default": 3, **described},
    }


def test_a_field_outranks_the_docstring_and_parameters_may_have_any_name() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        @option
        def odd(
            schema: Annotated[int, Field(description="Words.")], copy: int, model_dump: int, json: int, self_: int = 0,
            _hidden: int = 1, kind: str = Field("all", description="Which."),
        ) -> int:  # fmt: skip
            """Odd.

            Args:
                schema: something else
            """
            return schema + copy + model_dump + json + self_ + _hidden

    assert odd.parameters["properties"]["schema"]["description"] == "Words."
    assert odd.parameters["properties"]["kind"] == {"type": "string", "default": "all", "description": "Which."}
    assert odd.parameters["required"] == ["schema", "copy", "model_dump", "json"]
    result = odd.answer_sync(call("odd", {"schema": 1, "copy": 2, "model_dump": 3, "json": 4, "_hidden": 5})).result
    assert result is not None
    assert result.result == 15


def test_a_decorated_function_is_still_called_as_it_was_written() -> None:
    """`Option.__call__` adds no validation, no conversion; the executor's own name is no option's (PJ-06)."""

    @option(name="find", description="Finds.")
    def runtime(query: str, limit: int = 3) -> tuple[Any, ...]:
        return query, limit

    assert runtime("x", limit="many") == ("x", "many")  # type: ignore[arg-type]
    assert (runtime.name, runtime.description) == ("find", "Finds.")
    with pytest.raises(OptionInvalid, match=r"^option 'runtime': .*reserved.*sabir.option\(name='my_runtime'\)$"):
        option(runtime.function)  # type: ignore[arg-type]


def test_arguments_reach_the_function_as_the_types_of_its_signature() -> None:
    seen: list[Any] = []

    @option
    def book(
        place: Place, unit: Unit, /, day: date, tags: set[str], *, kind: Literal["a", "b"], note: str = "none"
    ) -> None:
        seen.extend([place, unit, day, tags, kind, note])

    arguments = {"unit": "F", "place": {"city": "Oslo"}, "day": "2026-11-21", "tags": ["x", "x"], "kind": "b"}
    book.answer_sync(call("book", arguments))

    assert seen == [Place(city="Oslo"), Unit.FAHRENHEIT, date(2026, 11, 21), {"x"}, "b", "none"]


def test_methods_partials_wrappers_and_callable_objects_are_options() -> None:
    class Shop:
        def price(self, item: str) -> str:
            """The price of an item."""
            return f"{item}: 3"

        def __call__(self, item: str) -> str:
            """Buys an item."""
            return f"bought {item}"

    def search(database: object, query: str, *, limit: int = 3) -> str:
        """Search."""
        return f"{query} {limit}"

    @functools.wraps(search)
    def traced(*arguments: Any, **named: Any) -> str:
        return search(*arguments, **named)

    shop = Shop()
    bound = Option.from_function(functools.partial(search, object(), limit=9))
    wrapped = Option.from_function(functools.partial(traced, object()))
    for made, described, parameters, arguments, expected in (
        (option(shop.price), ("price", "The price of an item."), ["item"], {"item": "tea"}, "tea: 3"),
        (Option.from_function(shop, name="buy"), ("buy", ""), ["item"], {"item": "tea"}, "bought tea"),
        (bound, ("search", "Search."), ["query"], {"query": "x"}, "x 9"),
        (wrapped, ("search", "Search."), ["query", "limit"], {"query": "x"}, "x 3"),
    ):
        result = made.answer_sync(call(made.name, arguments)).result
        assert (made.name, made.description) == described
        assert list(made.parameters["properties"]) == parameters
        assert result is not None and result.result == expected


def _yields(count: int) -> Iterator[int]:
    yield count


async def _yields_later(count: int) -> AsyncIterator[int]:
    yield count


class _Holder:
    def method(self, item: str) -> str:
        return item


def _many(*cities: str) -> None: ...


def _named(**cities: str) -> None: ...


def _untyped(city) -> None:  # type: ignore[no-untyped-def]
    ...


def _unknown(city: "Nowhere") -> None:  # type: ignore[name-defined]  # noqa: F821
    ...


def _unspeakable(hook: functools.partial[int]) -> None: ...


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda city: city, "has no name"),
        (functools.partial(lambda city: city), "has no name"),
        (eval("lambda *, x: x"), "no name"),
        (_yields, "is a generator"),
        (_yields_later, "is a generator"),
        (_Holder.method, "offer the bound one"),
        (len, "no type for its parameter"),
        (_many, r"'_many' has \*cities: str.*from_schema"),
        (_named, r"'_named' has \*\*cities: str.*from_schema"),
        (_untyped, "'_untyped' has no type for its parameter 'city'; annotate it"),
        (_unknown, "'_unknown' has an annotation that cannot be resolved.*Nowhere"),
        (_unspeakable, "option '?_unspeakable'? (cannot be described|has no JSON schema)"),
    ],
)
def test_what_no_model_can_be_told_of_is_refused_in_one_line(function: Any, words: str) -> None:
    with raises_line(OptionInvalid, match=words):
        Option.from_function(function)


def test_a_model_is_an_option_whose_parameters_are_its_fields() -> None:
    made = Option.from_model(Place, lambda place: place.city.upper())

    assert (made.name, made.description) == ("Place", "Somewhere.")
    assert list(made.parameters["properties"]) == ["city", "country"]
    assert made.answer_sync(call("Place", {"city": "oslo"})).result.result == "OSLO"  # type: ignore[union-attr]

    with pytest.raises(OptionInvalid, match="not an object type"):
        Option.from_model(RootModel[list[int]])


SCHEMA = {
    "type": "object",
    "required": ["query"],
    "properties": {
        "query": {"type": "string"},
        "limit": {"type": ["integer", "null"], "enum": [1, 2, None]},
        "tags": {"type": "array", "items": {"type": "object", "properties": {"name": {"const": "x"}}}},
    },
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("arguments", "misfit"),
    [
        ({"query": "x", "limit": 1.0, "tags": [{"name": "x"}]}, None),
        ({}, "query: required"),
        ({"query": 3}, "query: expected string"),
        ({"query": "x", "limit": 1.5}, "limit: expected integer or null"),
        ({"query": "x", "limit": True}, "limit: expected integer or null"),
        ({"query": "x", "limit": 3}, "limit: expected one of 1, 2, None"),
        ({"query": "x", "tags": [{"name": "y"}]}, "tags[0].name: expected 'x'"),
        ({"query": "x", "other": 1}, "other: unknown; expected one of query, limit, tags"),
    ],
)
def test_a_schema_refuses_what_does_not_fit(arguments: Any, misfit: str | None) -> None:
    """PJ-34: the function is not run; what fits reaches it unchanged. The schema keeps the order of its keys."""
    ran: list[Any] = []
    made = Option.from_schema("search", "Search.", SCHEMA, lambda **given: ran.append(given))
    result = made.answer_sync(call("search", arguments)).result

    assert result is not None
    assert (result.error_message, ran) == ((None, [arguments]) if misfit is None else (misfit, []))
    assert result.error_type == (misfit and "invalid_arguments")
    assert list(made.parameters.items()) == list(SCHEMA.items())


def test_parameters_that_are_no_schema_of_an_object_are_refused() -> None:
    for parameters in ({"type": "array"}, [], "x", {"default": float("nan")}):
        with raises_line(OptionInvalid, match="option 'search'"):
            Option.from_schema("search", "Search.", parameters)  # type: ignore[arg-type]


def test_a_function_is_in_no_dump_no_repr_and_no_comparison() -> None:
    """Two options are equal if a model sees no difference; a dump loads again; a renamed copy still runs (D-09)."""

    @option
    def search(query: str) -> str:
        "Search."
        return query

    loaded, renamed = Option.model_validate_json(search.model_dump_json()), search.model_copy(update={"name": "find"})
    fields = {"name", "description", "parameters", "vendor"}

    assert (loaded, hash(loaded), loaded.function) == (search, hash(search), None)
    assert set(search.model_dump()) == fields
    assert "function" not in repr(search)
    assert search != search.model_copy(update={"description": "Find."})
    assert set(Option.model_json_schema(schema_generator=PlainSchema)["properties"]) == fields
    assert renamed.answer_sync(call("find", {"query": "x"})).result.result == "x"  # type: ignore[union-attr]


def test_options_are_made_of_functions_models_and_options() -> None:
    def search(query: str) -> str:
        return query

    ready = Option(name="ready")

    assert [each.name for each in Option.all_of([search, Place, ready])] == ["search", "Place", "ready"]
    assert Option.all_of([ready])[0] is ready
    words = r"options\[0\] and options\[2\] are both named 'search'.*search.*rename one"
    with pytest.raises(OptionInvalid, match=words):
        Option.all_of([search, Place, Option.from_schema("search", "", {})])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (Option(name="x"), "must be a list"),
        (Place, "must be a list"),
        ("search", "must be a list"),
        ({"type": "function"}, "must be a list"),
        ([{"type": "function", "function": {"name": "x"}}], r"options\[0\] is .*not an option; .*from_schema"),
        ([dict], r"options\[0\] is .*dict, which is not an option"),
    ],
)
def test_what_is_no_list_of_options_is_refused(options: Any, words: str) -> None:
    with pytest.raises(OptionInvalid, match=words):
        Option.all_of(options)
