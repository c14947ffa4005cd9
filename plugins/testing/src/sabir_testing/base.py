"""What the author of a plugin says of it, and what every family of cases stands on.

    class TestAcme(ProviderConformance):        Suite: its attributes, each with a default but `adapter`
        adapter = sabir.adapter("acme:small", api_key="test")

A case is a test method of a family, or one row of its parameters. A suite cannot override one; to opt out of it, it
names the case and the reason under `xfail`, which the summary lists.
"""

import difflib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, TypeVar

import pytest
import sabir
from sabir.base.values import JSONValue
from sabir.vocabulary.settings import Settings

from sabir_testing.capabilities import CAPABILITIES, Grade
from sabir_testing.leaks import Allowed
from sabir_testing.questions import QUESTIONS
from sabir_testing.subject import Note, Subject

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

    def client(self, base_url: str) -> object | None:
        """A client of the vendor's SDK for that address, as a user would pass it; None where none can be passed."""
        return None

    def subject_of(self) -> Subject:
        """What the cases are given."""
        return Subject(self)

    @pytest.fixture
    def subject(self, record_property: Note) -> Subject:
        """What is under test."""
        return Subject(self, record_property)

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
    adapter: object = suite.adapter
    if not isinstance(adapter, sabir.ModelAdapter):
        kind = type(adapter).__name__
        raise TypeError(f"{who}.adapter is of type {kind}; give what sabir.adapter('provider:model') makes")
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


def _check_names(suite: type[Suite], who: str, cases: Collection[str]) -> None:
    """TypeError for a name of the kit's own, and for an attribute that is misspelt."""
    own = [each for each in suite.__mro__ if not (each.__module__.startswith(f"{__package__}.") or _is_family(each))]
    given, taken = sorted({name for each in own for name in vars(each)}), _own_names(suite)
    for name in given:
        if name in cases:
            remedy = f"to opt out, write xfail = {{{name!r}: 'the reason'}}"
            raise TypeError(f"{who} overrides {name}, a case of the kit; {remedy}")
        if name in taken:
            raise TypeError(f"{who} overrides {name}, which the kit needs for itself; choose another name")
        is_public = not name.startswith(("_", "test_")) and name not in vars(Suite)
        if is_public and (near := difflib.get_close_matches(name, _ATTRIBUTES, n=1, cutoff=0.85)):
            raise TypeError(f"{who}.{name} is no attribute of a suite; did you mean {near[0]!r}?")


def _check_types(suite: type[Suite], who: str) -> None:
    """TypeError for what would fail in every case, or in none, without saying why."""
    for what in ("xfail", "capabilities", "prompts", "settings"):
        given: object = getattr(suite, what)
        if not isinstance(given, Mapping):
            raise TypeError(f"{who}.{what} is of type {type(given).__name__}; give a dict")
    folder: object = suite.cassettes
    if folder is not None and not isinstance(folder, Path):
        kind = type(folder).__name__
        raise TypeError(f"{who}.cassettes is of type {kind}; give a Path: Path(__file__).parent / 'cassettes'")
    if suite.examples < 1:
        raise TypeError(f"{who}.examples is {suite.examples}; give at least 1")


def _is_family(cls: type) -> bool:
    """Whether a class brings cases of its own, or is nobody's."""
    return cls is object or bool(vars(cls).get("family"))


def _own_names(suite: type[Suite]) -> set[str]:
    """What families keep for themselves: fixtures, and what their cases call."""
    families = [each for each in suite.__mro__ if each.__module__.startswith(f"{__package__}.") and each is not Suite]
    helpers = {name for each in families for name in vars(each) if not name.startswith("__")}
    return (helpers - set(vars(Suite))) | {"subject", "subject_of"}


def _known(name: str, names: Collection[str], where: str) -> None:
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1)
        remedy = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"
        raise TypeError(f"{where} names {name!r}, which there is not; {remedy}")
