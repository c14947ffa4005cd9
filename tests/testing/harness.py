"""Adapters that are broken in one way each, made of the worked dialect, and the kit run on them.

Breakage ──▶ a provider of its own name around acme's ──▶ a suite ──pytester──▶ the cases that fail
"""

import gc
import importlib.util
import itertools
import os
import ssl
from collections.abc import Callable, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import anyio._backends._asyncio  # noqa: F401  # pytester forgets what is first imported within a run
import h11  # noqa: F401
import httpcore2  # noqa: F401
import httpx2  # noqa: F401
import pytest
import sabir
import sniffio  # noqa: F401
from sabir.contract.dialect import Dialect
from sabir.contract.provider import Access, Connection, Provider
from sabir.errors import HistoryInvalid
from sabir_acme.plugin import acme
from sabir_testing import REFUSED, ProviderConformance

TEMPLATE = Path(sabir.__file__).parents[3] / "plugins" / "cli" / "src" / "sabir_cli" / "template"
FEW = 2
"""Examples a law where a law is not what is broken."""
WHOLE = bool(os.environ.get("SABIR_WHOLE_KIT"))
"""Whether all cases run on every broken adapter, which takes a quarter of an hour: `nox -s kit`."""
FAMILIES = ("contract", "requests", "laws", "replies", "streams", "errors", "transport", "handover", "embeddings")
LATER = "999.0"
"""A version of the kit in which no case is new, so that none only warns."""
_NUMBERS = itertools.count()


@dataclass(frozen=True)
class Breakage:
    """How acme is broken: what stands for its dialect, its connection or the whole provider.

    `attributes` are the suite's, where the fault is in what its author says of it.
    """

    dialect: Callable[[Any], Any] | None = None
    connection: Callable[[Any], Any] | None = None
    provider: Callable[[Any], Any] | None = None
    attributes: Mapping[str, Any] | None = None
    model: str = "small"


def changed(**functions: Callable[..., Any]) -> Breakage:
    """Acme with other functions of its dialect: each is given acme's own before the arguments."""
    return Breakage(
        dialect=lambda base: replace(
            base, **{name: partial(each, getattr(base, name)) for name, each in functions.items()}
        )
    )


def provided(**functions: Callable[..., Any]) -> Breakage:
    """Acme whose provider has other functions: each is given its own before the arguments."""

    def broken(base: Any) -> Any:
        for name, each in functions.items():
            setattr(base, name, partial(each, getattr(base, name)))
        return base

    return Breakage(provider=broken)


def unreading(breakage: Breakage) -> Breakage:
    """The same adapter, if it cannot read stored requests. Reading them back shows most faults of rendering, too, but
    not every dialect can.
    """

    def refuse(body: bytes, scope: Any) -> Any:
        raise HistoryInvalid("this API's requests cannot be read")

    def broken(base: Any) -> Any:
        dialect = base if breakage.dialect is None else breakage.dialect(base)
        if is_dataclass(dialect):
            return replace(dialect, decode_history=refuse)  # type: ignore[type-var]
        dialect.decode_history = refuse
        return dialect

    attributes = dict(breakage.attributes or {})
    capabilities = {**attributes.get("capabilities", sound().capabilities), "stored_requests": REFUSED}
    return replace(breakage, dialect=broken, attributes={**attributes, "capabilities": capabilities})


class Delegate:
    """All that another object has, but for what a subclass says otherwise."""

    def __init__(self, base: Any) -> None:
        self.base = base

    def __getattr__(self, name: str) -> Any:
        return getattr(self.base, name)


class Renamed(Delegate):
    """The provider acme under another name, with a broken dialect or connection."""

    def __init__(self, name: str, breakage: Breakage) -> None:
        super().__init__(acme)
        self.name, self.breakage = name, breakage
        self.api_version, self.dialects = acme.api_version, acme.dialects
        self.credentials, self.request_ids = acme.credentials, acme.request_ids

    def dialect(self, short_name: str) -> Dialect:
        found: Dialect = acme.dialect(short_name)
        return found if self.breakage.dialect is None else self.breakage.dialect(found)

    def endpoint(self, access: Access) -> str:
        return acme.endpoint(access)

    def connect(self, access: Access) -> Connection:
        made: Connection = acme.connect(access)
        return made if self.breakage.connection is None else self.breakage.connection(made)

    def quirks(self, access: Access) -> frozenset[str]:
        return acme.quirks(access)

    def models(self) -> Any:
        return acme.models()


@contextmanager
def registered(breakage: Breakage) -> Any:
    """The name of a provider that is broken so, for as long as the block runs."""
    name = f"acme{next(_NUMBERS)}"
    provider: Provider = Renamed(name, breakage)
    if breakage.provider is not None:
        provider = breakage.provider(provider)
    sabir.register(name, provider)
    try:
        yield name
    finally:
        sabir.unregister(name)


@cache
def sound() -> type[ProviderConformance]:
    """The suite that the template's own tests hold."""
    spec = importlib.util.spec_from_file_location("acme_suite", TEMPLATE / "tests" / "test_acme.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sabir.register("acme", acme)
    try:
        spec.loader.exec_module(module)
    finally:
        sabir.unregister("acme")
    found: type[ProviderConformance] = module.TestAcme
    return found


def suite_of(provider: str, breakage: Breakage, examples: int) -> type[ProviderConformance]:
    """The template's suite, for the provider of that name."""
    said = {name: value for name, value in vars(sound()).items() if not name.startswith("__")}
    adapter = sabir.adapter(f"{provider}:{breakage.model}", api_key="test")
    given = {**said, "adapter": adapter, "sdk": "", "examples": examples, **(breakage.attributes or {})}
    return type("TestBroken", (ProviderConformance,), given)


def failed_cases(pytester: pytest.Pytester, breakage: Breakage, examples: int) -> list[str]:
    """The cases of the whole kit that fail for an adapter that is broken so."""
    return _failed(pytester, breakage, (), examples)


def failed_in(pytester: pytest.Pytester, breakage: Breakage, family: str) -> list[str]:
    """The cases of a family that fail for an adapter that is broken so."""
    return _failed(pytester, breakage, [case for each in FAMILIES if each != family for case in cases_of(each)], FEW)


def failed_rows(pytester: pytest.Pytester, breakage: Breakage, case: str, examples: int = FEW) -> list[str]:
    """The rows of this case that fail for an adapter that is broken so."""
    kept = case.partition("[")[0]
    return _failed(
        pytester, breakage, [each for family in FAMILIES for each in cases_of(family) if each != kept], examples
    )


def fails(pytester: pytest.Pytester, breakage: Breakage, case: str, examples: int = FEW) -> bool:
    """Whether this one case fails for an adapter that is broken so."""
    return bool(failed_rows(pytester, breakage, case, examples))


def _failed(pytester: pytest.Pytester, breakage: Breakage, others: Iterable[str], examples: int) -> list[str]:
    with registered(breakage) as name:
        chosen = [f"--deselect=test_suite.py::TestSuite::{case}" for case in others]
        return [each.name for each in run(pytester, suite_of(name, breakage, examples), *chosen) if each.failed]


def cases_of(family: str) -> tuple[str, ...]:
    """The cases of a family, without their rows."""
    classes = [each for each in ProviderConformance.__mro__ if vars(each).get("family") == family]
    return tuple(name for each in classes for name in vars(each) if name.startswith("test_"))


class Outcome(NamedTuple):
    """How one case ended: its name with its row, and what it said where it failed."""

    name: str
    failed: bool
    said: str


def _nothing(*_: object, **__: object) -> None:
    """In place of reading this machine's certificates, seventy times a run: nothing here is asked over TLS."""


def run(pytester: pytest.Pytester, suite: type[ProviderConformance], *chosen: str) -> list[Outcome]:
    """Run the cases of a suite by pytester in this process, on the same examples each time; new cases fail, too."""
    CURRENT["suite"] = suite
    pytester.makepyfile(test_suite="from tests.testing.harness import CURRENT\n\nTestSuite = CURRENT['suite']\n")
    with (
        mock.patch.dict(os.environ, CI="true"),
        mock.patch.object(ssl.SSLContext, "load_verify_locations", _nothing),
        mock.patch("sabir_testing.plugin.version", lambda name: LATER),
    ):
        gc.freeze()  # what other tests left is not collected in these cases, which would fail by its warnings
        try:
            record = pytester.inline_run(*("-p", "no:cacheprovider", "-p", "no:asyncio", "-q", "-W", "error"), *chosen)
        finally:
            gc.unfreeze()
    reports = [each for each in record.getreports("pytest_runtest_logreport") if each.when == "call" or each.failed]
    return [Outcome(each.nodeid.rpartition("::")[2], each.failed, str(each.longrepr or "")) for each in reports]


CURRENT: dict[str, type[ProviderConformance]] = {}
"""What the test file that pytester writes takes its suite from."""
