"""What a call is made with: the target and the known facts of its model, and one neutral set of settings, strict.

    adapter's settings ──laid_over by the call's──▶ Settings ──SettingsReader──▶ a dialect's request

A field that the call sets wins over the adapter's. A vendor's own settings stand under the provider's name. The reader
knows which settings a dialect read: a setting that is set and was not read is a loss, never silent.
"""

import difflib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypeAlias, TypedDict, Unpack
from weakref import WeakKeyDictionary

from pydantic import BaseModel, BeforeValidator, Field, ValidationError, model_validator

from sabir.base.errors import SettingsInvalid, WrongWord, one_line
from sabir.base.failures import CallError
from sabir.base.models import Frozen, describe
from sabir.base.surface import described
from sabir.base.values import (
    FrozenDict,
    JSONObjectDocumentField,
    JSONObjectField,
    JSONText,
    JSONValue,
    ObjectView,
    object_view,
    parse_json,
)
from sabir.vocabulary.models import ReasoningEffort
from sabir.vocabulary.parts import NonEmpty, Sections, Text, check_sections

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

    @property
    def full_name(self) -> str:
        """`provider.dialect:model`, without the model if it has none."""
        spoken = f"{self.provider}.{self.dialect.rpartition('.')[2]}"
        return f"{spoken}:{self.model}" if self.model else spoken

    def is_named(self, name: str) -> bool:
        """Return whether `provider[.dialect][:model]` or "*" names this target."""
        place, _, model = name.partition(":")
        provider, _, dialect = place.partition(".")
        spoken = self.dialect.rpartition(".")[2]
        is_here = provider == self.provider and dialect in ("", spoken) and model in ("", self.model)
        return is_here or name == "*"

    def hints_of(self, piece: Hinted) -> Mapping[str, Any]:
        """The vendor hints of a medium or an option that a rendering left for this target; those that are set."""
        found = {} if piece.vendor_json is None else parse_json(piece.vendor_json).get(self.provider)
        return found if isinstance(found, dict) else {}


UnsupportedMedia: TypeAlias = Literal["placeholder", "drop"]


WIRE_SETTINGS = (
    "max_output_tokens", "temperature", "top_p", "stop", "seed", "reasoning_effort", "option_choice",
    "parallel_options", "response_format",
)  # fmt: skip
"""The settings that dialects encode; core itself obeys the others."""
LONGEST_SILENCE = 600.0
"""The default of `idle` if `timeout` is not set, in seconds."""
NEVER_READ = "never looked at it"
"""The reason of the loss of a setting that a dialect did not read; it follows the dialect's name."""


class RetryPolicy(Frozen):
    """When a failed call is sent again; pure: the policy says how long to wait, the driver waits.

    `attempts` counts all requests, the first included. Delays are in seconds: the provider's retry-after if it gave
    one (a call whose retry-after exceeds `longest_retry_after` is given up), else `first_delay`, doubled at each
    attempt up to `longest_delay`.
    """

    attempts: int = Field(default=3, ge=1)
    first_delay: float = Field(default=0.5, ge=0, allow_inf_nan=False)
    longest_delay: float = Field(default=8.0, ge=0, allow_inf_nan=False)
    longest_retry_after: float = Field(default=120.0, ge=0, allow_inf_nan=False)

    def delay(self, attempt: int, error: CallError, jitter: float = 1.0) -> float | None:
        """Seconds to wait before the attempt after number `attempt` (from 1), or None to give up.

        `jitter` (for example 0.5 … 1.0) scales the policy's own delay; a provider's retry-after is used unchanged.
        """
        if attempt >= self.attempts or not error.retryable:
            return None
        if error.retry_after is not None:
            return error.retry_after if error.retry_after <= self.longest_retry_after else None
        doubled: float = self.first_delay * 2.0 ** min(attempt - 1, 60)
        return min(doubled, self.longest_delay) * jitter


MEGABYTE = 2**20
BYTES_PER_VALUE = 128
"""A parsed JSON value takes up to 250 bytes of memory, however few its characters."""
BYTES_PER_BLOCK = 4096
"""An option call and its message take up to 2,500 bytes of memory."""
LEAST_VALUES = 10_000
LEAST_BLOCKS = 256


class Bounds(Frozen):
    """The largest answer that a call accepts; a larger one raises ResponseInvalid, which names the bound.

    `body_bytes` limits a whole answer, as one body or as a stream; `event_bytes` one event of a stream. Both count
    decompressed bytes. Python stores a text with characters beyond U+FFFF, such as emoji, in four bytes a character:
    a body with such characters may have half of its bound, and so may all events with such characters together.
    `error_bytes` limits how much of an error's body is read; the error of the status is raised whatever its length.

    `values` limits the JSON values of a body, of an event, and of all that a stream leaves to be kept; they are counted
    before parsing. By default they are one for each 128 bytes of `body_bytes`. `blocks` limits the parts, option calls,
    alternatives and citations of a reply: by default one for each 4,096 bytes of `body_bytes`.

    A call allocates at most four times `body_bytes`, if `event_bytes` is at most half of it and the others are left at
    their defaults. The largest of 3,700 recorded replies had 0.7 MB, 1,344 values in one body and 8 option calls.
    """

    body_bytes: int = Field(default=64 * MEGABYTE, gt=0)
    event_bytes: int = Field(default=32 * MEGABYTE, gt=0)
    error_bytes: int = Field(default=MEGABYTE, gt=0)
    values: int | None = Field(default=None, gt=0)
    blocks: int | None = Field(default=None, gt=0)

    @property
    def most_values(self) -> int:
        """The value of `values`, or its default for this `body_bytes`."""
        return self.values or max(LEAST_VALUES, self.body_bytes // BYTES_PER_VALUE)

    @property
    def most_blocks(self) -> int:
        """The value of `blocks`, or its default for this `body_bytes`."""
        return self.blocks or max(LEAST_BLOCKS, self.body_bytes // BYTES_PER_BLOCK)


class ResponseFormat(Frozen):
    """The JSON schema that the reply's text must satisfy."""

    name: NonEmpty
    schema_document: JSONObjectDocumentField = Field(alias="schema")
    description: Text | None = None

    @property
    def schema_view(self) -> FrozenDict:
        """The schema as an immutable mapping, its keys in the order given."""
        return object_view(self.schema_document)


_forms: WeakKeyDictionary[type[BaseModel], ResponseFormat] = WeakKeyDictionary()
"""Model class → its ResponseFormat, made once, because programs ask for the same classes again and again."""


def _as_response_format(value: object) -> object:
    if isinstance(value, type) and issubclass(value, BaseModel):
        if value not in _forms:
            schema = value.model_json_schema()
            _forms[value] = ResponseFormat(name=value.__name__, schema=schema, description=schema.get("description"))
        return _forms[value]
    if isinstance(value, Mapping) and not {"name", "schema"} <= set(value):
        return ResponseFormat(name=str(value.get("title") or "output"), schema=dict(value))
    return value


def _as_tuple(value: object) -> object:
    return (value,) if isinstance(value, str) else None if value in ([], ()) else value


def _as_retry_policy(value: object) -> object:
    return RetryPolicy(attempts=value + 1) if isinstance(value, int) and not isinstance(value, bool) else value


class SettingsGiven(TypedDict, total=False):
    """The arguments of `Settings`: its fields, some in looser types, which pydantic converts."""

    max_output_tokens: int | None
    temperature: float | None
    top_p: float | None
    stop: str | Sequence[str] | None
    seed: int | None
    reasoning_effort: ReasoningEffort | None
    option_choice: str | None
    parallel_options: bool | None
    response_format: type[BaseModel] | ResponseFormat | Mapping[str, JSONValue] | None
    timeout: float | None
    idle: float | None
    total: float | None
    bounds: Bounds | None
    retries: RetryPolicy | int | None
    media_labels: bool | None
    unsupported_media: UnsupportedMedia | None
    vendor: Sections
    extra_body: Mapping[str, JSONValue]
    extra_body_for: Sections
    extra_headers: Mapping[str, str]
    extra_headers_for: Mapping[str, Mapping[str, str]]


class Settings(Frozen):
    """The settings of a call; every field may be left out.

    `stop` takes one string or several (an empty list is None); `option_choice` is "auto", "none", "required" or an
    option's name; `response_format` a pydantic model class or a JSON schema; `retries` a RetryPolicy or the number of
    retries.

    Three settings bound the time of a call, in seconds; a call that takes longer raises CallTimedOut, which names the
    setting. `timeout` bounds a complete call with its retries and pauses, or a stream until its response begins.
    `idle` bounds the wait for each event of a stream; its default is `timeout`, else 600. `total` bounds any call from
    its beginning to its end, a stream with the time of its reader included; by default, a stream has no such limit.
    Without `timeout` and `total`, only the SDK's own timeout bounds each read of a complete call, so a server that
    sends slowly can keep it waiting for ever.

    `bounds` says how long an answer may be.

    `vendor` maps a provider's name to its own settings, validated by its plugin and never sent to another. `extra_body`
    and `extra_headers` are sent verbatim, unchecked, to the adapter that has these settings; of several targets (a
    fallback's members, the models of one conversation) to the first. `extra_body_for` and `extra_headers_for` map the
    name of a target, `provider[.dialect][:model]`, to the same for it alone; "*" names every target. Fields for other
    targets are losses, unless there is an entry for this one too.
    Raises SettingsInvalid, in one line, for an unknown setting or an invalid value.
    """

    max_output_tokens: int | None = Field(default=None, gt=0)
    temperature: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    top_p: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)
    stop: Annotated[tuple[Text, ...] | None, BeforeValidator(_as_tuple)] = None
    seed: int | None = None
    reasoning_effort: ReasoningEffort | None = None
    option_choice: NonEmpty | None = None
    parallel_options: bool | None = None
    response_format: Annotated[ResponseFormat | None, BeforeValidator(_as_response_format)] = None
    timeout: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    idle: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    total: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    bounds: Bounds | None = None
    retries: Annotated[RetryPolicy | None, BeforeValidator(_as_retry_policy)] = None
    media_labels: bool | None = None
    unsupported_media: UnsupportedMedia | None = None
    vendor_json: JSONObjectDocumentField = Field(default=JSONText("{}"), alias="vendor")
    extra_body_json: JSONObjectDocumentField = Field(default=JSONText("{}"), alias="extra_body")
    extra_body_for_json: JSONObjectDocumentField = Field(default=JSONText("{}"), alias="extra_body_for")
    extra_headers_json: JSONObjectField = Field(default=JSONText("{}"), alias="extra_headers", repr=False)
    extra_headers_for_json: JSONObjectField = Field(default=JSONText("{}"), alias="extra_headers_for", repr=False)

    @described
    def __init__(self, /, **fields: Unpack[SettingsGiven]) -> None:
        """The settings as given; raises SettingsInvalid in one line, where pydantic's own error takes several."""
        try:
            super().__init__(**dict[str, Any](fields))
        except ValidationError as error:
            raise SettingsInvalid(_refusal(error)) from None

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @model_validator(mode="after")
    def _vendor_sections_are_objects(self) -> "Settings":
        check_sections(self.vendor)
        check_sections(self.extra_body_for, "extra_body_for", "fields for that target")
        check_sections(self.extra_headers_for, "extra_headers_for", "headers for that target")
        for headers in (self.extra_headers, *self.extra_headers_for.values()):
            for name, value in headers.items():
                if not isinstance(value, str):
                    raise ValueError(f"extra_headers[{name!r}] must be a string")
        return self

    vendor: ClassVar = ObjectView("vendor_json", "Provider name → its own settings.")
    extra_body: ClassVar = ObjectView("extra_body_json", "Fields sent verbatim in the request's body.")
    extra_body_for: ClassVar = ObjectView("extra_body_for_json", "Target's name → fields sent verbatim in its bodies.")
    extra_headers: ClassVar = ObjectView("extra_headers_json", "Headers sent verbatim.")
    extra_headers_for: ClassVar = ObjectView("extra_headers_for_json", "Target's name → headers sent verbatim to it.")

    def laid_over(self, defaults: "Settings") -> "Settings":
        """Return these settings where they are set and the defaults elsewhere, also for each target's extra fields."""
        if not self.__pydantic_fields_set__ or not defaults.__pydantic_fields_set__:
            return self if self.__pydantic_fields_set__ else defaults
        values: dict[str, Any] = {name: getattr(self, name) for name in self.model_fields_set}
        for name in ("extra_body_for", "extra_headers_for"):
            if (own := getattr(self, name)) and (others := getattr(defaults, name)):
                values[f"{name}_json"] = {**others, **own}
        return defaults.model_copy(update=values)

    def owned_by(self, name: str) -> "Settings":
        """Return these settings with `extra_body` and `extra_headers` for the target of that name alone."""
        values = {each: getattr(self, each) for each in self.model_fields_set}
        for extra in ("extra_body", "extra_headers"):
            if fields := getattr(self, extra):
                sections = getattr(self, f"{extra}_for")
                values[f"{extra}_for_json"] = {**sections, name: {**sections.get(name, {}), **fields}}
                del values[f"{extra}_json"]
        return Settings().model_copy(update=values)

    @staticmethod
    def refuse_misnamed(function: str, misnamed: Mapping[str, object], known: tuple[str, ...]) -> None:
        """Raise WrongWord for the first argument whose name a function does not know, with the right word."""
        for name in misnamed:
            if name not in known:
                raise WrongWord(f"{function}() takes no `{name}`; {_remedy(name, known)}")


def _refusal(error: ValidationError) -> str:
    for each in error.errors(include_url=False, include_input=False, include_context=False):
        if each["type"] == "extra_forbidden" and len(each["loc"]) == 1:
            name = str(each["loc"][0])
            return one_line(f"Settings has no `{name}`; {_remedy(name, _SETTING_NAMES, 'its fields are')}")
    return one_line(f"Settings: {describe(error)}")


class SettingsReader:
    """Settings as a dialect reads them: the reader remembers which were read."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._looked_at: set[str] = set()

    def take(self, name: str) -> Any:
        """The value of a wire setting, of the type of its field in Settings; None if it is not set.

        Raises SettingsInvalid for a name that is no wire setting.
        """
        if name not in WIRE_SETTINGS:
            raise SettingsInvalid(f"{name!r} is no wire setting; they are {', '.join(WIRE_SETTINGS)}")
        self._looked_at.add(name)
        return getattr(self._settings, name)

    def untouched(self) -> tuple[str, ...]:
        """Wire settings that are set and were not read: a fault of the dialect."""
        return tuple(name for name in self.unread() if getattr(self._settings, name) is not None)

    def unread(self) -> tuple[str, ...]:
        """All wire settings that were not read, set or not; a dialect's tests demand that there are none."""
        return tuple(name for name in WIRE_SETTINGS if name not in self._looked_at)


_SETTING = "pass settings=sabir.Settings"
_MISNAMED = {
    "pass options=[…]: what a model may choose is an option here": "tools functions function_declarations",
    f"{_SETTING}(option_choice=…)": "tool_choice function_call functions_call tool_config",
    f"{_SETTING}(parallel_options=…)": "parallel_tool_calls",
    f"{_SETTING}(response_format=…) and read reply.parse(…)": "response_model output_type output_config text_format",
    f"{_SETTING}(max_output_tokens=…)": "max_tokens max_completion_tokens max_output",
    f"{_SETTING}(stop=…)": "stop_sequences",
    f"{_SETTING}(reasoning_effort=…)": "reasoning thinking",
    f"{_SETTING}(retries=…)": "max_retries",
    f"{_SETTING}(…)": "config generation_config",
    "give the conversation first: a str, or messages made by sabir.user(…) and its siblings": (
        "input prompt contents history message"
    ),
    "begin the conversation with sabir.system(…)": "system instructions system_instruction system_prompt",
    "name the model once: sabir.adapter('provider:model')": "model provider",
    "call stream(…) or stream_sync(…)": "stream",
    "put it into the adapter's base_url or client": "extra_query",
    "pass base_url=…": "api_base endpoint url",
    "wrap the adapter: sabir_media.fetching(adapter, fetcher)": "fetcher",
    "pass api_key=…": "key token",
    "pass client=, the vendor SDK's client": "http_client",
    "pass speaks_as=…": "policy",
}
REMEDIES: Mapping[str, str] = {name: remedy for remedy, names in _MISNAMED.items() for name in names.split()}
"""Another library's name → the remedy: sabir's name or call."""

_SETTING_NAMES = tuple(field.alias or name for name, field in Settings.model_fields.items())


def _remedy(name: str, known: tuple[str, ...], list_opening: str = "it takes") -> str:
    """Return what to write instead of a name that is not among the known ones."""
    if name in _SETTING_NAMES:
        return f"pass settings=sabir.Settings({name}=…)"
    if name in REMEDIES:
        return REMEDIES[name]
    near = difflib.get_close_matches(name, [*known, *_SETTING_NAMES], n=1)
    if near and near[0] not in known:
        return f"did you mean settings=sabir.Settings({near[0]}=…)?"
    return f"did you mean `{near[0]}`?" if near else f"{list_opening} {', '.join(known)}"
