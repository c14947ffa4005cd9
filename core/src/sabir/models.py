"""The two bases of sabir's data: frozen models, and frozen models that keep what a newer writer added.

Law 11, deep immutability: no attribute, item or nested value of a model can be changed; a changed copy
is made by `model_copy(update=...)`, which validates. Construction is strict everywhere. Loading
(`sabir.loads`, `sabir.load`) passes a context that lets models at rest keep unknown fields verbatim.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn, Self

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from sabir.values import FrozenDict, encode_json

LOADING: dict[str, Any] = {"sabir": "loading"}
"""The validation context under which unknown fields and unknown part kinds are kept."""

_NOTHING = FrozenDict()


def _made_already(value: object) -> TypeError:
    return TypeError(f"{type(value).__name__} is immutable; make a changed copy with model_copy(update=…) instead")


def is_loading(info: ValidationInfo) -> bool:
    """Whether a validation runs on behalf of a loader rather than a constructor."""
    return info.context is LOADING


class Frozen(BaseModel):
    """A deeply immutable value; unknown fields are errors."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", serialize_by_alias=True, ser_json_bytes="utf8", val_json_bytes="utf8"
    )

    if not TYPE_CHECKING:  # a checker that saw these would let any attribute be set

        def __init__(self, /, **fields: Any) -> None:
            """Make it, once: a second call on a made instance is a TypeError."""
            if self.__dict__:
                raise _made_already(self)
            super().__init__(**fields)

        # pydantic's own mark: validation of nested values goes past this method, as it does past BaseModel's.
        __init__.__pydantic_base_init__ = True

        def __setstate__(self, state: dict[Any, Any]) -> None:
            """Unpickle, into a new instance only."""
            if self.__dict__:
                raise _made_already(self)
            super().__setstate__(state)

        def __setattr__(self, name: str, value: object) -> NoReturn:
            """Refuse; pydantic itself lets cached properties and underscored names of a frozen model be set."""
            self._refuse_change(name)

        def __delattr__(self, name: str) -> NoReturn:
            """Refuse, for the same reason."""
            self._refuse_change(name)

    def _refuse_change(self, name: str) -> NoReturn:
        refusal = InitErrorDetails(type="frozen_instance", loc=(name,), input=None)
        raise ValidationError.from_exception_data(type(self).__name__, [refusal])

    # The parameter's type is pydantic's own.
    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with the given fields changed; the result is validated (pydantic.ValidationError)."""
        if not update:
            return super().model_copy(deep=deep)
        fields = type(self).model_fields
        current = {(field.alias or name): getattr(self, name) for name, field in fields.items()}
        renamed = {(fields[name].alias or name if name in fields else name): value for name, value in update.items()}
        changed = type(self)(**{**current, **renamed})
        given = self.__pydantic_fields_set__ | {
            name for name in fields if name in update or fields[name].alias in update
        }
        object.__setattr__(changed, "__pydantic_fields_set__", given)
        if self.__pydantic_extra__:
            object.__setattr__(changed, "__pydantic_extra__", self.__pydantic_extra__)
        return changed


class AtRest(Frozen):
    """A frozen value that is stored: what a newer writer added to it survives a load and a save."""

    model_config = ConfigDict(extra="allow")

    @model_validator(mode="after")
    def _keep_unknown_fields_only_when_loading(self, info: ValidationInfo) -> Self:
        unknown = self.__pydantic_extra__
        if type(unknown) is FrozenDict:  # checked when it was made; here it is part of another value
            return self
        if unknown and not is_loading(info):
            raise PydanticCustomError(
                "extra_forbidden",
                "{model} has no field {unknown}; its fields are {fields}",
                {
                    "model": type(self).__name__,
                    "unknown": ", ".join(repr(name) for name in unknown),
                    "fields": ", ".join(field.alias or name for name, field in type(self).model_fields.items()),
                },
            )
        object.__setattr__(self, "__pydantic_extra__", encode_json(unknown).view() if unknown else _NOTHING)
        return self
