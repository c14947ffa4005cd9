"""The base class of conformance suites, and the adapter under test that the test cases get.

    class TestAcme(ProviderConformance):        Suite: attributes with defaults, except `adapter`
        adapter = sabir.adapter("acme:small", api_key="test")

    adapter ──▶ AdapterUnderTest: provider · dialect · target · renderer() · render() · items() · scope() · connect()
                         grade(capability, seen), compared with the declared grade, and noted for the summary

A case is a test method of a family, or one row of its parameters. A suite cannot override a case. To opt out, name the
case and the reason in `xfail`; the summary lists it.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import UnionType
from typing import Any, ClassVar, TypeAlias, TypeVar, Unpack
from weakref import WeakKeyDictionary

import pytest
import sabir
from sabir import ApiKey, CallError, Loss, Message, Option, Rendering, Settings, Target
from sabir.authoring import (
    Access,
    Connection,
    Credential,
    DecodeScope,
    Dialect,
    FinishReason,
    JSONValue,
    Part,
    Provider,
    ServerEvent,
    Tables,
    did_you_mean,
    show_arguments,
)
from sabir.errors import RenderingRefused
from sabir.rendering.renderer import Renderer

from sabir_testing.kit import CAPABILITY_PROPERTY
from sabir_testing.kit.capabilities import CAPABILITIES, UNKNOWN, Grade
from sabir_testing.kit.failures import ConformanceFailure, FailureContext, expect
from sabir_testing.kit.seeds import CI_SEED
from sabir_testing.kit.service_questions import QUESTIONS
from sabir_testing.reading import every_string
from sabir_testing.scrubbing import Allowed, Scrubbing

Note = Callable[[str, object], None]
"""pytest's `record_property`."""
History: TypeAlias = Sequence[Message]
Options: TypeAlias = Sequence[Option]


@dataclass(frozen=True)
class RenderedHistory:
    """A history and its rendering. `rendering` is None if nothing was left to send; the losses say why."""

    history: History
    rendering: Rendering | None
    losses: Sequence[Loss]

    @property
    def body(self) -> bytes:
        """The request's body; empty without a rendering."""
        return self.rendering.body_bytes if self.rendering else b""

    @cached_property
    def text(self) -> str:
        """The request's body as text, without escapes for non-ASCII characters. Raises ValueError without a
        rendering.
        """
        return json.dumps(json.loads(self.body), ensure_ascii=False)

    def contains(self, text: str) -> bool:
        """Return whether a string or field name in the body contains this text. Raises ValueError without a
        rendering.
        """
        return any(text in each for each in every_string(json.loads(self.body)))

    def expect(self, condition: object, what: str, *, details: Mapping[str, object] | None = None) -> None:
        """Raise ConformanceFailure, with this history and rendering, unless the condition is true."""
        expect(condition, what, history=self.history, rendering=self.rendering, losses=self.losses, details=details)


_CACHED_RESULTS: "WeakKeyDictionary[type[Suite], dict[object, Any]]" = WeakKeyDictionary()
Cached = TypeVar("Cached")


class AdapterUnderTest:
    """The adapter that a conformance suite tests, with its provider and target. Every test case gets one, as the
    fixture `subject`.

    `suite` is the suite. `note` records a property in the test report. `seed` is the number from which the random
    examples derive.
    """

    def __init__(self, suite: "Suite", note: Note = lambda name, value: None, *, seed: int = CI_SEED) -> None:
        self.suite = suite
        self.seed = seed
        self.adapter: sabir.ModelAdapter = suite.adapter
        self.provider: Provider = self.adapter.provider
        self.target: Target = self.adapter.target
        key = next(iter(self.provider.credentials), None)
        self.key_variables: Sequence[str] = key.variables if key else ()
        self._note = note

    def once(self, key: object, create: Callable[[], Cached]) -> Cached:
        """Call `create` at the first use of `key` in this suite, and return its result. Later calls return the same
        object. Nothing is stored if `create` raises.
        """
        results = _CACHED_RESULTS.setdefault(type(self.suite), {})
        if key not in results:
            results[key] = create()
        result: Cached = results[key]
        return result

    def has_result(self, key: object) -> bool:
        """Return whether `once` has a result for this key in this suite."""
        return key in _CACHED_RESULTS.get(type(self.suite), {})

    @cached_property
    def dialect(self) -> Dialect:
        """The dialect of the adapter."""
        return self.renderer().dialect

    @cached_property
    def short_name(self) -> str:
        """The dialect's short name, as the provider lists it; the provider's first one if it lists no such dialect."""
        names = self.provider.dialects
        return next((name for name in names if self.provider.dialect(name).name == self.dialect.name), names[0])

    @property
    def model_name(self) -> str:
        """The model string `provider.dialect:model` for `sabir.adapter`."""
        return f"{self.target.provider}.{self.short_name}:{self.target.model}"

    @property
    def tables(self) -> Tables:
        """The dialect's tables for this model and endpoint."""
        return self.renderer().scope.tables

    @property
    def examples(self) -> int:
        """The number of random examples for each law."""
        return self.suite.examples

    def renderer(self) -> Renderer:
        """Return a new renderer, with an empty cache."""
        return self.adapter.new_renderer()

    @cached_property
    def second_renderer(self) -> Renderer:
        """A renderer of a second instance of the dialect."""
        adapter, dialect = self.adapter, self.provider.dialect(self.short_name)
        another = sabir.ModelAdapter(self.provider, dialect, adapter.model, adapter.access, speaks_as=adapter.speaks_as)
        return another.new_renderer()

    def try_render(
        self, history: History, options: Options = (), settings: Settings | None = None, *, by: Renderer | None = None
    ) -> RenderedHistory:
        """Render a history, with a new renderer or with `by`, and return both. If nothing is left to send, the result
        has no rendering, and nothing is raised.
        """
        try:
            rendering = (by or self.renderer()).render(history, options, settings)
        except RenderingRefused as refused:
            return RenderedHistory(history, None, refused.losses)
        return RenderedHistory(history, rendering, rendering.losses)

    def render(self, history: History, options: Options = (), settings: Settings | None = None) -> Rendering | None:
        """Return the rendering of a history by a new renderer; None if no content is left to send."""
        return self.try_render(history, options, settings).rendering

    def must_render(self, history: History, options: Options = (), settings: Settings | None = None) -> Rendering:
        """Return the rendering of a history by a new renderer. Raises ConformanceFailure if nothing is left to send."""
        if (rendering := self.render(history, options, settings)) is None:
            what = "the adapter has nothing to send for a history with a user message; encode the user's text"
            raise ConformanceFailure(what, history=history)
        return rendering

    def request_for(self, history: History, options: Options = (), settings: Settings | None = None) -> RenderedHistory:
        """Return a history together with its rendering. Raises ConformanceFailure if nothing is left to send."""
        rendering = self.must_render(history, options, settings)
        return RenderedHistory(history, rendering, rendering.losses)

    def items(self, rendering: Rendering | None) -> list[JSONValue]:
        """Return the items of the request's messages field; [] without a rendering."""
        return list(json.loads(rendering.body_bytes)[self.dialect.messages_field]) if rendering else []

    def scope(self) -> DecodeScope:
        """Return a DecodeScope for answers of this target."""
        return DecodeScope(self.target, policy=self.adapter.speaks_as)

    def connect(self, **access: Any) -> Connection:  # the fields of Access
        """Return a connection of the provider. The arguments are the fields of Access; `complete_key` completes
        `api_key`.
        """
        return self.provider.connect(Access(**{**access, "api_key": self.complete_key(access.get("api_key"))}))

    def complete_key(self, api_key: ApiKey | None) -> ApiKey | None:
        """Return `api_key` as a mapping with sample values for the other credentials that a request needs, if there
        are any.

        `api_key` is the value of the key, or a function that returns the value. A mapping, an empty value and None are
        returned unchanged.
        """
        others = {each.name: f"{each.name}-of-the-kit" for each in self.further_credentials}
        if not others or not api_key or isinstance(api_key, Mapping):
            return api_key
        first = self.key_credentials[0].name
        if isinstance(api_key, str):
            return {first: api_key, **others}

        def complete() -> str | Mapping[str, str]:
            key = api_key()
            return key if isinstance(key, Mapping) else {first: key, **others}

        return complete

    @property
    def further_credentials(self) -> tuple[Credential, ...]:
        """The credentials besides the key that a request needs, for example the secret of a key id."""
        return tuple(each for each in self.key_credentials[1:] if each.default is None and not each.in_url)

    @property
    def key_credentials(self) -> tuple[Credential, ...]:
        """The credentials of the alternative of the first credential, the first one first. Empty if there are none."""
        every = self.provider.credentials
        return tuple(each for each in every if each.alternative in ("", every[0].alternative))

    def declared(self, capability: str) -> Grade:
        """Return the grade that the suite declares for a capability; UNKNOWN if it declares none."""
        return Grade(self.suite.capabilities.get(capability, UNKNOWN))

    @show_arguments
    def grade(self, capability: str, seen: Grade, *, what: str = "", **context: Unpack[FailureContext]) -> None:
        """Record the grade that a test saw. Raises ConformanceFailure if the suite declares a grade other than
        `seen` or UNKNOWN. `what` describes what was seen.
        """
        self._note(CAPABILITY_PROPERTY, [capability, str(seen)])
        declared, reason = self.declared(capability), f" ({what})" if what else ""
        what = f"the suite declares {capability!r} {declared.name} ({CAPABILITIES[capability]}), but the test sees"
        what = f"{what} {seen.name}{reason}"
        remedy = f"change the dialect, or declare capabilities = {{{capability!r}: {seen.name}}}"
        expect(declared in (UNKNOWN, seen), f"{what}; {remedy}", **context)


KIT = "sabir_testing."
"""The beginning of the names of the kit's modules."""
NEW = "sabir_new_in"
"""The attribute of a test case that stores the minor release which added it."""
SINCE_API = "sabir_since_api"
"""The attribute of a test case that stores the version of the plugin contract which added it."""


class Suite:
    """Base class of conformance suites: the attributes that describe the adapter and its service. Inherit from
    ProviderConformance or OfflineConformance.
    """

    family: ClassVar[str] = ""
    """The name of a family of cases. Suites do not set it."""

    adapter: ClassVar[sabir.ModelAdapter]
    """The adapter to test, created by `sabir.adapter` with any key. Only a run with `--sabir-record`, or a suite with
    `asks_live`, sends requests to the service.
    """
    cassettes: ClassVar[Path | None] = None
    """The folder with recorded exchanges; None if there are none."""
    capabilities: ClassVar[Mapping[str, Grade]] = {}
    """Capability → the grade that the provider is expected to have. See `sabir_testing.CAPABILITIES`."""
    xfail: ClassVar[Mapping[str, str]] = {}
    """Case, or case with its row as "case[row]" → why it cannot pass. The case must fail; once it passes, remove the
    entry.
    """
    prompts: ClassVar[Mapping[str, str]] = {}
    """Question → the user's text for this service, if the default text does not work."""
    settings: ClassVar[Mapping[str, Settings]] = {}
    """Question → settings that are merged over the question's own."""
    refused_body: ClassVar[Mapping[str, JSONValue]] = {}
    """Fields that the service refuses, for the question "bad_request"."""
    wrong_key: ClassVar[str | Mapping[str, str]] = "wrong"
    """A key that the service refuses, for the question "bad_key": a string, or a mapping if the provider needs several
    credentials.
    """
    missing_model: ClassVar[str] = "missing"
    """The name of a model that the service does not have, for the question "missing_model"."""
    answers_repeat: ClassVar[bool] = False
    """Whether the service answers the same question with the same words, streamed or not, so that texts can be
    compared.
    """
    asks_live: ClassVar[bool] = False
    """Whether the tests send the questions with `adapter`, to a service on this machine, instead of using
    recordings.
    """
    sdk: ClassVar[str] = ""
    """The name of the vendor's SDK module. The tests check that nothing imports it before the first request."""
    variables: ClassVar[Collection[str]] = ()
    """Environment variables that influence the provider, in addition to the variables of its credentials."""
    scrub: ClassVar[Scrubbing] = Scrubbing()
    """What is removed from recordings, in addition to the keys in use. Name headers here that the dialect reads."""
    allowed: ClassVar[Sequence[Allowed]] = ()
    """Texts in recordings that look like secrets but are not, with the reason."""
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = {}
    """The vendor's finish reason → the neutral one, from the vendor's documentation. The tests put each of them into a
    recorded answer, so that the dialect's table is also tested for reasons that no recording has.
    """
    error_codes: ClassVar[Mapping[str, type[CallError]]] = {}
    """The vendor's error code → the class of the error, from the vendor's documentation. The tests put each of them
    into a recorded failure.
    """
    usage_fields: ClassVar[Mapping[str, str]] = {}
    """Field of the vendor's usage object → the field of `sabir.Usage` that counts these tokens, from the vendor's
    documentation. "details.cached" is the field `cached` in the object `details`. The tests put a number into each of
    them in a recorded answer, so that the dialect is also tested for numbers that no recording has.
    """
    blocks: ClassVar[Sequence[Part]] = ()
    """Parts that only this provider creates and reads, in addition to those in its recordings. The laws are tested with
    them.
    """
    embedding_model: ClassVar[str] = ""
    """The name of an embedding model, for the requests of the family `embeddings`; "" for the adapter's model."""
    embedding_responses: ClassVar[Mapping[str, Sequence[Sequence[float]]]] = {}
    """Body of a response of the operation "embeddings" → its vectors, in the order of the texts."""
    examples: ClassVar[int] = 100
    """The number of random examples for each law."""

    def check_request(self, body: bytes) -> None:
        """Raise AssertionError or ValueError for a body that the vendor would refuse. `body` is the JSON that is sent,
        as bytes. Override with a check by the SDK's types; by default nothing is checked.
        """

    @contextmanager
    def live(self, question: str) -> Iterator[sabir.ModelAdapter]:
        """Return a context manager with the adapter that records a question. By default a copy of the suite's adapter
        without its key and settings, so that the provider finds the real key, for example in a variable.
        """
        own, dialect = self.adapter, self.subject_of().dialect
        access = replace(own.access, api_key=None)
        with sabir.ModelAdapter(own.provider, dialect, own.model, access, speaks_as=own.speaks_as) as adapter:
            yield adapter

    def provenance(self, question: str) -> Mapping[str, str]:
        """Return facts about the service for a recording, in addition to model, date and client: "server" and
        "version".
        """
        return {"server": f"{self.adapter.target.provider}'s own service", "version": "not reported"}

    def error_event(self, body: str) -> ServerEvent | None:
        """Return the stream event with which the service reports an error with this body, as a
        `ServerEvent(data, event)`.

        With None, the default, the test cases use the body itself as the event. If the API's events have names, they
        try the body without a name, as "error" and as "exception".
        """
        return None

    def client(self, base_url: str) -> object | None:
        """Return a client of the vendor's SDK for this address, as a user would pass it to `client=`; None if `client=`
        is not supported.
        """
        return None

    def subject_of(self) -> AdapterUnderTest:
        """Return the AdapterUnderTest for this suite."""
        return AdapterUnderTest(self)

    @pytest.fixture
    def subject(self, record_property: Note, request: pytest.FixtureRequest) -> AdapterUnderTest:
        """Provide the AdapterUnderTest to a test case (pytest fixture)."""
        return AdapterUnderTest(self, record_property, seed=request.config.getoption("sabir_seed", CI_SEED))

    def __init_subclass__(cls, **kwargs: object) -> None:
        """Check the attributes of a suite when its class is created, if it has an `adapter`. Raises TypeError."""
        super().__init_subclass__(**kwargs)
        if getattr(cls, "adapter", None) is not None:
            check_suite(cls)


_MAPPINGS = ("xfail", "capabilities", "prompts", "settings", "finish_reasons", "error_codes")
_ATTRIBUTES = [name for name in vars(Suite) if not name.startswith("_")]
Case = TypeVar("Case", bound=Callable[..., object])
Marked = TypeVar("Marked", bound=Callable[..., object])


def new_in(version: str) -> Callable[[Case], Case]:
    """Mark a case as new in a minor release of the kit. In that release a failure only warns, from the next one on it
    fails.
    """

    def mark(case: Case) -> Case:
        setattr(case, NEW, version)
        return case

    return mark


def since_api(version: int) -> Callable[[Marked], Marked]:
    """Mark a case, or all cases of a class, as added with a version of the plugin contract, SABIR_API. For a provider
    that states an earlier version, a failure only warns.
    """

    def mark(marked: Marked) -> Marked:
        members = vars(marked) if isinstance(marked, type) else {marked.__name__: marked}
        for name, case in members.items():
            if name.startswith("test_"):
                setattr(case, SINCE_API, version)
        return marked

    return mark


def is_new(case: object, kit: str, api_version: int) -> bool:
    """Return whether a failure of a case only warns: in this release of the kit, or for a provider of this version of
    the plugin contract.
    """
    return getattr(case, SINCE_API, 1) > api_version or getattr(case, NEW, None) == ".".join(kit.split(".")[:2])


def case_names(suite: type[Suite]) -> tuple[str, ...]:
    """Return the names of the kit's cases, without their rows, in their order."""
    families = [each for each in reversed(suite.__mro__) if vars(each).get("family")]
    return tuple(name for family in families for name in vars(family) if name.startswith("test_"))


def check_suite(suite: type[Suite]) -> None:
    """Raise TypeError for a suite with invalid attributes: wrong types, overridden cases, or unknown questions,
    capabilities or cases.
    """
    who, cases = suite.__name__, case_names(suite)
    _check_types(suite, who)
    _check_attribute_names(suite, who, cases)
    for what in ("prompts", "settings"):
        for question in getattr(suite, what):
            _check_known(question, QUESTIONS, f"{who}.{what}")
    for name, grade in suite.capabilities.items():
        _check_known(name, CAPABILITIES, f"{who}.capabilities")
        if grade not in set(Grade):
            raise TypeError(f"{who}.capabilities[{name!r}] is {grade!r}; use FULL, DOWNGRADED, REFUSED or UNKNOWN")
    for case, reason in suite.xfail.items():
        _check_known(case.partition("[")[0], cases, f"{who}.xfail")
        if not str(reason).strip():
            raise TypeError(f"{who}.xfail[{case!r}] has no reason; write why the case cannot pass")


def _check_types(suite: type[Suite], who: str) -> None:
    """Raise TypeError for an attribute of a wrong type, which would otherwise cause unclear failures later."""
    expected: Mapping[str, tuple[type | UnionType, str]] = {
        "adapter": (sabir.ModelAdapter, "the result of sabir.adapter('provider:model')"),
        **{what: (Mapping, "a dict") for what in _MAPPINGS},
        "cassettes": (Path | None, "a Path: Path(__file__).parent / 'cassettes'"),
    }
    for name, (kind, remedy) in expected.items():
        if not isinstance(value := getattr(suite, name), kind):
            raise TypeError(f"{who}.{name} has the type {type(value).__name__}; use {remedy}")
    if suite.examples < 1:
        raise TypeError(f"{who}.examples is {suite.examples}; use at least 1")


def _check_attribute_names(suite: type[Suite], who: str, cases: Collection[str]) -> None:
    """Raise TypeError for an attribute that overrides a case, a fixture or a helper of the kit, or that is misspelt."""
    ours = [each for each in suite.__mro__ if each.__module__.startswith(KIT) and each is not Suite]
    reserved = {name for each in ours for name in vars(each) if not name.startswith("__") and name not in vars(Suite)}
    authors = [each for each in suite.__mro__ if not (each.__module__.startswith(KIT) or vars(each).get("family"))]
    for name in sorted({name for each in authors if each is not object for name in vars(each)}):
        if name in cases:
            remedy = f"to opt out, write xfail = {{{name!r}: 'the reason'}}"
            raise TypeError(f"{who} overrides {name}, a test case of the kit; {remedy}")
        if name in reserved | {"subject", "subject_of"}:
            raise TypeError(f"{who} overrides {name}, which the kit uses internally; choose another name")
        is_public = not name.startswith(("_", "test_")) and name not in vars(Suite)
        if is_public and (question := did_you_mean(name, _ATTRIBUTES, "", cutoff=0.85)):
            raise TypeError(f"{who}.{name} is not an attribute of a suite; {question}")


def _check_known(name: str, names: Collection[str], where: str) -> None:
    """Raise TypeError if a name is not in `names`. `where` is the attribute that contains the name."""
    if name not in names:
        remedy = did_you_mean(name, names, f"use one of {', '.join(names)}")
        raise TypeError(f"{where} contains the unknown name {name!r}; {remedy}")
