"""The double for programs: an adapter with answers from a test, which records its requests.

answers · gate ─▶ wire ─▶ adapter: its requests, and which answer of the script for which
"""

from sabir_testing.scripted.adapter import ScriptedAdapter, ScriptedArguments
from sabir_testing.scripted.answers import (
    Answer,
    Scriptable,
    Sent,
    always,
    call,
    calls,
    cut_off,
    delayed,
    pieces,
    reply,
)
from sabir_testing.scripted.gate import Gate, ScriptMismatch

__all__ = [
    "Answer", "Gate", "ScriptMismatch", "Scriptable", "ScriptedAdapter", "ScriptedArguments", "Sent", "always", "call",
    "calls", "cut_off", "delayed", "pieces", "reply",
]  # fmt: skip
