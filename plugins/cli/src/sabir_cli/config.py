"""The user's default settings, from environment variables and the settings file.

    a flag ──overrides──▶ $SABIR_MODEL … ──overrides──▶ config.toml ──overrides──▶ the built-in default
                          └──────────── gather ───────────────┘ ──▶ a SettingRow for each setting ──▶ Defaults

The file must not contain keys: providers read their keys from the environment, or from their vendor's own files. No
provider is loaded here.
"""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, NamedTuple, Self

import sabir
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from sabir.authoring import Credential, ReasoningEffort, describe_validation_error, did_you_mean

from sabir_cli.folders import as_folder, default_home, read_settings, settings_path, variable_of
from sabir_cli.output import UsageError

MODEL_FACTS = "model_facts"
"""The name of the settings file's tables with facts about models, which `sabir_cli.facts` reads. They are not a
setting: there is no environment variable and no SettingRow for them.
"""
BUILT_IN = "default"
"""The source of a value that the user did not set."""


def _as_model(text: str) -> str:
    provider, _, model = text.partition(":")
    if not (provider and model):
        raise ValueError(f"{text!r} is not a model string; write provider:model")
    return text


class Defaults(BaseModel):
    """The settings for flags that are not on the command line. `load` reads them."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    model: Annotated[str, AfterValidator(_as_model)] | None = None
    """The model string, provider:model. None means the local model of `sabir-local`."""
    system: str | None = None
    """Instructions to the model. None means no instructions."""
    temperature: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """Sampling temperature. None means the provider's default."""
    max_output_tokens: Annotated[int, Field(gt=0)] | None = None
    """Maximum number of tokens of one reply. None means the provider's default."""
    reasoning_effort: ReasoningEffort | None = None
    """How much the model reasons, if it can. None means the provider's default."""
    profile: str | None = None
    """The section of a vendor's credentials file, for providers with such a file. None means the provider's default."""
    markdown: bool = True
    """Whether answers are laid out as Markdown on a terminal."""
    home: Annotated[Path, AfterValidator(as_folder)] = Field(default_factory=default_home)
    """The folder where conversations are saved."""

    @classmethod
    def load(cls) -> Self:
        """Return the defaults from the environment and the settings file.

        Raises UsageError, which names the variable or the file, for an unknown setting, an invalid value, a value that
        looks like an API key, and an unreadable file.
        """
        return cls.model_validate({row.name: row.value for row in gather() if row.source != BUILT_IN})

    @property
    def settings(self) -> sabir.Settings:
        """The defaults that are settings of a model call: temperature, max_output_tokens and reasoning_effort."""
        return sabir.Settings.model_validate(self.model_dump(include={*NAMES} & {*sabir.Settings.model_fields}))


NAMES = tuple(Defaults.model_fields)


class SettingRow(NamedTuple):
    """One setting with its value. `source` is the variable's name, the file's path, or BUILT_IN."""

    name: str
    value: object
    source: str


def gather(environment: Mapping[str, str] | None = None, path: Path | None = None) -> list[SettingRow]:
    """Return every setting with its value and source. An empty variable is ignored.

    `environment` is by default the process's environment, and `path` the settings file. Raises UsageError for the same
    reasons as `Defaults.load`.
    """
    environment, path = os.environ if environment is None else environment, path or settings_path()
    stored = {name: value for name, value in read_settings(path).items() if name != MODEL_FACTS}
    for name, value in stored.items():
        check(name, value, repr(str(path)))
    built_in = Defaults()
    rows = []
    for name in NAMES:
        variable = variable_of(name)
        if text := environment.get(variable):
            rows.append(SettingRow(name, check(name, text, variable), variable))
        elif name in stored:
            rows.append(SettingRow(name, check(name, stored[name], repr(str(path))), str(path)))
        else:
            rows.append(SettingRow(name, getattr(built_in, name), BUILT_IN))
    return rows


def profile_of(credentials: Iterable[Credential]) -> dict[str, str]:
    """Return the profile of the settings as a mapping for `api_key=`. Empty if no profile is set, or if no credential
    has a file with profiles. Raises UsageError like `Defaults.load`.
    """
    if not any(each.profile for each in credentials):
        return {}
    profile = Defaults.load().profile
    return {"profile": profile} if profile else {}


_SECRET_NAME = re.compile(
    r"(?i)(?:.*[-_.])?(?:api)?(?:keys?|secrets?|token|passw(?:or)?d|credentials?|bearer)(?:[-_.].*)?"
)
_SECRET_VALUE = re.compile(
    r"(?<![\w-])(?:[sr]k[-_]|gsk_|xai-|pplx-|nvapi-|r8_|hf_|AIza|ya29\.|AKIA|ASIA|ABSK|gh[pousr]_|github_pat_|xox[a-z]-|eyJ)"
    r"[\w.-]{16,}"
)
"""Pattern of vendors' API keys, by their beginnings."""
KEYS_ELSEWHERE = "the settings file must not contain keys; set the provider's variable, see `sabir providers`"


def check(name: str, value: object, source: str) -> object:
    """Return a setting's value converted to its type.

    Raises UsageError, which names the source, for an unknown setting, an invalid value, and a name or value that looks
    like an API key.
    """
    if name == MODEL_FACTS:
        raise UsageError(
            f'{source}: {MODEL_FACTS} cannot be set here; write tables [{MODEL_FACTS}."provider:model"] into the file'
        )
    if name not in NAMES:
        if _SECRET_NAME.fullmatch(name):
            raise UsageError(f"{source}: {name!r} looks like a key: {KEYS_ELSEWHERE}")
        hint = did_you_mean(name, NAMES, f"choose from {', '.join(NAMES)}")
        raise UsageError(f"{source}: unknown setting {name!r}; {hint}")
    if isinstance(value, str) and _SECRET_VALUE.search(value):
        raise UsageError(f"{source}: the value of {name!r} looks like a key: {KEYS_ELSEWHERE}")
    if isinstance(value, str) and not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise UsageError(f"{source}: the value of {name!r} is not UTF-8 text; use a terminal with a UTF-8 locale")
    try:
        return getattr(Defaults.model_validate({name: value}), name)
    except ValidationError as error:
        raise UsageError(f"{source}: {describe_validation_error(error).replace('Value error, ', '')}") from None
