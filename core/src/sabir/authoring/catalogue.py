"""What is known of a provider's models, as rows of data.

    [[models]]
    prefix = "large-"
    family = "large"
    modalities = ["image"]

One row for each family of names; the longest prefix that matches counts.
"""

import tomllib
from functools import cache
from importlib.resources import files

from pydantic import ValidationError

from sabir.base.errors import PluginError, one_line
from sabir.base.models import describe
from sabir.vocabulary.target import ModelInfo, longest_first


@cache
def packaged_models(package: str) -> tuple[ModelInfo, ...]:
    """The rows of the models.toml beside a package's modules; PluginError as of `read_models`."""
    return read_models(files(package).joinpath("models.toml").read_text("utf-8"))


def read_models(text: str) -> tuple[ModelInfo, ...]:
    """The rows of a models.toml, longest prefixes first; PluginError names the row that is wrong."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PluginError(f"models.toml is no TOML: {one_line(str(error))}") from None
    rows = document.pop("models", [])
    if document or not isinstance(rows, list):
        found = ", ".join(document) or "models"
        raise PluginError(f"models.toml holds {found!r}; expected [[models]] rows alone")
    infos: dict[str, ModelInfo] = {}
    for number, row in enumerate(rows, start=1):
        try:
            info = ModelInfo.model_validate(row)
        except ValidationError as error:
            prefix = row.get("prefix", "") if isinstance(row, dict) else ""
            raise PluginError(f"models.toml row {number} ({prefix!r}): {one_line(describe(error))}") from None
        if info.prefix in infos:
            raise PluginError(f"models.toml row {number}: prefix {info.prefix!r} has a row already; join the two")
        infos[info.prefix] = info
    return longest_first(infos.values())
