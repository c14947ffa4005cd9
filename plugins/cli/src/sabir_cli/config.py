"""What holds where a command line says nothing, and whence: the user's defaults, in the environment and in one file.

    a flag ──before──▶ $SABIR_MODEL … ──before──▶ config.toml ──before──▶ what is built in
                       └──────────── gather ───────────┘ ──▶ a Row for each setting ──▶ Defaults

The file holds no key: a provider finds that in the environment, or where its vendor keeps it. No provider is loaded.
"""

import os
import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, NamedTuple, Self

import sabir
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from sabir.authoring import ReasoningEffort, describe_validation_error

from sabir_cli.folders import as_folder, default_home, file_path, read, variable_of
from sabir_cli.output import UsageError

MODEL_FACTS = "model_facts"
"""The tables of the file that `sabir_cli.facts` reads; they have no variable and no row."""
BUILT_IN = "default"
"""Whence a value comes that nobody set."""


def _as_model(text: str) -> str:
    provider, _, model = text.partition(":")
    if not (provider and model):
        raise ValueError(f"{text!r} is not a model string; write provider:model")
    return text


class Defaults(BaseModel):
    """What a command goes by where its flags say nothing; `load` reads it."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    model: Annotated[str, AfterValidator(_as_model)] | None = None
    """provider:model; the embedded one where none is named."""
    system: str | None = None
    """Instructions to the model."""
    temperature: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """How freely the model chooses its words; 0 is least."""
    max_output_tokens: Annotated[int, Field(gt=0)] | None = None
    """Tokens of one reply at most."""
    reasoning_effort: ReasoningEffort | None = None
    """How much a model thinks that can."""
    markdown: bool = True
    """Whether a terminal is shown Markdown as laid out text."""
    home: Annotated[Path, AfterValidator(as_folder)] = Field(default_factory=default_home)
    """The folder where conversations are kept."""

    @classmethod
    def load(cls) -> Self:
        """The defaults as the environment and the user's file have them.

        Raises UsageError, which names the variable or the file, for what is unknown, invalid, or looks like a key.
        """
        return cls.model_validate({row.name: row.value for row in gather() if row.whence != BUILT_IN})

    @property
    def settings(self) -> sabir.Settings:
        """Those that are settings of a call."""
        return sabir.Settings.model_validate(self.model_dump(include={*NAMES} & {*sabir.Settings.model_fields}))


NAMES = tuple(Defaults.model_fields)


class Row(NamedTuple):
    """One setting: its value, and whence that is; the name of a variable, the path of the file, or `BUILT_IN`."""

    name: str
    value: object
    whence: str


def gather(environment: Mapping[str, str] | None = None, path: Path | None = None) -> list[Row]:
    """Every setting with its value; raises UsageError as `Defaults.load` does. An empty variable counts for nothing."""
    environment, path = os.environ if environment is None else environment, path or file_path()
    stored = {name: value for name, value in read(path).items() if name != MODEL_FACTS}
    for name, value in stored.items():
        check(name, value, repr(str(path)))
    built_in = Defaults()
    rows = []
    for name in NAMES:
        variable = variable_of(name)
        if given := environment.get(variable):
            rows.append(Row(name, check(name, given, variable), variable))
        elif name in stored:
            rows.append(Row(name, check(name, stored[name], repr(str(path))), str(path)))
        else:
            rows.append(Row(name, getattr(built_in, name), BUILT_IN))
    return rows


_SECRET_NAME = re.compile(
    r"(?i)(?:.*[-_.])?(?:api)?(?:keys?|secrets?|token|passw(?:or)?d|credentials?|bearer)(?:[-_.].*)?"
)
_SECRET_VALUE = re.compile(
    r"(?<![\w-])(?:[sr]k[-_]|gsk_|xai-|pplx-|nvapi-|r8_|hf_|AIza|ya29\.|AKIA|ASIA|ABSK|gh[pousr]_|github_pat_|xox[a-z]-|eyJ)"
    r"[\w.-]{16,}"
)
"""How vendors' keys begin."""
KEYS_ELSEWHERE = "no key is kept in this file; set the provider's variable, which `sabir providers` names"


def check(name: str, value: object, source: str) -> object:
    """A setting's value in its own type; raises UsageError, which names the source, for what no file may hold."""
    if name == MODEL_FACTS:
        raise UsageError(f'{source}: {MODEL_FACTS} holds tables, [{MODEL_FACTS}."provider:model"]; edit the file')
    if name not in NAMES:
        if _SECRET_NAME.fullmatch(name):
            raise UsageError(f"{source}: {name!r} looks like a key: {KEYS_ELSEWHERE}")
        near = get_close_matches(name, NAMES, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(NAMES)}"
        raise UsageError(f"{source}: there is no setting {name!r}; {hint}")
    if isinstance(value, str) and _SECRET_VALUE.search(value):
        raise UsageError(f"{source}: the value of {name!r} looks like a key: {KEYS_ELSEWHERE}")
    if isinstance(value, str) and not value.isascii() and any("\ud800" <= sign <= "\udfff" for sign in value):
        raise UsageError(f"{source}: the value of {name!r} is no UTF-8; write it where the locale is one of UTF-8")
    try:
        return getattr(Defaults.model_validate({name: value}), name)
    except ValidationError as error:
        raise UsageError(f"{source}: {describe_validation_error(error).replace('Value error, ', '')}") from None
