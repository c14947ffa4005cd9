"""Endpoints that use another vendor's API format, described as data, with the source of each fact.

    package/gateways/NAME.toml
        [[rows]] name, url, dialects …          ──▶ Row ──▶ RowProvider
        [[rows.entries]] models, facts, sources ──▶ ModelInfo, one for each prefix of model names

An entry applies to the models whose names begin with one of its prefixes. Entries with longer prefixes add to entries
with shorter prefixes and override them. If a row has entries, settings and features in none of them are unknown: they
are sent and listed in `Rendering.unchecked`.
"""

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

from pydantic import Field, ValidationError

from sabir.authoring.providers import SDKProvider
from sabir.base.errors import PluginError, one_line
from sabir.base.models import Frozen, describe_validation_error
from sabir.base.values import FrozenDict, JSONText, object_view
from sabir.contract.dialect import NameMap
from sabir.contract.provider import Access, Credential
from sabir.vocabulary.media import Modality
from sabir.vocabulary.models import WHILE_REASONING, ModelInfo, ReasoningEffort, longest_first

OWN_SETTINGS = "own_settings"
"""The name in `ModelInfo.facts` for the `own_settings` of the model's row."""
_LISTS = ("accepts", "ignores", "rejects")
_FACTS = ("efforts", "modalities", "reasoning", "context_tokens", "output_tokens")


class RowEntry(Frozen):
    """Facts about some models of an endpoint, all from the same sources. A table `[[rows.entries]]` in a gateway's TOML
    file.

    `models` are prefixes of model names and `dialects` short names; the defaults mean all. `accepts`, `ignores` and
    `refuses` list settings and features by the names of `ModelInfo.rejects`. With `while_reasoning` True, `ignores` and
    `refuses` apply only to requests in which the model reasons. `renames` maps a setting to the field that this
    endpoint uses for it. `adds` are quirks: deviations from the dialect, by the dialect's names.

    `efforts`, `modalities`, `reasoning`, `context_tokens` and `output_tokens` are facts as in ModelInfo; None means
    that the entry does not say. Each of `sources` is "DATE URL", or "recorded NAME" for a recorded exchange; at least
    one is required.
    """

    models: tuple[str, ...] = ("",)
    dialects: tuple[str, ...] = ()
    while_reasoning: bool = False
    accepts: tuple[str, ...] = ()
    ignores: tuple[str, ...] = ()
    refuses: tuple[str, ...] = ()
    renames_json: NameMap = Field(default=JSONText("{}"), alias="renames")
    adds: tuple[str, ...] = ()
    efforts: tuple[ReasoningEffort, ...] | None = None
    modalities: tuple[Modality, ...] | None = None
    reasoning: bool | None = None
    context_tokens: int | None = None
    output_tokens: int | None = None
    sources: tuple[str, ...] = Field(min_length=1)

    @property
    def renames(self) -> FrozenDict:
        """Setting → the field that this endpoint uses for it."""
        return object_view(self.renames_json)

    def names(self, column: str) -> tuple[str, ...]:
        """Return the entry's names for the list `column` of ModelInfo: "accepts", "ignores" or "rejects" (`refuses`
        here).

        With `while_reasoning`, names for "ignores" and "rejects" get the suffix "+reasoning".
        """
        names: tuple[str, ...] = self.refuses if column == "rejects" else getattr(self, column)
        suffix = WHILE_REASONING if self.while_reasoning and column != "accepts" else ""
        return tuple(f"{name}{suffix}" for name in names)


class Row(Frozen):
    """An endpoint that uses another vendor's API format, described as data: the file `gateways/NAME.toml` of a package.
    RowProvider turns a row into a provider.

    `name` is the provider's name, `url` the endpoint and `docs` the vendor's documentation page. `dialects` are short
    names, the default first. `key_variables` are environment variables for the key; if empty, no key is required.
    `url_variables` are environment variables for another endpoint. The first variable that is set and not empty counts.
    `quirks` are deviations from the dialect that apply to every model. `own_settings` maps settings that only this
    endpoint has to their JSON types. `entries` are the facts about models.

    >>> from sabir.authoring import Row
    >>> row = Row(name="acme", url="https://api.acme.example/v1", docs="https://acme.example/docs")
    >>> row.dialects
    ('chat',)
    """

    name: str
    url: str
    docs: str
    dialects: tuple[str, ...] = ("chat",)
    key_variables: tuple[str, ...] = ()
    url_variables: tuple[str, ...] = ()
    quirks: frozenset[str] = frozenset()
    own_settings_json: NameMap = Field(default=JSONText("{}"), alias="own_settings")
    entries: tuple[RowEntry, ...] = ()

    @property
    def own_settings(self) -> FrozenDict:
        """Setting of this endpoint → its JSON type."""
        return object_view(self.own_settings_json)

    @classmethod
    @cache
    def load_packaged(cls, package: str, name: str) -> "Row | None":
        """Return the row in the file `gateways/NAME.toml` of a Python package; None if there is no such file, or if the
        name is not a Python identifier. The file is read once. Raises the errors of `from_toml`.
        """
        file = files(package).joinpath("gateways", f"{name}.toml")
        return cls.from_toml(file.read_text("utf-8")) if name.isidentifier() and file.is_file() else None

    @classmethod
    def load_all_packaged(cls, package: str) -> dict[str, "Row"]:
        """Return all rows (descriptions of endpoints) in the folder `gateways` of a Python package, by name. Raises the
        errors of `from_toml`.
        """
        names = (path.name.removesuffix(".toml") for path in files(package).joinpath("gateways").iterdir())
        return {row.name: row for row in (cls.load_packaged(package, name) for name in names) if row is not None}

    @classmethod
    def from_toml(cls, text: str) -> "Row":
        """Return the row in the text of a TOML file with exactly one table `[[rows]]`. Raises PluginError, which names
        the invalid field, for an invalid row, and usually ValueError or KeyError for text of another form.
        """
        (document,) = tomllib.loads(text)["rows"]
        try:
            return cls.model_validate(document)
        except ValidationError as error:
            fault = one_line(describe_validation_error(error))
            raise PluginError(f"row {document.get('name', '')!r}: {fault}") from None

    def models(self, dialect: str, quirks: Mapping[str, str]) -> tuple[ModelInfo, ...]:
        """Return the known facts about models for a dialect's short name: one ModelInfo for each prefix and for "",
        the longest prefixes first. A row without entries gives none.

        `quirks` maps a statement of an entry, "refuses NAME" or "SETTING: FIELD" for a rename, to the dialect's quirk
        that implements it. Raises PluginError for a rename without a quirk.
        """
        entries = [entry for entry in self.entries if not entry.dialects or dialect in entry.dialects]
        prefixes = {prefix for entry in entries for prefix in entry.models} | {""} if self.entries else ()
        return longest_first(self._facts_for(prefix, entries, quirks) for prefix in prefixes)

    def _facts_for(self, prefix: str, entries: Iterable[RowEntry], quirks: Mapping[str, str]) -> ModelInfo:
        """Return the facts for one prefix. An entry with a longer prefix overrides an entry with a shorter prefix."""
        matches = [(max(map(len, own)), each) for each in entries if (own := [*filter(prefix.startswith, each.models)])]
        ordered = [entry for _, entry in sorted(matches, key=lambda pair: pair[0])]
        facts: dict[str, object] = {}
        lists: dict[str, dict[str, None]] = {column: {} for column in _LISTS}
        adds: dict[str, None] = {}
        for entry in ordered:
            facts |= {name: value for name in _FACTS if (value := getattr(entry, name)) is not None}
            for column, name in [(each, name) for each in _LISTS for name in entry.names(each)]:
                quirk = quirks.get(f"refuses {name}") if column == "rejects" else None
                adds |= {quirk: None} if quirk else {}
                for listed in lists.values():
                    listed.pop(name, None)
                # The quirk sends something else instead, so core must not drop the setting.
                lists["accepts" if quirk else column][name] = None
            adds |= dict.fromkeys((*entry.adds, *self._rename_quirks(entry, quirks)))
        lists["accepts"] |= dict.fromkeys(f"vendor.{name}" for name in self.own_settings)
        known: dict[str, object] = {column: tuple(names) for column, names in lists.items()}
        sources = dict.fromkeys(source for entry in ordered for source in entry.sources)
        known |= {"prefix": prefix, "quirks": tuple(adds), "sources": tuple(sources)}
        known["facts"] = {OWN_SETTINGS: self.own_settings} if self.own_settings else {}
        return ModelInfo.model_validate({**facts, **known})

    def _rename_quirks(self, entry: RowEntry, quirks: Mapping[str, str]) -> Iterable[str]:
        """Yield the quirk that implements each rename of an entry. Raises PluginError for a rename without a quirk."""
        for setting, field in entry.renames.items():
            if (rename := f"{setting}: {field}") not in quirks:
                known = f"known quirks: {', '.join(quirks)}"
                raise PluginError(f"row {self.name!r} renames {rename}, which has no quirk to rename it; {known}")
            yield quirks[rename]


class RowProvider(SDKProvider):
    """Base class of a provider that is described by a Row. A subclass adds the dialects and the connections, as for
    SDKProvider.

    `row_quirks` is the argument `quirks` of `Row.models`. The key is optional if the row's URL begins with
    http://localhost, and required otherwise if the row has `key_variables`.
    """

    row_quirks: Mapping[str, str] = {}
    """Statement of a row's entry, such as "refuses stop" → quirk of the dialect. See `Row.models`."""

    def __init__(self, row: Row) -> None:
        self._row = row
        self.name, self.dialects, self.url, self.url_variables = row.name, row.dialects, row.url, row.url_variables
        default = "" if row.url.startswith("http://localhost") else None
        self.credentials = (Credential(variables=row.key_variables, default=default),) if row.key_variables else ()
        self._facts: dict[str, tuple[ModelInfo, ...]] = {}

    def quirks(self, access: Access) -> frozenset[str]:
        """Return the quirks of the row together with the quirks of the endpoint."""
        return self._row.quirks | super().quirks(access)

    def models(self) -> tuple[ModelInfo, ...]:
        """Return the known facts about models for the default dialect, longest name prefixes first."""
        return self.models_at(self.dialects[0])

    def models_at(self, dialect: str) -> tuple[ModelInfo, ...]:
        """Return the known facts about models for a dialect's full or short name, longest name prefixes first. A row
        without entries uses the `models.toml` of `package`.
        """
        if not self._row.entries:
            return super().models()
        short_name = dialect.rpartition(".")[2]
        if short_name not in self._facts:
            self._facts[short_name] = self._row.models(short_name, self.row_quirks)
        return self._facts[short_name]
