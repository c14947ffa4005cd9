"""The target to which a conversation goes, and the known facts of its model."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from pydantic import Field

from sabir.base.models import Frozen
from sabir.base.values import FrozenDict, JSONObjectDocumentField, JSONText, object_view, parse_json
from sabir.vocabulary.media import Modality
from sabir.vocabulary.parts import Text

FEATURES = ("later_system", "results_media", "ending_assistant")
"""The features that `ModelInfo.rejects` may name beside wire settings: a system message after the start, media in
option results, a conversation that ends with the assistant."""


class Hinted(Protocol):
    """A medium or an option."""

    @property
    def vendor_json(self) -> JSONText | None:
        """Its hints, by provider."""


class Target(Frozen):
    """The place to which a rendering is sent: provider, dialect, model and endpoint."""

    provider: Text
    dialect: Text
    model: Text = ""
    endpoint: Text = ""

    def __str__(self) -> str:
        """Provider and model, as a user writes them; the dialect if there is no model."""
        return f"{self.provider}:{self.model}" if self.model else self.dialect

    def hints_of(self, piece: Hinted) -> Mapping[str, Any]:
        """The vendor hints of a medium or an option that a rendering left for this target; those that are set."""
        found = {} if piece.vendor_json is None else parse_json(piece.vendor_json).get(self.provider)
        return found if isinstance(found, dict) else {}


class ModelInfo(Frozen):
    """The known facts of the models whose names begin with `prefix`; data, user-overridable.

    `modalities` are those that the models read; None if unknown, and then no modality is refused. `rejects` names the
    wire settings that these models refuse, and the features that they lack: "later_system", "results_media",
    "ending_assistant" (the dialect acts on the last). `family` names their model line in lists; `Dialect.family` says
    which models read each other's signed state.
    """

    prefix: str
    family: str = ""
    modalities: tuple[Modality, ...] | None = None
    context_tokens: int | None = None
    output_tokens: int | None = None
    reasoning: bool | None = None
    rejects: tuple[str, ...] = ()
    facts_json: JSONObjectDocumentField = Field(default=JSONText("{}"), alias="facts")

    @property
    def facts(self) -> FrozenDict:
        """Further facts from the author of the row, as JSON values; core reads none of them."""
        return object_view(self.facts_json)


UNKNOWN_MODEL = ModelInfo(prefix="")
"""The row of a model that no row names: it knows nothing, so that nothing is refused."""


def longest_first(infos: Iterable[ModelInfo]) -> tuple[ModelInfo, ...]:
    """The rows in the order in which they are tried: longest prefix first."""
    return tuple(sorted(infos, key=lambda info: (-len(info.prefix), info.prefix)))


def find_model(infos: Iterable[ModelInfo], name: str, family: str = "") -> ModelInfo:
    """The row with the longest prefix that begins the name, or else the family's; `ModelInfo(prefix="")` for neither.

    A cloud's own name of a model (`eu.maker.large-v1:0`) begins with no row's prefix; its family is the maker's name.
    """
    rows = longest_first(infos)
    matching = (info for each in (name, family) if each for info in rows if each.startswith(info.prefix))
    return next(matching, UNKNOWN_MODEL)
