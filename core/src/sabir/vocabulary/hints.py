"""Vendor hints: fields of a media part or an option for one provider, and the fields that a target takes of them.

    vendor={"acme": {…}, "*": {…}} ──take_hints──▶ {provider: validated fields}, and a loss for each field not taken

A section is for the provider of its name. The section "*" is for every provider: a provider takes the fields of it
that its model has, and its own section is laid over them. Only a provider's own section can be invalid: a field of "*"
that does not fit is not taken. A field that a model has but excludes belongs to another wire of the provider: it is
valid there, and a loss here.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple, TypeAlias

from pydantic import AfterValidator, BaseModel, ValidationError, WithJsonSchema

from sabir.base.errors import SettingsInvalid, one_line
from sabir.base.models import Made, describe
from sabir.base.values import JSONObjectDocumentField, JSONText, JSONValue, encode_json, object_view

Sections: TypeAlias = Mapping[str, Mapping[str, JSONValue]]
"""Provider name → hints for that provider; "*" for every provider that knows the fields."""
SHARED = "*"


def check_sections(sections: Mapping[str, JSONValue]) -> None:
    """Raise ValueError unless each section is a mapping."""
    for name, section in sections.items():
        if not isinstance(section, dict):
            raise ValueError(f"vendor[{name!r}] must be a mapping of that provider's own settings")


def _checked(text: JSONText) -> JSONText | None:
    check_sections(object_view(text))
    return None if text == "{}" else text


_schema = WithJsonSchema({"type": "object", "additionalProperties": {"type": "object"}})
Hints: TypeAlias = Annotated[JSONObjectDocumentField, AfterValidator(_checked), _schema] | None
"""A field of vendor hints, held as JSONText; None if there are none."""


class Taker(NamedTuple):
    """The target that may take the hints of one medium or option, and the function that reports losses."""

    provider: str
    place: str
    """The place of the hints, for errors: `parts[0] of message …`."""
    wire: str
    """The wire that takes them, for errors and losses: `acme.wire on the user side`."""
    kind: str
    """A modality, or "option"."""
    lose: Callable[[str, str], None]
    """Called with the path within the place, and the reason of the loss."""


def take_hints(text: JSONText, model: type[BaseModel] | None, taker: Taker) -> JSONText | None:
    """The one section that a target takes, under its provider's name; None if it takes nothing.

    Raises SettingsInvalid if the model refuses the provider's own section.
    """
    sections, provider, lose = object_view(text), taker.provider, taker.lose
    own, shared = sections.get(provider), sections.get(SHARED, {})
    if own is None:
        others = ", ".join(name for name, section in sections.items() if section and name != SHARED)
        if others:
            lose(".vendor", f"its hints are for {others}, not for {provider}")
    if model is None and own:
        lose(f".vendor.{provider}", f"{taker.wire} takes no hints ({taker.kind})")
    found = {} if model is None else _validated(model, own or {}, shared, taker)
    for name in own if own and model else ():
        if name not in found:
            lose(f".vendor.{provider}.{name}", f"{taker.wire} takes no such {name!r} ({taker.kind})")
    if own is None:
        for name in shared:
            if name not in found:
                lose(f".vendor.{SHARED}.{name}", f"{taker.wire} takes no such {name!r} ({taker.kind})")
    return encode_json({provider: found}) if found else None


def with_hints(made: Made, taken: JSONText | None) -> Made:
    """A medium or an option with these hints instead of its own."""
    return type(made).assembled({**vars(made), "vendor_json": taken}, made.model_fields_set | {"vendor_json"})


def _validated(
    model: type[BaseModel], own: Mapping[str, JSONValue], shared: Mapping[str, JSONValue], taker: Taker
) -> dict[str, Any]:
    """The fields of both sections, without those of `shared` that the model does not have or refuses."""
    fitting = {name: value for name, value in shared.items() if name in model.model_fields and name not in own}
    while fitting:
        try:
            return set_fields(model.model_validate({**fitting, **own}))
        except ValidationError as error:
            blamed = {each["loc"][0] for each in error.errors(include_url=False) if each["loc"]} & fitting.keys()
            fitting = {name: value for name, value in fitting.items() if blamed and name not in blamed}
    where = f"vendor[{taker.provider!r}] of {taker.place} for {taker.wire} ({taker.kind})"
    return read_section(model, own, where)


def read_section(
    model: type[BaseModel], section: Mapping[str, JSONValue], where: str, otherwise: str = ""
) -> dict[str, Any]:
    """The fields that are set, as wire fields; raises SettingsInvalid, which names refused and known fields."""
    try:
        return set_fields(model.model_validate(dict(section)))
    except ValidationError as error:
        known = ", ".join(sorted(model.model_fields))
        raise SettingsInvalid(one_line(f"{where}: {describe(error)}; it has {known}{otherwise}", 900)) from None


def set_fields(made: BaseModel) -> dict[str, Any]:
    """The fields that were set, as JSON values."""
    return made.model_dump(mode="json", exclude_unset=True)
