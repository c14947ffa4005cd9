"""Items as JSON text, and back: the one form that journals and snapshots share.

    item ──encode──▶ text      written once, by pydantic
    text ──decode──▶ item      of a registered type only; a text says which, and is never asked what to import

Models at rest keep what a newer version wrote: unknown fields and unknown kinds of parts.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, TypeVar, cast

from pydantic import AfterValidator, AwareDatetime, BaseModel, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticSerializationError
from sabir.authoring import AtRest, describe, load_as, one_line, parse_json

Item = TypeVar("Item")
UTCDatetime = Annotated[AwareDatetime, AfterValidator(lambda moment: moment.astimezone(UTC))]
"""A moment, held in UTC whatever zone it was given in; one without a zone is an error."""


def now() -> datetime:
    """This moment."""
    return datetime.now(UTC)


def kind_of(item_type: type) -> str:
    """The name under which items of a type are stored: "module:Class"."""
    return f"{item_type.__module__}:{item_type.__qualname__}"


class Codec(Generic[Item]):
    """Writes and reads items of one type: a pydantic model, a dataclass, or what else pydantic validates.

    Both directions raise ValueError, in one line without the type's name.
    """

    def __init__(self, item_type: type[Item]) -> None:
        self._type = item_type
        self._is_at_rest = issubclass(item_type, AtRest)
        self._write: Callable[[Any], bytes] | None = None
        if issubclass(item_type, AtRest):
            self._write = item_type.__pydantic_serializer__.to_json  # what model_dump_json does, directly
        self._adapter: TypeAdapter[Item] | None = None

    def encode(self, item: Item) -> str:
        """The item's text; ValueError where it would not come back equal."""
        if type(item) is not self._type:
            raise ValueError(f"it is a {type(item).__name__}, not a {self._type.__name__}")
        try:
            if self._write is not None:
                return str(self._write(item), "utf-8")
            text = self._adapted().dump_json(item, warnings="error").decode()
            if self.decode(text) == item:
                return text
        except (PydanticSerializationError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(one_line(str(error), 200)) from None
        raise ValueError("it would not come back equal")

    def decode(self, text: str) -> Item:
        """The item of a text; ValueError where it is none of this type."""
        try:
            if not issubclass(self._type, BaseModel):
                return self._adapted().validate_json(text)
            return cast(Item, self._decode_model(text))
        except ValidationError as error:
            raise ValueError(one_line(describe(error), 300)) from None
        except RecursionError:
            raise ValueError("it is nested too deeply") from None

    def _decode_model(self, text: str) -> Any:
        model: Any = self._type
        if not self._is_at_rest:
            return model.model_validate_json(text)
        try:
            return model.__pydantic_validator__.validate_json(text)
        except ValidationError:
            return load_as(model.model_validate, parse_json(text))

    def _adapted(self) -> TypeAdapter[Item]:
        if self._adapter is None:
            try:
                self._adapter = TypeAdapter(self._type)
            except PydanticUserError as error:
                raise ValueError(f"pydantic cannot describe its type: {one_line(str(error), 150)}") from None
        return self._adapter
