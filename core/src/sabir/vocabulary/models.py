"""The known facts of models: rows that apply to all models whose names begin with a prefix.

name ──longest prefix──▶ row ──overridden by the caller──▶ ModelInfo
 └── an unknown version of a known line ──▶ the newest row of that line; `follows` names it

A file `models.toml` lists the known models of a package, one row for each prefix. `facts` are for the author's own use.

    [[models]]
    prefix = "large-"
    family = "large"
    modalities = ["image"]
    facts = {released = "2026-05"}
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import takewhile
from operator import eq
from typing import Any, Literal, TypeAlias, TypedDict

from pydantic import Field, ValidationError

from sabir.base.errors import PluginError, SettingsInvalid, one_line
from sabir.base.models import Frozen, describe_validation_error
from sabir.base.values import FrozenDict, JSONObjectDocumentField, JSONText, JSONValue, object_view
from sabir.vocabulary.media import Modality

ReasoningEffort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
"""How much a model reasons before it answers, from the least to the most. A model may accept only some of
the values.
"""
FeatureStatus: TypeAlias = Literal["accepted", "ignored", "refused", "unknown"]
"""Whether a model accepts a setting or a feature: "accepted", "ignored" (accepted without effect), "refused", or
"unknown" if the settings that the model accepts are listed and this one is in no list.
"""


WHILE_REASONING = "+reasoning"
"""The suffix of names in the lists of ModelInfo. A name with it applies only to requests in which the model reasons."""


class ModelFacts(TypedDict, total=False):
    """The keys of `model_facts=`: the fields of ModelInfo that a program may override. Keys that are left out keep the
    known facts.
    """

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
    """What is known of all models whose names begin with `prefix`: limits, supported media and settings, with sources.

    Read the facts with `sabir.models(provider)`; override them with `sabir.adapter(…, model_facts={…})`.
    `context_tokens` and `output_tokens` are the most tokens of the context and of a reply. `reasoning` says whether the
    model can reason. None means unknown.

    `modalities` lists the kinds of media that the model reads; with None, every kind that the API format
    accepts is sent. `efforts` lists the accepted values of `reasoning_effort`; with None, every value that the API
    format has is sent. `rejects` names settings that the model refuses and features that the model lacks
    ("later_system", "results_media", "ending_assistant"). `ignores` names settings that the model accepts without
    effect. Neither is sent, and each is reported as a loss. `accepts` names settings with a documented effect; None
    means that every setting in neither `rejects` nor `ignores` counts as accepted.

    A name in these three lists is a setting ("temperature"), a value of a setting ("option_choice.required"), a form of
    media ("image.url", "results.image"), a vendor setting ("vendor.user") or a field of streamed requests. The suffix
    "+reasoning" limits a name to requests in which the model reasons. `quirks` names deviations from the dialect.

    `family` is the model's product line. `sources` lists the pages that document the facts, each as a date, a space and
    a URL. If the facts of a known model are assumed for an unknown model, `follows` is the known model's prefix, and
    `prefix` the unknown model's name; otherwise `follows` is "".
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
        """Further facts, by names that the provider's plugin chose, as JSON values. Core does not use them."""
        return object_view(self.facts_json)

    def status_of(self, *names: str) -> FeatureStatus:
        """Return whether the models accept a setting or a feature.

        With several names, the first name that is in `rejects`, `ignores` or `accepts` decides. If no list contains any
        of the names, return "accepted" if `accepts` is None, else "unknown".
        """
        lists: tuple[tuple[FeatureStatus, tuple[str, ...]], ...] = (
            ("refused", self.rejects), ("ignored", self.ignores), ("accepted", self.accepts or ()),
        )  # fmt: skip
        listed = (status for name in names for status, column in lists if name in column)
        return next(listed, "accepted" if self.accepts is None else "unknown")

    def overridden(self, facts: "ModelInfo | ModelFacts | None") -> "ModelInfo":
        """Return a copy in which each fact in `facts` replaces the fact of the same name. `prefix` does not change.

        If `facts` is a ModelInfo, only its fields that were set are used. Raises SettingsInvalid for an unknown fact or
        an invalid value.
        """
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
"""The facts of a model that no row describes: nothing is known, so everything that the API format accepts is sent."""


def longest_first(infos: Iterable[ModelInfo]) -> tuple[ModelInfo, ...]:
    """Return the rows sorted by the length of their prefixes, longest first."""
    return tuple(sorted(infos, key=lambda info: (-len(info.prefix), info.prefix)))


def find_model(infos: Iterable[ModelInfo], name: str, family: str = "") -> ModelInfo:
    """Return the row with the longest prefix that the name begins with. If there is none, look `family` up instead.

    `family` is for clouds that rename models: no row may fit `eu.maker.large-v1:0`, but one may fit `large-v1`.
    An unknown version of a known model line (`large-5.9`, if a row has the prefix `large-5`) gets a copy of the newest
    known version's row, with the name as `prefix` and that row's prefix as `follows`. Returns UNKNOWN_MODEL if nothing
    is known.
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
    """Return the row of the newest known version of the name's model line, or None if the line is unknown.

    `large-7` gets the newest row `large-…`, `large-5.9` and `large-5-new` the newest row `large-5…`, `large-oss` none.
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


@cache
def packaged_models(package: str) -> tuple[ModelInfo, ...]:
    """Return the models listed in the `models.toml` of a Python package, longest name prefixes first. Read once.

    Raises PluginError for an invalid file, and FileNotFoundError if the package has no such file.
    """
    return read_models(files(package).joinpath("models.toml").read_text("utf-8"))


def read_models(text: str) -> tuple[ModelInfo, ...]:
    """Return the rows in the text of a models.toml, longest prefixes first. Raises PluginError for text that is not
    TOML, for other tables than `models`, for an invalid row, and for two rows with the same prefix.
    """
    import tomllib  # imported only where a plugin lists models, because it is slow

    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PluginError(f"models.toml is not TOML: {one_line(str(error))}") from None
    rows = document.pop("models", [])
    if document or not isinstance(rows, list):
        names = ", ".join(document) or "models"
        raise PluginError(f"models.toml has {names!r}; expected only [[models]] rows")
    infos: dict[str, ModelInfo] = {}
    for number, row in enumerate(rows, start=1):
        try:
            info = ModelInfo.model_validate(row)
        except ValidationError as error:
            prefix = row.get("prefix", "") if isinstance(row, dict) else ""
            fault = one_line(describe_validation_error(error))
            raise PluginError(f"models.toml row {number} ({prefix!r}): {fault}") from None
        if info.prefix in infos:
            raise PluginError(f"models.toml row {number}: prefix {info.prefix!r} already has a row; merge the two rows")
        infos[info.prefix] = info
    return longest_first(infos.values())
