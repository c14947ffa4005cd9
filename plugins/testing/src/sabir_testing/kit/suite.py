"""The suite of a plugin's author, the subject that a case gets, and the base of every family of cases.

    class TestAcme(ProviderConformance):        Suite: its attributes, each with a default but `adapter`
        adapter = sabir.adapter("acme:small", api_key="test")

    adapter ──▶ AdapterUnderTest: provider · dialect · target · renderer() · render() · items() · scope() · connect()
                         grade(capability, seen), held against what the author declared, and noted for the summary

A case is a test method of a family, or one row of its parameters. A suite cannot override one; to opt out of it, it
names the case and the reason under `xfail`, which the summary lists.
"""

import difflib
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
from sabir import Loss, Message, Option, Rendering, Settings, Target
from sabir.authoring import (
    Access,
    Connection,
    DecodeScope,
    Dialect,
    JSONValue,
    Part,
    Provider,
    ServerEvent,
    Tables,
    show_arguments,
)
from sabir.errors import RenderingRefused
from sabir.rendering.renderer import Renderer

from sabir_testing.kit import CAPABILITY_PROPERTY
from sabir_testing.kit.broken import ConformanceFailure, Shown, expect
from sabir_testing.kit.questions import CAPABILITIES, QUESTIONS, UNKNOWN, Grade
from sabir_testing.reading import every_string
from sabir_testing.scrubbing import Allowed

Note = Callable[[str, object], None]
"""pytest's `record_property`."""
History: TypeAlias = Sequence[Message]
Options: TypeAlias = Sequence[Option]


@dataclass(frozen=True)
class Made:
    """A history, and what became of it; `rendering` is None where nothing was left to send, which the losses tell."""

    history: History
    rendering: Rendering | None
    losses: Sequence[Loss]

    @property
    def body(self) -> bytes:
        """The request, or nothing."""
        return self.rendering.body_bytes if self.rendering else b""

    @cached_property
    def text(self) -> str:
        """The body as text, other scripts as they are."""
        return json.dumps(json.loads(self.body), ensure_ascii=False)

    def holds(self, text: str) -> bool:
        """Whether a string of the body holds that text, as it is."""
        return any(text in each for each in every_string(json.loads(self.body)))

    def expect(self, condition: object, what: str, *, shown: Mapping[str, object] | None = None) -> None:
        """Raise ConformanceFailure unless the condition holds."""
        expect(condition, what, history=self.history, rendering=self.rendering, losses=self.losses, shown=shown)


_ONCE: "WeakKeyDictionary[type[Suite], dict[object, Any]]" = WeakKeyDictionary()
Found = TypeVar("Found")


class AdapterUnderTest:
    """What is under test: the suite's adapter, its provider, and the target of its renderings."""

    def __init__(self, suite: "Suite", note: Note = lambda name, value: None) -> None:
        self.suite = suite
        self.adapter: sabir.ModelAdapter = suite.adapter
        self.provider: Provider = self.adapter.provider
        self.target: Target = self.adapter.target
        key = next(iter(self.provider.credentials), None)
        self.key_variables: Sequence[str] = key.variables if key else ()
        self._note = note

    def once(self, what: object, make: Callable[[], Found]) -> Found:
        """What is made once for each suite, however many cases use it."""
        known = _ONCE.setdefault(type(self.suite), {})
        if what not in known:
            known[what] = make()
        found: Found = known[what]
        return found

    @cached_property
    def dialect(self) -> Dialect:
        """What encodes and decodes."""
        return self.renderer().dialect

    @cached_property
    def short_name(self) -> str:
        """The dialect's name among those of its provider; the first where none has it."""
        names = self.provider.dialects
        return next((name for name in names if self.provider.dialect(name).name == self.dialect.name), names[0])

    @property
    def model_name(self) -> str:
        """The string that makes the adapter again, with no key: `provider.dialect:model`."""
        return f"{self.target.provider}.{self.short_name}:{self.target.model}"

    @property
    def tables(self) -> Tables:
        """What the dialect takes, for this model at this endpoint."""
        return self.renderer().scope.tables

    @property
    def examples(self) -> int:
        """How many examples a law is tried on."""
        return self.suite.examples

    def renderer(self) -> Renderer:
        """A renderer that has kept nothing."""
        return self.adapter.new_renderer()

    @cached_property
    def of_another_instance(self) -> Renderer:
        """A renderer of another instance of the dialect."""
        adapter, dialect = self.adapter, self.provider.dialect(self.short_name)
        another = sabir.ModelAdapter(self.provider, dialect, adapter.model, adapter.access, speaks_as=adapter.speaks_as)
        return another.new_renderer()

    def tried(
        self, history: History, options: Options = (), settings: Settings | None = None, *, by: Renderer | None = None
    ) -> Made:
        """What becomes of a history of any kind, rendered afresh unless a renderer is given."""
        try:
            rendering = (by or self.renderer()).render(history, options, settings)
        except RenderingRefused as refused:
            return Made(history, None, refused.losses)
        return Made(history, rendering, rendering.losses)

    def render(self, history: History, options: Options = (), settings: Settings | None = None) -> Rendering | None:
        """The request for a history, rendered afresh; None where nothing is left to send."""
        return self.tried(history, options, settings).rendering

    def rendered(self, history: History, options: Options = (), settings: Settings | None = None) -> Rendering:
        """As `render`; ConformanceFailure where nothing is left."""
        if (rendering := self.render(history, options, settings)) is None:
            raise ConformanceFailure("nothing is left to send of a history that holds a user's text", history=history)
        return rendering

    def made(self, history: History, options: Options = (), settings: Settings | None = None) -> Made:
        """As `rendered`, with its history."""
        rendering = self.rendered(history, options, settings)
        return Made(history, rendering, rendering.losses)

    def items(self, rendering: Rendering | None) -> list[JSONValue]:
        """The wire's items of the messages field; none of no rendering."""
        found = json.loads(rendering.body_bytes)[self.dialect.messages_field] if rendering else []
        return list(found)

    def scope(self) -> DecodeScope:
        """For decoding what this target answers."""
        return DecodeScope(self.target, policy=self.adapter.speaks_as)

    def connect(self, **access: Any) -> Connection:  # the fields of Access
        """A connection with that access."""
        return self.provider.connect(Access(**access))

    def declared(self, capability: str) -> Grade:
        """The grade that the author declared."""
        return Grade(self.suite.capabilities.get(capability, UNKNOWN))

    @show_arguments
    def grade(self, capability: str, seen: Grade, *, what: str = "", **beside: Unpack[Shown]) -> None:
        """Note what was seen; ConformanceFailure where the author declared another grade. `what` says it in words."""
        self._note(CAPABILITY_PROPERTY, [capability, str(seen)])
        declared, saw = self.declared(capability), f": {what}" if what else ""
        what = f"{capability} ({CAPABILITIES[capability]}) is declared {declared}, but was seen to be {seen}{saw}"
        remedy = f"mend the dialect, or declare capabilities = {{{capability!r}: {seen.name}}}"
        expect(declared in (UNKNOWN, seen), f"{what}; {remedy}", **beside)


KIT = "sabir_testing."
"""What the modules of the kit are called by."""
NEW = "sabir_new_in"
"""Where a case keeps the minor release that it came with."""


class Suite:
    """What is tested, and what is known of it."""

    family: ClassVar[str] = ""
    """The family that a class of cases belongs to."""

    adapter: ClassVar[sabir.ModelAdapter]
    """Made by `sabir.adapter`, with any key: no case sends anything to the vendor."""
    cassettes: ClassVar[Path | None] = None
    """The folder of recorded exchanges."""
    capabilities: ClassVar[Mapping[str, Grade]] = {}
    """Capability → grade; see `sabir_testing.CAPABILITIES`."""
    xfail: ClassVar[Mapping[str, str]] = {}
    """Case → why it cannot hold here; it must fail, so that the entry goes when it is mended."""
    prompts: ClassVar[Mapping[str, str]] = {}
    """Question → what the user says there, where this service needs other words."""
    settings: ClassVar[Mapping[str, Settings]] = {}
    """Question → settings laid over its own."""
    refused_body: ClassVar[Mapping[str, JSONValue]] = {}
    """Fields that the service refuses, for the question `bad_request`."""
    wrong_key: ClassVar[str] = "wrong"
    missing_model: ClassVar[str] = "missing"
    answers_repeat: ClassVar[bool] = False
    """Whether the recorded service answers the same question with the same words, streamed or not."""
    asks_live: ClassVar[bool] = False
    """Whether questions are asked while the tests run, of a service on this machine, instead of recordings."""
    sdk: ClassVar[str] = ""
    """The module of the vendor's SDK, which nothing imports before the first send."""
    variables: ClassVar[Collection[str]] = ()
    """Environment variables that decide what the provider does, besides its key variables."""
    allowed: ClassVar[Sequence[Allowed]] = ()
    """What in a recording looks like a secret and is none, with the reason."""
    blocks: ClassVar[Sequence[Part]] = ()
    """Parts that only this provider makes and reads, beside those of its recordings: laws are tried on them, too."""
    examples: ClassVar[int] = 100
    """How many examples a law is tried on."""

    def check_request(self, body: bytes) -> None:
        """Raise AssertionError for a body that the vendor would refuse: by its SDK's own types, or its order rules."""

    @contextmanager
    def live(self, question: str) -> Iterator[sabir.ModelAdapter]:
        """The adapter that a question is recorded with; by default the suite's, with the provider's own key."""
        given, dialect = self.adapter, self.subject_of().dialect
        access = replace(given.access, api_key=None)
        with sabir.ModelAdapter(given.provider, dialect, given.model, access, speaks_as=given.speaks_as) as adapter:
            yield adapter

    def provenance(self, question: str) -> Mapping[str, str]:
        """What a recording says of who answered, beside model, date and client: `server` and `version`."""
        return {"server": f"{self.adapter.target.provider}'s own service", "version": "not told"}

    def error_event(self, body: str) -> ServerEvent | None:
        """How the service reports within a stream what it refuses with that body; None for the body as an event.

        Of a wire whose events have names, it is tried without one, as `error` and as `exception`.
        """
        return None

    def client(self, base_url: str) -> object | None:
        """A client of the vendor's SDK for that address, as a user would pass it; None where none can be passed."""
        return None

    def subject_of(self) -> AdapterUnderTest:
        """What the cases are given."""
        return AdapterUnderTest(self)

    @pytest.fixture
    def subject(self, record_property: Note) -> AdapterUnderTest:
        """What is under test."""
        return AdapterUnderTest(self, record_property)

    def __init_subclass__(cls, **kwargs: object) -> None:
        """A class of cases, or a suite: of that, what it says of itself is checked."""
        super().__init_subclass__(**kwargs)
        if getattr(cls, "adapter", None) is not None:
            check_suite(cls)


_ATTRIBUTES = [name for name in vars(Suite) if not name.startswith("_")]
Case = TypeVar("Case", bound=Callable[..., object])


def new_in(version: str) -> Callable[[Case], Case]:
    """A case that came with that minor release of the kit: there it only warns, from the next one on it fails."""

    def mark(case: Case) -> Case:
        setattr(case, NEW, version)
        return case

    return mark


def is_new(case: object, kit: str) -> bool:
    """Whether a case came with the minor release that `kit` is a version of."""
    return getattr(case, NEW, None) == ".".join(kit.split(".")[:2])


def case_names(suite: type[Suite]) -> tuple[str, ...]:
    """The kit's cases, without their rows, in the order in which they stand."""
    families = [each for each in reversed(suite.__mro__) if vars(each).get("family")]
    return tuple(name for family in families for name in vars(family) if name.startswith("test_"))


def check_suite(suite: type[Suite]) -> None:
    """TypeError for a suite that leaves a case out silently, or names what there is not."""
    who, cases = suite.__name__, case_names(suite)
    _check_types(suite, who)
    _check_names(suite, who, cases)
    for what in ("prompts", "settings"):
        for question in getattr(suite, what):
            _known(question, QUESTIONS, f"{who}.{what}")
    for name, grade in suite.capabilities.items():
        _known(name, CAPABILITIES, f"{who}.capabilities")
        if grade not in set(Grade):
            raise TypeError(f"{who}.capabilities[{name!r}] is {grade!r}; give FULL, DOWNGRADED, REFUSED or UNKNOWN")
    for case, reason in suite.xfail.items():
        _known(case.partition("[")[0], cases, f"{who}.xfail")
        if not str(reason).strip():
            raise TypeError(f"{who}.xfail[{case!r}] gives no reason; say why it cannot hold")


def _check_types(suite: type[Suite], who: str) -> None:
    """TypeError for what would fail in every case, or in none, without saying why."""
    expected: Mapping[str, tuple[type | UnionType, str]] = {
        "adapter": (sabir.ModelAdapter, "what sabir.adapter('provider:model') makes"),
        **{what: (Mapping, "a dict") for what in ("xfail", "capabilities", "prompts", "settings")},
        "cassettes": (Path | None, "a Path: Path(__file__).parent / 'cassettes'"),
    }
    for name, (kind, remedy) in expected.items():
        if not isinstance(given := getattr(suite, name), kind):
            raise TypeError(f"{who}.{name} is of type {type(given).__name__}; give {remedy}")
    if suite.examples < 1:
        raise TypeError(f"{who}.examples is {suite.examples}; give at least 1")


def _check_names(suite: type[Suite], who: str, cases: Collection[str]) -> None:
    """TypeError for a name of the kit's own (its cases, its fixtures, what its cases call), and for a misspelt one."""
    ours = [each for each in suite.__mro__ if each.__module__.startswith(KIT) and each is not Suite]
    taken = {name for each in ours for name in vars(each) if not name.startswith("__") and name not in vars(Suite)}
    others = [each for each in suite.__mro__ if not (each.__module__.startswith(KIT) or vars(each).get("family"))]
    for name in sorted({name for each in others if each is not object for name in vars(each)}):
        if name in cases:
            remedy = f"to opt out, write xfail = {{{name!r}: 'the reason'}}"
            raise TypeError(f"{who} overrides {name}, a case of the kit; {remedy}")
        if name in taken | {"subject", "subject_of"}:
            raise TypeError(f"{who} overrides {name}, which the kit needs for itself; choose another name")
        is_public = not name.startswith(("_", "test_")) and name not in vars(Suite)
        if is_public and (near := difflib.get_close_matches(name, _ATTRIBUTES, n=1, cutoff=0.85)):
            raise TypeError(f"{who}.{name} is no attribute of a suite; did you mean {near[0]!r}?")


def _known(name: str, names: Collection[str], where: str) -> None:
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1)
        remedy = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"
        raise TypeError(f"{where} names {name!r}, which there is not; {remedy}")
