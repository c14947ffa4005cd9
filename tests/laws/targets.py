"""One model of each behaviour: of every provider's dialects, each distinct row of what is known, and an unknown name.

sabir.providers() ─▶ its dialects ─▶ its rows, each once whatever their prefixes ─▶ a target
"""

from functools import cache
from typing import NamedTuple

import sabir
from sabir.vocabulary.messages import Origin
from sabir.vocabulary.models import ModelInfo

UNKNOWN = "unheard-of-1"


class Wire(NamedTuple):
    name: str
    adapter: sabir.ModelAdapter

    @property
    def home(self) -> Origin:
        target = self.adapter.target
        return Origin(provider=target.provider, dialect=target.dialect, endpoint=target.endpoint, model=target.model)


@cache
def wires() -> tuple[Wire, ...]:
    """All of them; of providers that several dialects have, each."""
    return tuple(
        Wire(name, sabir.adapter(name, api_key="none"))
        for provider in sabir.providers()
        for place in provider.names
        if "." in place
        for name in (f"{place}:{model}" for model in _models(place))
    )


def _models(place: str) -> list[str]:
    """A name for each row that says something else than the others, and one that no row begins."""
    known = {UNKNOWN_ROW: UNKNOWN}
    for row in sabir.adapter(f"{place}:{UNKNOWN}", api_key="none").provider.models():
        known.setdefault(row.model_copy(update={"prefix": "", "family": ""}), row.prefix or UNKNOWN)
    return list(dict.fromkeys(known.values()))


UNKNOWN_ROW = ModelInfo(prefix="")
