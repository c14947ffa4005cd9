"""Settings as a dialect reads them: the vendor's own section, strict, and neutral ones that a model may refuse.

vendor={"acme": {…}} ──read_vendor──▶ wire fields        a name that the plugin's model has not is refused
scope.settings ──take_setting──▶ value                   None, and a loss, where models.toml says it is refused
"""

from typing import Any, TypeVar

from pydantic import BaseModel

from sabir.errors import SettingsInvalid
from sabir.hints import read_section
from sabir.scope import RequestScope

Vendor = TypeVar("Vendor", bound=BaseModel)


def read_vendor(model: type[Vendor], scope: RequestScope) -> dict[str, Any]:
    """The vendor settings that are set, as wire fields; SettingsInvalid names one that the dialect does not have."""
    if not scope.vendor:
        return {}
    where = f"vendor[{scope.target.provider!r}] for {scope.target.dialect}"
    return read_section(model, scope.vendor, where, "; all else: extra_body")


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
