"""The settings of a call, the same for all providers, and the target that a call goes to.

    adapter's settings ──laid_over by the call's──▶ Settings ──SettingsReader──▶ a dialect's request

A setting of the call overrides the same setting of the adapter. A vendor's own settings are stored in `vendor`, under
the provider's name. The reader records which settings a dialect read: a setting that is set and was not read is a loss.
"""

import difflib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypeAlias, TypedDict, Unpack
from weakref import WeakKeyDictionary

from pydantic import BaseModel, BeforeValidator, Field, ValidationError, model_validator

from sabir.base.errors import SettingsInvalid, WrongWord, one_line
from sabir.base.failures import CallError
from sabir.base.models import Frozen, describe_validation_error
from sabir.base.surface import show_arguments
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
from sabir.vocabulary.fields import NonEmpty, Text
from sabir.vocabulary.models import ReasoningEffort
from sabir.vocabulary.parts import Sections, check_sections

FEATURES = ("later_system", "results_media", "ending_assistant")
"""The features that `ModelInfo.rejects` may name besides settings: a system message after the first message, media in
option results, and a conversation that ends with a message of the assistant.
"""


class Hinted(Protocol):
    """A media part or an option: an object with vendor hints."""

    @property
    def vendor_json(self) -> JSONText | None:
        """The hints, by provider name, as JSON text; None if there are none."""


class Target(Frozen):
    """Where a request is sent: provider, dialect (API format), model and endpoint (URL without secrets).

    Read the target from `adapter.target` or `rendering.target`.
    """

    provider: Text
    dialect: Text
    model: Text = ""
    endpoint: Text = ""

    def __str__(self) -> str:
        """Return `provider:model`, or the dialect's full name if the model's name is empty."""
        return f"{self.provider}:{self.model}" if self.model else self.dialect

    @property
    def full_name(self) -> str:
        """The name `provider.dialect:model`, with the dialect's short name; without `:model` if `model` is empty."""
        place = f"{self.provider}.{self.dialect.rpartition('.')[2]}"
        return f"{place}:{self.model}" if self.model else place

    def is_named(self, name: str) -> bool:
        """Return whether `name` means this target. `name` is `provider[.dialect][:model]`, where a missing dialect or
        model means any, or "*" for every target.
        """
        place, _, model = name.partition(":")
        provider, _, dialect = place.partition(".")
        short_name = self.dialect.rpartition(".")[2]
        is_here = provider == self.provider and dialect in ("", short_name) and model in ("", self.model)
        return is_here or name == "*"

    def hints_of(self, piece: Hinted) -> Mapping[str, Any]:
        """Return the vendor hints of a media part or an option for this target's provider; empty if there are none.

        Hints under "*" are not included. Before core calls a dialect, it adds those that this API
        accepts to the provider's hints.
        """
        section = {} if piece.vendor_json is None else parse_json(piece.vendor_json).get(self.provider)
        return section if isinstance(section, dict) else {}


UnsupportedMedia: TypeAlias = Literal["placeholder", "drop"]
PromptCache: TypeAlias = Literal[True, "5m", "1h"]
"""Values of the setting `prompt_cache`: True for the provider's usual lifetime, or a lifetime."""


WIRE_SETTINGS = (
    "max_output_tokens", "temperature", "top_p", "stop", "seed", "reasoning_effort", "option_choice",
    "parallel_options", "response_format", "prompt_cache",
)  # fmt: skip
"""The names of the neutral settings, which mean the same for every provider and which a dialect encodes into the
request. The provider's plugin also encodes `vendor`; core applies all other settings itself.
"""
LONGEST_SILENCE = 600.0
"""The default of `Settings.idle` in seconds if `timeout` is not set either."""
NEVER_READ = "does not read this setting"
"""The end of the loss reason for a setting that a dialect did not read; the reason begins with the dialect's name."""


class RetryPolicy(Frozen):
    """How often and after which pauses a failed call is sent again. Pass the policy as
    `Settings(retries=RetryPolicy(…))`.

    `attempts` is the greatest number of requests, the first included (3). Delays are in seconds. If the provider says
    when to retry (`error.retry_after`), the pause is that long; a time over `longest_retry_after` (120) ends the
    retries. Otherwise the first pause is `first_delay` (0.5), and each later pause is twice as long, up to
    `longest_delay` (8); a call multiplies these pauses by a random factor from 0.5 to 1. Only errors with `retryable`
    True are retried. A pause that would exceed `timeout` or `total` ends the retries.

    >>> import sabir
    >>> policy = sabir.RetryPolicy(attempts=5, first_delay=1.0)
    >>> policy.delay(2, sabir.RateLimited("slow down"))
    2.0
    >>> llm = sabir.adapter("echo:m", settings=sabir.Settings(retries=policy))
    """

    attempts: int = Field(default=3, ge=1)
    first_delay: float = Field(default=0.5, ge=0, allow_inf_nan=False)
    longest_delay: float = Field(default=8.0, ge=0, allow_inf_nan=False)
    longest_retry_after: float = Field(default=120.0, ge=0, allow_inf_nan=False)

    def delay(self, attempt: int, error: CallError, jitter: float = 1.0) -> float | None:
        """Return the seconds to wait after attempt number `attempt` (from 1) failed with `error`, or None to stop
        retrying.

        The result is None if `attempt` is the last attempt, the error is not retryable, or `error.retry_after` is over
        `longest_retry_after`. `jitter` is a factor for the policy's own delay, for example a random number from 0.5 to
        1.0. A time that the provider gave in `error.retry_after` is not multiplied. The method does not wait itself.
        """
        if attempt >= self.attempts or not error.retryable:
            return None
        if error.retry_after is not None:
            return error.retry_after if error.retry_after <= self.longest_retry_after else None
        doubled: float = self.first_delay * 2.0 ** min(attempt - 1, 60)
        return min(doubled, self.longest_delay) * jitter


MEGABYTE = 2**20
"""The number of bytes in a megabyte."""
BYTES_PER_VALUE = 128
"""By default, an answer may have one JSON value for each 128 bytes of `Bounds.body_bytes`. A parsed value can need 250
bytes of memory, even if its text is short.
"""
BYTES_PER_BLOCK = 4096
"""By default, an answer may have one block for each 4,096 bytes of `Bounds.body_bytes`, because an option call and its
message can need 2,500 bytes of memory.
"""
LEAST_VALUES = 10_000
"""The smallest default of `Bounds.values`."""
LEAST_BLOCKS = 256
"""The smallest default of `Bounds.blocks`."""


class Bounds(Frozen):
    """The largest response that a call accepts. A larger response raises ResponseInvalid, which names the limit.

    `body_bytes` (64 MB) limits the complete response, `event_bytes` (32 MB) one event of a stream; both count
    decompressed bytes. Python stores text with characters beyond U+FFFF, such as emoji, in four bytes per character. So
    a body with such characters may have half of `body_bytes`, and all events of a stream that contain such characters
    may together have a quarter of `body_bytes`. `error_bytes` (1 MB) limits how much of an error response is
    read; a longer one still raises the error of its status.

    `values` limits the number of JSON values in a response, in one event, and in total in those events of a stream
    whose data the dialect stores. None means one per 128 bytes of `body_bytes`, at least 10,000. `blocks` limits the
    number of parts, option calls, alternatives and citations of a reply. None means one per 4,096 bytes of
    `body_bytes`, at least 256.

    With the defaults of `values` and `blocks`, and `event_bytes` at most half of `body_bytes`, a call allocates at most
    four times `body_bytes` of memory.
    """

    body_bytes: int = Field(default=64 * MEGABYTE, gt=0)
    event_bytes: int = Field(default=32 * MEGABYTE, gt=0)
    error_bytes: int = Field(default=MEGABYTE, gt=0)
    values: int | None = Field(default=None, gt=0)
    blocks: int | None = Field(default=None, gt=0)

    @property
    def most_values(self) -> int:
        """The limit of JSON values: `values`, or the default for `body_bytes` if `values` is None."""
        return self.values or max(LEAST_VALUES, self.body_bytes // BYTES_PER_VALUE)

    @property
    def most_blocks(self) -> int:
        """The limit of parts, calls, alternatives and citations: `blocks`, or the default for `body_bytes` if `blocks`
        is None.
        """
        return self.blocks or max(LEAST_BLOCKS, self.body_bytes // BYTES_PER_BLOCK)


class ResponseFormat(Frozen):
    """A JSON schema that the text of the reply must satisfy. `Settings(response_format=…)` creates a ResponseFormat
    from a pydantic model class or a schema.

    `name` is the schema's name, which the model sees. In a ResponseFormat that Settings creates from a class, it is the
    name of the class; from a schema, the schema's "title" or "output". A mapping with the keys "name" and "schema" is
    read as the fields of a ResponseFormat. `schema` is the JSON schema; read it from `schema_view`.
    `description` explains the schema to the model; None means no description.
    """

    name: NonEmpty
    schema_document: JSONObjectDocumentField = Field(alias="schema")
    description: Text | None = None

    @property
    def schema_view(self) -> FrozenDict:
        """The JSON schema as an immutable mapping, its keys in their original order."""
        return object_view(self.schema_document)


_formats: WeakKeyDictionary[type[BaseModel], ResponseFormat] = WeakKeyDictionary()
"""Model class → its ResponseFormat. Cached, because programs use the same classes again and again."""


def _as_response_format(value: object) -> object:
    """Return the ResponseFormat for a model class or a JSON schema, and any other value unchanged."""
    if isinstance(value, type) and issubclass(value, BaseModel):
        if value not in _formats:
            schema = value.model_json_schema()
            _formats[value] = ResponseFormat(name=value.__name__, schema=schema, description=schema.get("description"))
        return _formats[value]
    if isinstance(value, Mapping) and not {"name", "schema"} <= set(value):
        return ResponseFormat(name=str(value.get("title") or "output"), schema=dict(value))
    return value


def _as_tuple(value: object) -> object:
    return (value,) if isinstance(value, str) else None if value in ([], ()) else value


def _without_false(lifetime: object) -> object:
    return None if lifetime is False else lifetime


def _as_retry_policy(value: object) -> object:
    return RetryPolicy(attempts=value + 1) if isinstance(value, int) and not isinstance(value, bool) else value


class SettingsArguments(TypedDict, total=False):
    """The arguments of the constructor of Settings. Some accept more types than the field of the same name has."""

    max_output_tokens: int | None
    temperature: float | None
    top_p: float | None
    stop: str | Sequence[str] | None
    seed: int | None
    reasoning_effort: ReasoningEffort | None
    option_choice: str | None
    parallel_options: bool | None
    response_format: type[BaseModel] | ResponseFormat | Mapping[str, JSONValue] | None
    prompt_cache: bool | PromptCache | None
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
    """The settings of a call. Pass them to `sabir.adapter` for all calls, or to a single call.

    The settings of a single call take precedence. Every setting is optional. None means the provider's default, unless
    the list says otherwise. A setting that a model is known not to support is not sent, or sent with the nearest
    supported value, and is reported as a loss.

    - `max_output_tokens`: the most tokens of the reply, above 0. If an API requires it, None means a value that sabir
      chooses and reports as a loss.
    - `temperature` (0 or more), `top_p` (0 to 1), `seed`: how tokens are sampled, as the providers document them.
    - `stop`: one string, or a list of strings, each of which ends the reply; an empty list counts as None.
    - `reasoning_effort`: "none", "minimal", "low", "medium", "high", "xhigh" or "max".
    - `option_choice`: "auto", "none", "required", or the name of the option that the model must call.
    - `parallel_options`: whether the model may call several options in one reply.
    - `response_format`: a pydantic model class or a JSON schema that the reply's text must satisfy; see
      `Reply.parse`.
    - `prompt_cache`: whether the provider should cache the unchanging beginning of the conversation, so that the next
      request costs less. True means the provider's usual lifetime, "5m" or "1h" that lifetime; False counts as None.
    - `timeout`: seconds for a complete call with all retries and pauses, or until a stream's response begins.
    - `idle`: seconds to wait for each event of a stream; None means the value of `timeout`, or 600 without `timeout`.
    - `total`: seconds for any call from beginning to end, a stream's reader included; None means no limit.
    - `bounds`: the largest response to accept; None means `Bounds()`.
    - `retries`: a RetryPolicy, or the number of retries; None means two retries.
    - `media_labels`: whether a text such as "Media 1: a street map" precedes each medium that is sent; None means no.
    - `unsupported_media`: "placeholder" (the default) sends a text instead of a medium that the model cannot
      read, "drop" sends nothing.
    - `vendor`: provider name → settings of that provider, which the provider's plugin validates.
    - `extra_body`, `extra_headers`: fields of the request's body and headers that are sent unchecked; if passed to a
      call of a fallback, only its first member gets them.
    - `extra_body_for`, `extra_headers_for`: the same for a target named `provider[.dialect][:model]`; "*" means
      every target. If all entries are for other targets than the request's, they are losses.

    A call that exceeds `timeout`, `idle` or `total` raises CallTimedOut; a stream that exceeds one after its first
    event raises StreamBroken. Without `timeout` and `total`, only the SDK's own timeout limits each read of a complete
    response. The constructor raises SettingsInvalid for an unknown setting or an invalid value.

    >>> import sabir
    >>> settings = sabir.Settings(temperature=0, max_output_tokens=1, timeout=30)
    >>> reply = sabir.adapter("echo:m").complete_sync("Hello there!", settings=settings)
    >>> reply.finish_reason
    'length'
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
    prompt_cache: Annotated[PromptCache | None, BeforeValidator(_without_false)] = None
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

    @show_arguments
    def __init__(self, /, **fields: Unpack[SettingsArguments]) -> None:
        """Create the settings. Raises SettingsInvalid, in one line, for an unknown setting or an invalid value."""
        try:
            super().__init__(**dict[str, Any](fields))
        except ValidationError as error:
            raise SettingsInvalid(_describe_refusal(error)) from None

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @model_validator(mode="after")
    def _vendor_sections_are_objects(self) -> "Settings":
        check_sections(self.vendor)
        check_sections(self.extra_body_for, "extra_body_for", "fields for that target")
        check_sections(self.extra_headers_for, "extra_headers_for", "headers for that target")
        targets = {f"extra_headers_for[{target!r}]": headers for target, headers in self.extra_headers_for.items()}
        for place, headers in {"extra_headers": self.extra_headers, **targets}.items():
            for name, value in headers.items():
                if not isinstance(value, str):
                    raise ValueError(f"{place}[{name!r}] must be a string")
        return self

    vendor: ClassVar = ObjectView("vendor_json", "Provider name → settings of that provider.")
    extra_body: ClassVar = ObjectView("extra_body_json", "Fields that are added to the request's body, unchecked.")
    extra_body_for: ClassVar = ObjectView("extra_body_for_json", "Target's name → fields that are added to its bodies.")
    extra_headers: ClassVar = ObjectView("extra_headers_json", "Headers that are added to the request, unchecked.")
    extra_headers_for: ClassVar = ObjectView("extra_headers_for_json", "Target's name → headers that are added for it.")

    def laid_over(self, defaults: "Settings") -> "Settings":
        """Merge with default settings: return the defaults, overridden by each setting that was set here, None
        included.

        `vendor`, `extra_body` and `extra_headers` are replaced as a unit. `extra_body_for` and `extra_headers_for` are
        merged target by target; the entry of one target is replaced as a unit.
        """
        if not self.__pydantic_fields_set__ or not defaults.__pydantic_fields_set__:
            return self if self.__pydantic_fields_set__ else defaults
        values: dict[str, Any] = {name: getattr(self, name) for name in self.model_fields_set}
        for name in ("extra_body_for", "extra_headers_for"):
            if (own := getattr(self, name)) and (others := getattr(defaults, name)):
                values[f"{name}_json"] = {**others, **own}
        return defaults.model_copy(update=values)

    def owned_by(self, name: str) -> "Settings":
        """Return a copy in which `extra_body` and `extra_headers` apply only to the target `name`.

        `name` is `provider[.dialect][:model]`. The fields move to the entry `name` of `extra_body_for` and
        `extra_headers_for`, where they override fields of the same name.
        """
        values = {each: getattr(self, each) for each in self.model_fields_set}
        for extra in ("extra_body", "extra_headers"):
            if fields := getattr(self, extra):
                sections = getattr(self, f"{extra}_for")
                values[f"{extra}_for_json"] = {**sections, name: {**sections.get(name, {}), **fields}}
                del values[f"{extra}_json"]
        return Settings().model_copy(update=values)

    @staticmethod
    def refuse_misnamed(function: str, misnamed: Mapping[str, object], known: tuple[str, ...]) -> None:
        """Raise WrongWord for the first name in `misnamed` that is not in `known`. Does nothing if all names are known.

        The error's message says what to write instead, or suggests a similar name, or lists `known`. `function` is the
        function's name for the message. Functions call this for arguments that they do not have.
        """
        for name in misnamed:
            if name not in known:
                raise WrongWord(f"{function}() has no argument `{name}`; {_remedy(name, known)}")


def _describe_refusal(error: ValidationError) -> str:
    """Return the message of a SettingsInvalid: the remedy for an unknown setting, or else all faults."""
    for each in error.errors(include_url=False, include_input=False, include_context=False):
        if each["type"] == "extra_forbidden" and len(each["loc"]) == 1:
            name = str(each["loc"][0])
            return one_line(f"Settings has no `{name}`; {_remedy(name, _SETTING_NAMES, 'its fields are')}")
    return one_line(f"Settings: {describe_validation_error(error)}")


class SettingsReader:
    """Gives a dialect the settings of a call and records which settings the dialect read."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._looked_at: set[str] = set()

    def take(self, name: str) -> Any:
        """Return the value of one of WIRE_SETTINGS; None if the setting is not set. The setting counts as read.

        Raises SettingsInvalid for another name.
        """
        if name not in WIRE_SETTINGS:
            known = ", ".join(WIRE_SETTINGS)
            raise SettingsInvalid(f"{name!r} is not a setting of a request; the settings are {known}")
        self._looked_at.add(name)
        return getattr(self._settings, name)

    def untouched(self) -> tuple[str, ...]:
        """Return the WIRE_SETTINGS that are set and were not read, which core reports as losses."""
        return tuple(name for name in self.unread() if getattr(self._settings, name) is not None)

    def unread(self) -> tuple[str, ...]:
        """Return the WIRE_SETTINGS that were not read, set or not. A correct dialect reads all of them."""
        return tuple(name for name in WIRE_SETTINGS if name not in self._looked_at)


_SETTING = "pass settings=sabir.Settings"
_MISNAMED = {
    "pass options=[…], because sabir calls a tool an option": "tools functions function_declarations",
    f"{_SETTING}(option_choice=…)": "tool_choice function_call functions_call tool_config",
    f"{_SETTING}(parallel_options=…)": "parallel_tool_calls",
    f"{_SETTING}(response_format=…) and read reply.parse(…)": "response_model output_type output_config text_format",
    f"{_SETTING}(max_output_tokens=…)": "max_tokens max_completion_tokens max_output",
    f"{_SETTING}(stop=…)": "stop_sequences",
    f"{_SETTING}(reasoning_effort=…)": "reasoning thinking",
    f"{_SETTING}(prompt_cache=…)": "cache cache_control caching prompt_caching",
    f"{_SETTING}(retries=…)": "max_retries",
    f"{_SETTING}(…)": "config generation_config",
    "pass the conversation first: a str, or messages such as sabir.user(…)": ("input prompt contents history message"),
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


def _remedy(name: str, known: tuple[str, ...], list_opening: str = "its arguments are") -> str:
    """Return what to write instead of a name that is not among the known ones."""
    if name in _SETTING_NAMES:
        return f"pass settings=sabir.Settings({name}=…)"
    if name in REMEDIES:
        return REMEDIES[name]
    near = difflib.get_close_matches(name, [*known, *_SETTING_NAMES], n=1)
    if near and near[0] not in known:
        return f"did you mean settings=sabir.Settings({near[0]}=…)?"
    return f"did you mean `{near[0]}`?" if near else f"{list_opening} {', '.join(known)}"
