"""The known facts of models: rows of data by the beginning of a name, and the rows that unknown models follow.

name ──longest prefix──▶ row ──overridden by the caller──▶ ModelInfo
 └── a later version of a known line ──▶ the newest row of that line; `follows` names it
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from operator import eq
from typing import Any, Literal, TypeAlias, TypedDict

from pydantic import Field, ValidationError

from sabir.base.errors import SettingsInvalid, one_line
from sabir.base.models import Frozen, describe_validation_error
from sabir.base.values import FrozenDict, JSONObjectDocumentField, JSONText, JSONValue, object_view
from sabir.vocabulary.media import Modality

ReasoningEffort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
FeatureStatus: TypeAlias = Literal["accepted", "ignored", "refused", "unknown"]
"""Whether a target takes a setting or a feature; `unknown` if nothing documents it."""


WHILE_REASONING = "+reasoning"
"""The end of a name in `ModelInfo.rejects` or `.ignores` that counts only while the model reasons."""


class ModelFacts(TypedDict, total=False):
    """The fields of `ModelInfo` that a caller may override, as a mapping."""

    family: str
    modalities: Sequence[Modality] | None
    context_tokens: int | None
    output_tokens: int | None
    reasoning: bool | None
    efforts: Sequence[ReasoningEffort] | None
    rejects: Sequence[str]
    ignores: Sequence[str]
    accepts: Sequence[str] | None
    quirks: Sequence[str]
    facts: Mapping[str, JSONValue]


class ModelInfo(Frozen):
    """The known facts of the models whose names begin with `prefix`; data, user-overridable.

    `modalities` are those that the models read; None if unknown, and then no modality is refused. `efforts` are the
    values of `reasoning_effort` that they accept; None if unknown, and then any is sent. `rejects` names the
    wire settings that these models refuse, and the features that they lack: "later_system", "results_media",
    "ending_assistant" (the dialect acts on the last). `ignores` names settings and features that these models accept
    without an effect; like those in `rejects`, they are not sent, and each is a loss. `accepts` names those with a
    documented effect; None means all others. A name in these three lists is a setting ("temperature"), a value of one
    ("option_choice.required"), a form of media ("image.url", "results.image"), a vendor setting ("vendor.user") or a
    field of streamed requests. "+reasoning" after a name limits it to requests in which the model reasons. `quirks` are
    added to those of the endpoint.

    `family` names their model line in lists; `Dialect.family` says which models read each other's signed state.
    `sources` state these facts: a date, a space and a URL each. `follows` is set on the facts of an unknown model: the
    prefix of the known models from which they are assumed.
    """

    prefix: str
    family: str = ""
    modalities: tuple[Modality, ...] | None = None
    context_tokens: int | None = None
    output_tokens: int | None = None
    reasoning: bool | None = None
    efforts: tuple[ReasoningEffort, ...] | None = None
    rejects: tuple[str, ...] = ()
    ignores: tuple[str, ...] = ()
    accepts: tuple[str, ...] | None = None
    quirks: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    follows: str = ""
    facts_json: JSONObjectDocumentField = Field(default=JSONText("{}"), alias="facts")

    @property
    def facts(self) -> FrozenDict:
        """Further facts from the author of the row, as JSON values; core reads none of them."""
        return object_view(self.facts_json)

    def status_of(self, *names: str) -> FeatureStatus:
        """Return whether these models take a setting or a feature; of several names, the first listed one counts."""
        lists: tuple[tuple[FeatureStatus, tuple[str, ...]], ...] = (
            ("refused", self.rejects), ("ignored", self.ignores), ("accepted", self.accepts or ()),
        )  # fmt: skip
        listed = (status for name in names for status, column in lists if name in column)
        return next(listed, "accepted" if self.accepts is None else "unknown")

    def overridden(self, facts: "ModelInfo | ModelFacts | None") -> "ModelInfo":
        """Replace the facts that are set in `facts`; raises SettingsInvalid for an unknown fact or an invalid value."""
        if not facts:
            return self
        changes: dict[str, Any]
        if isinstance(facts, ModelInfo):
            changes = {name: getattr(facts, name) for name in facts.model_fields_set}
        else:
            changes = {**facts}
        try:
            return self.model_copy(update={**changes, "prefix": self.prefix})
        except ValidationError as error:
            raise SettingsInvalid(one_line(f"model_facts: {describe_validation_error(error)}")) from None


UNKNOWN_MODEL = ModelInfo(prefix="")
"""The row of a model that no row names: it knows nothing, so that nothing is refused."""


def longest_first(infos: Iterable[ModelInfo]) -> tuple[ModelInfo, ...]:
    """The rows in the order in which they are tried: longest prefix first."""
    return tuple(sorted(infos, key=lambda info: (-len(info.prefix), info.prefix)))


def find_model(infos: Iterable[ModelInfo], name: str, family: str = "") -> ModelInfo:
    """Return the row with the longest prefix that begins the name, or else the family; UNKNOWN_MODEL for neither.

    A cloud's own name of a model (`eu.maker.large-v1:0`) begins with no row's prefix; its family is the maker's name.
    A later version of a known model line gets the facts of its newest version, and `follows` names that row.
    """
    rows, names = longest_first(infos), [each for each in (name, family) if each]
    for each in names:
        for info in rows:
            if each.startswith(info.prefix) and not (info.prefix and _LATER_VERSION.match(each, len(info.prefix) - 1)):
                return info
    newest = next(filter(None, (_newest(rows, each) for each in names)), None)
    return newest.model_copy(update={"prefix": name, "follows": newest.prefix}) if newest else UNKNOWN_MODEL


_LATER_VERSION = re.compile(r"\d[.-]\d{1,2}(?!\w)")
"""Matches at the end of a row's prefix where the name continues its version: `5.9` after the prefix `large-5`."""
_WORDS = re.compile(r"\d+|[a-z]+")


def _newest(rows: Iterable[ModelInfo], name: str) -> ModelInfo | None:
    """Return the row of the newest version of the model line that the name belongs to; None if it belongs to none.

    `large-7` follows the newest `large-…`, `large-5.9` and `large-5-new` the newest `large-5…`; `large-oss` nothing.
    """
    words = _WORDS.findall(name.lower())
    ranked: list[tuple[int, list[int], int, ModelInfo]] = []
    for info in rows:
        own = _WORDS.findall(info.prefix.lower())
        shared = sum(takewhile(bool, map(eq, words, own)))
        following = words[shared : shared + 1]
        is_later = bool(following) and all(map(_is_version, following + own[shared : shared + 1]))
        if shared and (is_later or _is_version(words[shared - 1])):
            version = [int(word) for word in own if _is_version(word)]
            ranked.append((shared, version, -len({*own}.symmetric_difference(words)), info))
    return max(ranked, key=lambda row: row[:3])[3] if ranked else None


def _is_version(word: str) -> bool:
    return word.isdigit() and len(word) < 3  # longer numbers are dates of snapshots
