"""Facts about models from the user's settings file, which override wrong or outdated facts of the installed plugins.

[model_facts."openai:gpt-7"]          ──▶ sabir.adapter("openai:gpt-7-mini", model_facts=…)
efforts = ["low", "high"]             ──▶ `sabir models`: the row with these facts, and a note
"""

from collections.abc import Sequence
from pathlib import Path

import sabir
from pydantic import ValidationError
from sabir.authoring import describe_validation_error, split_model

from sabir_cli.config import MODEL_FACTS, profile_of
from sabir_cli.folders import read_settings, settings_path
from sabir_cli.output import UsageError


def stored_facts(path: Path | None = None) -> dict[str, sabir.ModelInfo]:
    """Return "provider:beginning of the models' names" → the facts in the settings file's table of this name.

    Raises UsageError, which names the file, for an invalid table.
    """
    path = path or settings_path()
    tables = read_settings(path).get(MODEL_FACTS, {})
    source = f"{str(path)!r}: {MODEL_FACTS}"
    if not isinstance(tables, dict):
        raise UsageError(f'{source} must contain tables; write [{MODEL_FACTS}."provider:model"]')
    facts: dict[str, sabir.ModelInfo] = {}
    for name, table in tables.items():
        provider, _, prefix = name.partition(":")
        if not (provider and prefix and isinstance(table, dict)):
            raise UsageError(f'{source}: {name!r} must be a table named "provider:model"')
        try:
            facts[name] = sabir.ModelInfo.model_validate({**table, "prefix": prefix})
        except ValidationError as error:
            raise UsageError(f"{source}, {name!r}: {describe_validation_error(error)}") from None
    return facts


def facts_of(model: str) -> sabir.ModelInfo | None:
    """Return the facts of the settings file for a model string: the table with the longest name with which
    "provider:model" begins. None if there is no such table.
    """
    model_string = split_model(model)
    facts = stored_facts()
    name = f"{model_string.provider}:{model_string.model}"
    return facts.get(max((each for each in facts if name.startswith(each)), key=len, default=""))


def open_adapter(model: str, base_url: str | None = None) -> sabir.ModelAdapter:
    """Return the model's adapter, with the facts from the settings file and the profile of the settings. Raises the
    errors of `sabir.adapter`, and UsageError for an invalid settings file.
    """
    name = split_model(model)
    profile = profile_of(sabir.provider(name.provider, name.dialect).credentials)
    return sabir.adapter(model, api_key=profile or None, base_url=base_url, model_facts=facts_of(model))


def with_facts(provider: str, rows: Sequence[sabir.ModelInfo]) -> tuple[list[sabir.ModelInfo], dict[str, list[str]]]:
    """Return a provider's rows with the facts from the settings file, and table → the names of the facts that it sets.

    A table for a new beginning of names becomes a new row, based on the row with the longest beginning of its name.
    """
    changed = {row.prefix: row for row in rows}
    overridden: dict[str, list[str]] = {}
    for name, facts in stored_facts().items():
        if name.partition(":")[0] == provider:
            matches = [row for row in rows if facts.prefix.startswith(row.prefix)]
            row = max(matches, key=lambda row: len(row.prefix), default=None)
            base = (row or facts).model_copy(update={"prefix": facts.prefix})
            changed[facts.prefix] = base.overridden(facts)
            fields = facts.model_fields_set - {"prefix"}
            overridden[name] = sorted(sabir.ModelInfo.model_fields[field].alias or field for field in fields)
    return list(changed.values()), overridden
