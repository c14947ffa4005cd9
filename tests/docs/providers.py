"""What is installed, as pages list it: providers with their keys and endpoints, and the media that dialects take."""

import os
from unittest.mock import patch

import sabir
from pydantic import BaseModel
from sabir.contract.provider import Access
from sabir.contract.turns import Tables
from sabir_openai.chat_dialect import QUIRKS

from tests.docs.settings import dialects, own_providers


def providers_table() -> str:
    """One row a provider: dialects, key variables, and the endpoint where nothing else is said."""
    rows = []
    for status in own_providers():
        assert status.state == "installed", f"{status.name}: {status.error}"
        with patch.dict(os.environ, clear=True):  # the endpoints of a machine on which no variable names another
            endpoint = sabir.provider(status.name).endpoint(Access())
        keys = ", ".join(f"`{name}`" for name in status.key_variables) or "none needed"
        spoken = ", ".join(f"`{name}`" for name in status.dialects)
        rows.append(f"| `{status.name}` | `{status.distribution}` | {spoken} | {keys} | `{endpoint}` |")
    return "\n".join(["| provider | package | dialects | key | endpoint |", "|---|---|---|---|---|", *rows])


def media_list() -> str:
    """Which modality each side of each dialect takes in which form."""
    lines = []
    for name in dialects():
        tables = sabir.dialect(name).dialect.tables
        sides = dict.fromkeys(side for side, _ in tables.media)
        lines += [f"- `{name}`, {side}: {_forms(tables, side)}" for side in sides] or [f"- `{name}`: none"]
    return "\n".join(lines)


def hint_list() -> str:
    """Which vendor hints media and options may carry, for each dialect."""
    lines = []
    for name in dialects():
        tables = sabir.dialect(name).dialect.tables
        takers = {f"{modality}, {side}": rule.hints for (side, modality), rule in tables.media.items()}
        takers["option"] = tables.calls.hints
        found = [f"- `{name}`, {what}: {_fields(model)}" for what, model in takers.items() if model is not None]
        lines += found or [f"- `{name}`: none"]
    return "\n".join(lines)


def quirk_table() -> str:
    """One row a deviation that a row of a compatible gateway may name."""
    return "\n".join(["| quirk | meaning |", "|---|---|", *(f"| `{name}` | {what} |" for name, what in QUIRKS.items())])


def _fields(model: type[BaseModel]) -> str:
    return ", ".join(f"`{name}`" for name in model.model_fields)


def _forms(tables: Tables, wanted: str) -> str:
    found = []
    for (side, modality), rule in tables.media.items():
        if side == wanted:
            forms = [form for form in ("url", "data", "file") if getattr(rule, form) is not None]
            found.append(f"{modality} ({', '.join(forms)})")
    return ", ".join(found)
