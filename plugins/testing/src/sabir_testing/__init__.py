"""Tests for authors of providers, and scripted adapters for tests of programs that use sabir.

    class TestAcme(ProviderConformance):        all rules of sabir, tested on your provider
        adapter = sabir.adapter("acme:small", api_key="test")
        cassettes = Path(__file__).parent / "cassettes"

    llm = ScriptedAdapter("It rains.")          an adapter with predefined answers, for your program

Each public name is loaded at its first use, because pytest loads this package at every start.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sabir_testing.families import OfflineConformance, ProviderConformance
    from sabir_testing.kit.capabilities import CAPABILITIES, DOWNGRADED, FULL, REFUSED, UNKNOWN, Grade
    from sabir_testing.kit.failures import ConformanceFailure, expect
    from sabir_testing.kit.suite import AdapterUnderTest
    from sabir_testing.live.questions import live_settings
    from sabir_testing.loss_locks.fixture import LossLock
    from sabir_testing.network import NetworkForbidden, network_forbidden
    from sabir_testing.plugin import MakeScripted
    from sabir_testing.scripted import (
        Answer,
        Gate,
        Scriptable,
        ScriptedAdapter,
        ScriptedRequest,
        ScriptMismatch,
        always,
        call,
        calls,
        cut_off,
        delayed,
        pieces,
        reply,
    )
    from sabir_testing.scripted.embeddings import ScriptedEmbeddings

_HOMES = (
    "scripted",
    "scripted.embeddings",
    "plugin",
    "network",
    "kit.capabilities",
    "kit.failures",
    "kit.suite",
    "live.questions",
    "loss_locks.fixture",
    "families",
)
"""The modules that define the names, searched in this order."""
_RENAMED = {"Sent": "ScriptedRequest"}
"""Old name → new name. Earlier programs still use the old names."""

__all__ = [
    "CAPABILITIES", "DOWNGRADED", "FULL", "REFUSED", "UNKNOWN", "AdapterUnderTest", "Answer", "ConformanceFailure",
    "Gate", "Grade", "LossLock", "MakeScripted", "NetworkForbidden", "OfflineConformance", "ProviderConformance",
    "ScriptMismatch", "Scriptable", "ScriptedAdapter", "ScriptedEmbeddings", "ScriptedRequest", "always", "call",
    "calls", "cut_off", "delayed", "expect", "live_settings", "network_forbidden", "pieces", "reply",
]  # fmt: skip


def __getattr__(name: str) -> object:
    name = _RENAMED.get(name, name)
    for module in _HOMES if name in __all__ else ():
        if hasattr(home := import_module(f"sabir_testing.{module}"), name):
            return getattr(home, name)
    raise AttributeError(f"module 'sabir_testing' has no attribute {name!r}")
