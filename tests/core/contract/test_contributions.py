"""Names that several packages provide: a table of contributions and strings, with what each string means."""

import sys
import threading
from collections.abc import Mapping
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import sabir
from hypothesis import given
from hypothesis import strategies as st
from sabir.contract.contributions import Contribution, choose_contribution
from sabir.contract.scope import DecodeScope
from sabir.discovery import Registry, default_registry
from sabir.errors import DialectMissing, PluginConflict, PluginError, ProviderBroken, ProviderMissing

from tests.core.distributions import Install, finish_loading
from tests.core.support import Tiny, TinyDialect, raises_line

ROW: Mapping[str, Any] = {"reserves_name": True}
PLAIN: Mapping[str, Any] = {}
MORE: Mapping[str, Any] = {"adds_dialects": True}
SOURCE = """
from sabir.vocabulary.models import ModelInfo

class Acme:
    name, api_version, credentials, request_ids = "acme", 1, (), ()
    dialects = {dialects!r}
    {flags}
    def dialect(self, short_name): return f"{package} {{short_name}}"
    def endpoint(self, access): return "https://{package}.example"
    def connect(self, access): raise NotImplementedError
    def quirks(self, access): return frozenset()
    def models(self): return (ModelInfo(prefix="{package}-"),)

acme = Acme()
"""


class Package(NamedTuple):
    """A distribution that provides `acme` in some dialects."""

    name: str
    dialects: tuple[str, ...]
    flags: Mapping[str, Any] = PLAIN
    error: str = ""

    def install(self, install: Install, number: int = 0) -> None:
        module = f"{self.name}_{number}"
        flags = "; ".join(f"{flag} = {value!r}" for flag, value in self.flags.items()) or "pass"
        source = SOURCE.format(dialects=self.dialects, flags=flags, package=self.name)
        points = {"sabir.providers": {"acme": f"{module}:acme"}}
        install(self.name, points, **{module: self.error or source})


BROKEN = Package("broken", ("bad",), error="raise ValueError('out of order')")
TABLE: list[tuple[list[Package], dict[str, str | type[PluginError]]]] = [
    ([Package("a", ("talk", "wire"))], {"acme": "a talk", "acme.talk": "a talk", "acme.wire": "a wire"}),
    (
        [Package("a", ("chat",), ROW), Package("b", ("native", "chat"))],
        {"acme": "a chat", "acme.chat": "a chat", "acme.native": "b native", "acme.x": DialectMissing},
    ),
    (
        [Package("a", ("native", "chat")), Package("b", ("chat",), ROW), Package("c", ("more",), MORE)],
        {"acme": "b chat", "acme.chat": "b chat", "acme.native": "a native", "acme.more": "c more"},
    ),
    (
        [Package("a", ("messages",), MORE), Package("b", ("converse",))],
        {"acme": "b converse", "acme.converse": "b converse", "acme.messages": "a messages"},
    ),
    (
        [Package("a", ("messages",), MORE), Package("b", ("messages", "more"), MORE)],
        {"acme": ProviderMissing, "acme.messages": PluginConflict, "acme.more": "b more", "acme.x": DialectMissing},
    ),
    ([Package("a", ("talk",)), Package("b", ("talk",))], {"acme": PluginConflict, "acme.talk": PluginConflict}),
    (
        [Package("a", ("talk", "wire")), Package("b", ("wire", "hum"))],
        {"acme": PluginConflict, "acme.talk": "a talk", "acme.wire": PluginConflict, "acme.hum": "b hum"},
    ),
    (
        [Package("a", ("talk",), ROW), Package("b", ("hum",), ROW), Package("c", ("hum", "buzz"))],
        {"acme": PluginConflict, "acme.talk": "a talk", "acme.hum": "b hum", "acme.buzz": "c buzz"},
    ),
    (
        [Package("a", ("wire", "talk")), Package("b", ("wire",), MORE)],
        {"acme": "a wire", "acme.wire": PluginConflict, "acme.talk": "a talk"},
    ),
    ([BROKEN, Package("c", ("chat",), ROW)], {"acme": "c chat", "acme.chat": "c chat", "acme.bad": DialectMissing}),
    ([BROKEN, Package("a", ("talk",))], {"acme": "a talk", "acme.talk": "a talk"}),
    ([BROKEN, Package("a", ("talk",), MORE)], {"acme": ProviderMissing, "acme.talk": "a talk"}),
    ([BROKEN], {"acme": ProviderBroken, "acme.bad": ProviderBroken}),
]  # fmt: skip


def meaning(registry: Registry, name: str) -> str | type[PluginError]:
    """Return the dialect that a string means, or the class of its error; each way of asking must agree."""
    provider, _, dialect = name.partition(".")
    try:
        loaded = registry.provider(provider, dialect or None)
    except PluginError as error:
        for ask in (lambda: registry.split_model(f"{name}:x"), lambda: registry.models(provider, dialect or None)):
            with pytest.raises(type(error)):
                ask()
        return type(error)
    spoken: Any = loaded.dialect(registry.split_model(f"{name}:x").dialect or loaded.dialects[0])
    package = str(spoken).partition(" ")[0]
    assert [info.prefix for info in registry.models(provider, dialect or None)] == [f"{package}-"]
    return str(spoken)


@pytest.mark.parametrize(("packages", "strings"), TABLE)
def test_a_string_means_what_the_declarations_say(
    install: Install, packages: list[Package], strings: Mapping[str, str | type[PluginError]]
) -> None:
    """A reserving provider, then an ordinary one, has the bare name; each dialect has its full name."""
    for package in packages:
        package.install(install)
    registry = Registry()

    assert {name: meaning(registry, name) for name in strings} == strings
    statuses = [each for each in registry.providers() if each.name == "acme"]
    assert all(each.state == "failed" and each.error for each in statuses if not each.names)
    reached = {name: [each.distribution for each in statuses if name in each.names] for name in strings}
    assert reached == {
        name: [words.partition(" ")[0]] if isinstance(words, str) else [] for name, words in strings.items()
    }


def errors(registry: Registry, *names: str) -> list[str]:
    """Return the text of the error that each string raises."""
    texts = []
    for name in names:
        with raises_line(PluginError) as caught:
            registry.split_model(f"{name}:x")
        texts.append(str(caught.value))
    return texts


def test_errors_name_the_packages_and_the_strings_that_work(install: Install) -> None:
    for package in (Package("a", ("talk", "wire")), Package("b", ("wire", "hum"))):
        package.install(install)
    registry = Registry()

    works = "is claimed by a 1.0 and b 1.0; write acme.talk:model or acme.hum:model, or uninstall one of them"
    assert errors(registry, "acme", "acme.wire", "acme.x") == [
        f"provider 'acme' {works}",
        f"provider 'acme.wire' {works}",
        "'acme.x' is not a dialect; acme has acme.talk, acme.hum",
    ]


def test_a_name_of_added_dialects_alone_shows_them_the_failure_and_the_hint(install: Install) -> None:
    Package("a", ("messages",), MORE).install(install)
    BROKEN.install(install)
    install("hints", {"sabir.hints": {"acme": "acme_hints:ACME"}}, acme_hints="ACME = 'or write zenith:model'")

    (text,) = errors(Registry(), "acme")
    added = "provider 'acme' must be named with a dialect; write acme.messages:model; "
    assert text.startswith(f"{added}'acme' of broken 1.0 (broken_0:acme) cannot be loaded: ValueError: out of order")
    assert text.endswith("; or write zenith:model")


@pytest.mark.parametrize("flags", [PLAIN, ROW], ids=["ordinary", "reserving"])
def test_a_name_that_passes_to_another_package_because_one_is_broken_is_logged(
    install: Install, caplog: pytest.LogCaptureFixture, flags: Mapping[str, Any]
) -> None:
    Package("a", ("talk",), flags).install(install)
    BROKEN.install(install)
    registry = Registry()
    for _ in range(2):
        registry.provider("acme", "talk")
        registry.provider("acme")

    texts = [record.getMessage() for record in caplog.records]
    assert [text.endswith("until that is fixed, 'acme' means the provider from a 1.0") for text in texts] == [True] * (
        not flags
    )


@pytest.mark.parametrize(
    "flags",
    [{"reserves_name": True, "adds_dialects": True}, {"reserves_name": 1}, {"adds_dialects": "yes"}],
    ids=["both", "number", "text"],
)
def test_declarations_that_contradict_themselves_are_refused(install: Install, flags: dict[str, Any]) -> None:
    Package("a", ("talk",), flags).install(install)

    assert "of a 1.0 has reserves_name and adds_dialects" in errors(Registry(), "acme")[0]


def test_a_package_that_does_not_finish_loading_keeps_no_other_from_its_name(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = threading.Event()
    monkeypatch.setattr(sys, "slow_finishes", finish, raising=False)
    monkeypatch.setattr("sabir.discovery.LONGEST_LOAD", 0.2)
    Package("slow", ("bad",), error="import sys; sys.slow_finishes.wait()").install(install)
    Package("a", ("talk",), ROW).install(install)

    assert meaning(Registry(), "acme") == "a talk"
    finish_loading(finish)


@st.composite
def packages(draw: st.DrawFn, flags: tuple[Mapping[str, Any], ...] = (ROW, PLAIN, MORE)) -> Contribution:
    """A contribution that was never installed."""
    dialects = draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True))
    provider: Any = SimpleNamespace()
    declared = {"reserves_name": False, "adds_dialects": False, **draw(st.sampled_from(flags))}
    return Contribution(provider, f"package {id(provider)}", tuple(dialects), **declared)


def means(contributions: list[Contribution], dialect: str | None) -> Contribution | type[Exception]:
    try:
        return choose_contribution("acme", contributions, dialect)
    except PluginError as error:
        return type(error)


@given(st.lists(packages(), min_size=1, max_size=4), st.sampled_from([None, "a", "b", "c"]), st.randoms())
def test_the_order_of_packages_decides_nothing(
    contributions: list[Contribution], dialect: str | None, random: Random
) -> None:
    shuffled = random.sample(contributions, len(contributions))

    assert means(contributions, dialect) is means(shuffled, dialect)


@given(
    st.lists(packages(), min_size=1, max_size=4), packages(flags=(PLAIN, MORE)), st.sampled_from([None, "a", "b", "c"])
)
def test_a_package_that_reserves_nothing_never_changes_what_a_string_means(
    before: list[Contribution], added: Contribution, dialect: str | None
) -> None:
    """A string that worked means the same or raises PluginConflict; the bare name ignores added dialects."""
    meaning, later = means(before, dialect), means([*before, added], dialect)

    if isinstance(meaning, Contribution):
        assert later in (meaning, PluginConflict)
    if dialect is None and added.adds_dialects:
        assert later is meaning


class More(Tiny):
    """A package that adds a dialect to the tiny provider's name."""

    dialects, adds_dialects = ("more",), True

    def dialect(self, short_name: str) -> Any:
        other = TinyDialect()
        vars(other)["name"] = "tiny.more"
        return other


@pytest.fixture
def more(tiny: Tiny) -> More:
    provider = More()
    default_registry.register("tiny", provider)
    return provider


def test_a_program_adds_dialects_to_a_name(tiny: Tiny, more: More) -> None:
    statuses = [each for each in sabir.providers() if each.name == "tiny"]

    assert [each.names for each in statuses] == [("tiny", "tiny.talk"), ("tiny.more",)]
    assert [each.means_bare_name for each in statuses] == [True, False]
    assert [sabir.adapter(name).provider for name in ("tiny:m", "tiny.talk:m", "tiny.more:m")] == [tiny, tiny, more]
    assert sabir.dialect("tiny.more").provider is more
    reserving, hidden = Tiny(), More()
    vars(reserving)["reserves_name"], vars(hidden)["dialects"] = True, ("talk",)
    for other in (Tiny(), More(), reserving, hidden):
        with pytest.raises(PluginConflict, match=r"'tiny' is already provided by an earlier sabir.register"):
            sabir.register("tiny", other)


@pytest.mark.usefixtures("more")
def test_dialects_of_two_packages_do_not_read_each_others_signed_state() -> None:
    """One provider name and one endpoint are not enough: an origin holds the dialect too."""
    targets = {name: sabir.adapter(f"{name}:m") for name in ("tiny.talk", "tiny.more")}
    for name, adapter in targets.items():
        origin = DecodeScope(adapter.target).origin()
        differences = {other: each.new_renderer().scope.differs_by(origin) for other, each in targets.items()}
        assert differences == {other: "" if other == name else "dialect" for other in targets}
