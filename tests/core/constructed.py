"""Whether a model is what its constructor makes: for models that were assembled without validation."""

from collections.abc import Iterator
from typing import Any

from sabir.base.models import Frozen


def models_of(value: object) -> Iterator[Frozen]:
    """A model and every model that it is made of."""
    if isinstance(value, Frozen):
        yield value
        for name in type(value).model_fields:
            yield from models_of(getattr(value, name))
    elif isinstance(value, tuple):
        for each in value:
            yield from models_of(each)


def check_constructed(value: object) -> None:
    """Every model in it has the values, their types and order, and the marks that its constructor gives it."""
    for model in models_of(value):
        kind = type(model)
        given = {kind.model_fields[name].alias or name: getattr(model, name) for name in model.model_fields_set}
        made = kind(**given)

        assert _held(model) == _held(made)
        assert model == made
        assert hash(model) == hash(made)
        assert model.model_dump_json() == made.model_dump_json()


def _held(model: Frozen) -> tuple[Any, ...]:
    fields = type(model).model_fields
    values = [(name, type(value), value) for name, value in vars(model).items() if name in fields]
    return values, model.model_fields_set, model.__pydantic_extra__, model.__pydantic_private__
