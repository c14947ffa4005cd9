"""Fixtures of core's tests."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sabir.discovery import default_registry

from tests.core.distributions import EntryPoints, Install, write_distribution
from tests.core.support import Tiny


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install distributions for one test; their modules are forgotten afterwards."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    before = set(sys.modules)

    def write(name: str, entry_points: EntryPoints, *, version: str = "1.0", **modules: str) -> None:
        write_distribution(folder, name, entry_points, version, modules)
        importlib.invalidate_caches()

    yield write
    for name in set(sys.modules) - before:
        if str(folder) in (getattr(sys.modules[name], "__file__", None) or ""):
            del sys.modules[name]


@pytest.fixture
def tiny() -> Iterator[Tiny]:
    provider = Tiny()
    default_registry.register("tiny", provider)
    yield provider
    default_registry.unregister("tiny")
