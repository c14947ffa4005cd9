"""What is known of a provider's models, as rows of data.

    [[models]]
    prefix = "large-"
    family = "large"
    modalities = ["image"]

One row for each family of names; the longest prefix that matches counts.
"""

import tomllib
from collections.abc import Iterable

from pydantic import ValidationError

from sabir.arguments import describe
from sabir.contracts import Provider
from sabir.errors import PluginError, ProviderBroken, blaming, one_line
from sabir.scope import ModelInfo

UNKNOWN_MODEL = ModelInfo(prefix="")
"""What is known of a model that no row names: nothing, so that nothing is refused."""


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


def longest_first(infos: Iterable[ModelInfo]) -> tuple[ModelInfo, ...]:
    """Rows in the order in which they are tried."""
    return tuple(sorted(infos, key=lambda info: (-len(info.prefix), info.prefix)))


def models_of(provider: Provider) -> tuple[ModelInfo, ...]:
    """What a provider knows of its models, longest prefixes first; ProviderBroken where it cannot tell."""
    with blaming(f"provider {provider.name!r} does not tell its models", ProviderBroken):
        return longest_first(provider.models())


def find_model(infos: Iterable[ModelInfo], name: str, family: str = "") -> ModelInfo:
    """The row with the longest prefix that begins the name, or else the family's; `ModelInfo(prefix="")` for neither.

    A cloud's own name of a model (`eu.maker.large-v1:0`) begins as no row does; its family is the maker's name.
    """
    rows = longest_first(infos)
    matching = (info for each in (name, family) if each for info in rows if each.startswith(info.prefix))
    return next(matching, UNKNOWN_MODEL)
