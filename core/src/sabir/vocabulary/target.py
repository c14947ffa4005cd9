"""Where a conversation goes: a target, and what is known of its model."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from pydantic import Field

from sabir.base.models import Frozen
from sabir.base.values import FrozenDict, JSONObjectDocumentField, JSONText, object_view, parse_json
from sabir.vocabulary.media import Modality
from sabir.vocabulary.parts import Text

FEATURES = ("later_system", "results_media", "ending_assistant")
"""What `ModelInfo.rejects` may name beside wire settings: a system message after the start, media in option results, a
conversation that ends with the assistant."""


class Hinted(Protocol):
    """A medium or an option."""

    @property
    def vendor_json(self) -> JSONText | None:
        """Its hints, by provider."""


class Target(Frozen):
    """Where a rendering goes."""

    provider: Text
    dialect: Text
    model: Text = ""
    endpoint: Text = ""

    def __str__(self) -> str:
        """Provider and model, as a user writes them."""
        return f"{self.provider}:{self.model}" if self.model else self.dialect

    def hints_of(self, piece: Hinted) -> Mapping[str, Any]:
        """The vendor hints of a medium or an option that a rendering left for this target; those that are set."""
        found = {} if piece.vendor_json is None else parse_json(piece.vendor_json).get(self.provider)
        return found if isinstance(found, dict) else {}


class ModelInfo(Frozen):
    """What is known of the models whose names begin with `prefix`; data, user-overridable.

    `modalities` are those the model reads; None where it is not known, and then nothing is refused. `rejects` names
    the wire settings that these models refuse, and what else they cannot take: "later_system", "results_media",
    "ending_assistant", of which the last is for the dialect to act on. `family` names their line for whoever lists
    them; which models read each other's signed state is for `Dialect.family` to say.
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
        """What else the author of the row knows, as JSON values; core reads none of it."""
        return object_view(self.facts_json)


UNKNOWN_MODEL = ModelInfo(prefix="")
"""What is known of a model that no row names: nothing, so that nothing is refused."""


def longest_first(infos: Iterable[ModelInfo]) -> tuple[ModelInfo, ...]:
    """Rows in the order in which they are tried."""
    return tuple(sorted(infos, key=lambda info: (-len(info.prefix), info.prefix)))


def find_model(infos: Iterable[ModelInfo], name: str, family: str = "") -> ModelInfo:
    """The row with the longest prefix that begins the name, or else the family's; `ModelInfo(prefix="")` for neither.

    A cloud's own name of a model (`eu.maker.large-v1:0`) begins as no row does; its family is the maker's name.
    """
    rows = longest_first(infos)
    matching = (info for each in (name, family) if each for info in rows if each.startswith(info.prefix))
    return next(matching, UNKNOWN_MODEL)
