"""What core uses of pydantic beside its documented interface: bound to one major version, and tried here.

A version of pydantic that changes one of these fails here by its name, before models are made or written wrongly.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import pydantic
import sabir
from pydantic import BaseModel, ConfigDict, TypeAdapter
from pydantic_core import core_schema

from tests.architecture.project import CORE, PACKAGES, nodes
from tests.rules import check_each

USED_IN = "core/src/sabir/base/models.py and what is built on it"


class Inner(BaseModel):
    model_config = ConfigDict(extra="allow")
    number: int = 0


class Outer(BaseModel):
    inner: Inner


class Counted(BaseModel):
    """Its constructor counts its calls, as validation makes them or not."""

    number: int = 0

    def __init__(self, /, **fields: Any) -> None:
        MADE.append(type(self).__name__)
        super().__init__(**fields)


class Marked(Counted):
    def __init__(self, /, **fields: Any) -> None:
        super().__init__(**fields)

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]


MADE: list[str] = []


def made_by_validation(kind: type[Counted]) -> int:
    """How often the constructor is called for a nested value."""
    MADE.clear()
    pydantic.create_model("Holder", held=(kind, ...)).model_validate({"held": {"number": 1}})
    return len(MADE)


def made_anew() -> Inner:
    made: Inner = object.__new__(Inner)
    Inner.__pydantic_validator__.validate_python({"number": 1}, self_instance=made)
    return made


def slots() -> bool:
    instance = Inner(number=1)
    return all(hasattr(vars(BaseModel)[slot], "__set__") and hasattr(instance, slot) for slot in BaseModel.__slots__)


class Read(Inner):
    def __repr_args__(self) -> Iterator[tuple[str, int]]:
        yield "a", 1


class Described:
    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        return core_schema.any_schema()

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> Any:
        return {"type": "string"}


INTERNALS: dict[str, Callable[[], bool]] = {
    "__pydantic_base_init__": lambda: (made_by_validation(Counted), made_by_validation(Marked)) == (1, 0),
    "__pydantic_extra__": lambda: Inner.model_validate({"more": 1}).__pydantic_extra__ == {"more": 1},
    "__pydantic_fields_set__": lambda: Inner(number=1).__pydantic_fields_set__ == {"number"},
    "__pydantic_private__": lambda: Inner().__pydantic_private__ is None,
    "__pydantic_serializer__": lambda: (
        Inner.__pydantic_serializer__.to_json(Inner(number=1)).decode() == Inner(number=1).model_dump_json()
    ),
    "__pydantic_validator__": lambda: (
        made_anew() == Inner(number=1) == Inner.__pydantic_validator__.validate_json('{"number":1}')
    ),
    "__get_pydantic_core_schema__": lambda: (
        Inner.__pydantic_core_schema__["type"] == "model"
        and Inner.__pydantic_core_schema__["schema"]["type"] == "model-fields"
    ),
    "__get_pydantic_json_schema__": lambda: TypeAdapter(Described).json_schema() == {"type": "string"},
    "metaclass": lambda: (
        issubclass(type(sabir.Loss), type(BaseModel))
        and sabir.Loss.model_rebuild(force=True) is True  # here pydantic sets its own signature
        and list(inspect.signature(sabir.Loss).parameters) == list(sabir.Loss.model_fields)
    ),
    "__repr_args__": lambda: list(Read().__rich_repr__()) == [("a", 1)],  # type: ignore[misc]
    "__slots__": lambda: (
        slots()
        and set(BaseModel.__slots__)
        == {"__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__"}
    ),
}
"""Name, and whether it still is what core takes it for."""
BY_ANOTHER_NAME = {"__slots__", "metaclass", "__repr_args__"}
"""The internals whose names are not pydantic's alone."""


def used() -> set[str]:
    """The names of pydantic's own that stand in any package: as attributes, methods or texts."""
    names = re.compile(r"__(?:get_)?pydantic_\w+__")
    said = (vars(node).values() for package in PACKAGES for path in package.modules() for node in nodes(path))
    return {name for values in said for value in values if isinstance(value, str) for name in names.findall(value)}


def test_every_internal_that_is_used_is_tried_here() -> None:
    """Another one is another promise that pydantic never gave."""
    assert used() == INTERNALS.keys() - BY_ANOTHER_NAME


def changed(name: str) -> Iterator[str]:
    """The internal, where it is not what it was or cannot be tried."""
    if not INTERNALS[name]():
        yield f"{name}: pydantic {pydantic.VERSION} changed it"


def test_an_internal_of_pydantic_is_what_core_takes_it_for() -> None:
    """Of the version that is installed."""
    check_each(INTERNALS, changed, f"mend {USED_IN}")


def test_core_is_bound_to_the_major_version_whose_internals_it_knows() -> None:
    """A later one would be installed beside it without a word."""
    (bound,) = (each for each in CORE.metadata["dependencies"] if each.startswith("pydantic"))

    assert re.fullmatch(r"pydantic>=2\.\d+,<3", bound)
