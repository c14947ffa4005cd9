"""Settings as a dialect reads them: the vendor's own section, strict, and neutral ones that a model may refuse.

vendor={"acme": {…}} ──read_vendor──▶ wire fields        a name that the plugin's model has not is refused
scope.settings ──take_setting──▶ value                   None, and a loss, where models.toml says it is refused
"""

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from sabir.arguments import describe
from sabir.errors import SettingsInvalid, one_line
from sabir.scope import RequestScope

Vendor = TypeVar("Vendor", bound=BaseModel)


def read_vendor(model: type[Vendor], scope: RequestScope) -> dict[str, Any]:
    """The vendor settings that are set, as wire fields; SettingsInvalid names one that the dialect does not have."""
    if not scope.vendor:
        return {}
    try:
        found = model.model_validate(dict(scope.vendor))
    except ValidationError as error:
        known = ", ".join(sorted(model.model_fields))
        where = f"vendor[{scope.target.provider!r}] for {scope.target.dialect}"
        message = f"{where}: {describe(error)}; it has {known}; all else: extra_body"
        raise SettingsInvalid(one_line(message, 900)) from None
    return found.model_dump(mode="json", exclude_unset=True)


def take_setting(scope: RequestScope, setting: str) -> Any:
    """A wire setting's value, of the type of the field in Settings; None, and a loss, where the model refuses it."""
    value, info = scope.settings.take(setting), scope.model_info
    cannot_reason = setting == "reasoning_effort" and info.reasoning is False
    if value is not None and (cannot_reason or setting in info.rejects):
        refuse_setting(scope, setting)
        return None
    return list(value) if isinstance(value, tuple) else value


def refuse_setting(scope: RequestScope, setting: str) -> None:
    """Write down that the model refuses a setting (UP-18)."""
    scope.losses.add("dropped", f"{scope.target.model} refuses it", path=f"settings.{setting}")


def name_choice(choice: str, scope: RequestScope) -> str:
    """The wire name of the option that `option_choice` names; SettingsInvalid for one that is not offered."""
    if choice in scope.option_names:
        return scope.option_names[choice]
    raise not_offered(choice, scope)


def not_offered(choice: str, scope: RequestScope) -> SettingsInvalid:
    """The error for a choice of an option that is not among those offered."""
    offered = ", ".join(scope.option_names) or "none"
    return SettingsInvalid(f"option_choice names {choice!r}, which is not offered; offered are: {offered}")
