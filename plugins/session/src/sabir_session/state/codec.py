"""Items as JSON text, and back: the one form that journals and snapshots share.

    item ──encode──▶ text      written once, by pydantic
    text ──decode──▶ item      of a registered type only; a text names its type, and nothing is imported for it

Models at rest keep unknown fields and unknown kinds of parts from newer versions.
"""

from datetime import UTC, datetime
from functools import cached_property
from typing import Annotated, Any, Generic, TypeVar, cast

from pydantic import AfterValidator, AwareDatetime, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticSerializationError
from sabir.authoring import AtRest, decode_json, describe, load_as, one_line

Item = TypeVar("Item")


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{moment.isoformat()} is outside the years 1 … 9999 in UTC") from None


UTCDatetime = Annotated[AwareDatetime, AfterValidator(_in_utc)]
"""A time, converted to UTC; a time without a zone is an error."""


def now() -> datetime:
    """This moment."""
    return datetime.now(UTC)


def kind_of(item_type: type) -> str:
    """The name under which items of a type are stored: "module:Class"."""
    return f"{item_type.__module__}:{item_type.__qualname__}"


class Codec(Generic[Item]):
    """Writes and reads items of one type: a pydantic model, a dataclass, or any type that pydantic validates.

    Both directions raise ValueError, in one line without the type's name.
    """

    def __init__(self, item_type: type[Item]) -> None:
        self._type = item_type
        # Any: pydantic's own validator and serializer are called, as its methods do.
        self._at_rest: Any = item_type if issubclass(item_type, AtRest) else None

    def encode(self, item: Item) -> str:
        """The item's text; raises ValueError if reading it would give another value."""
        if type(item) is not self._type:
            raise ValueError(f"it is a {type(item).__name__}, not a {self._type.__name__}")
        try:
            if self._at_rest is not None:
                return str(self._at_rest.__pydantic_serializer__.to_json(item), "utf-8")
            text = self._adapter.dump_json(item, warnings="error").decode()
            if self.decode(text) == item:
                return text
        except (PydanticSerializationError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(one_line(str(error), 200)) from None
        raise ValueError("it would not come back equal")

    def decode(self, text: str) -> Item:
        """The item of a text; raises ValueError if it is not of this type."""
        try:
            if self._at_rest is None:
                return self._adapter.validate_json(text)
            try:
                return cast(Item, self._at_rest.__pydantic_validator__.validate_json(text))
            except ValidationError:
                return cast(Item, load_as(self._at_rest.model_validate, decode_json(text)))
        except ValidationError as error:
            raise ValueError(one_line(describe(error), 300)) from None
        except RecursionError:
            raise ValueError("it is nested too deeply") from None

    @cached_property
    def _adapter(self) -> TypeAdapter[Item]:
        try:
            return TypeAdapter(self._type)
        except PydanticUserError as error:
            raise ValueError(f"pydantic cannot describe its type: {one_line(str(error), 150)}") from None
