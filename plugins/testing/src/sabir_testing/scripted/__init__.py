"""The double for programs: an adapter with answers from a test, which records its requests.

answers · gate ─▶ wire ─▶ provider ─▶ adapter        sent ─▶ script: which answer for which request
"""

from sabir_testing.scripted.adapter import ScriptedAdapter, ScriptedArguments
from sabir_testing.scripted.answers import (
    Answer,
    Scriptable,
    always,
    call,
    calls,
    cut_off,
    delayed,
    pieces,
    reply,
)
from sabir_testing.scripted.gate import Gate, ScriptMismatch
from sabir_testing.scripted.sent import Sent

__all__ = [
    "Answer", "Gate", "ScriptMismatch", "Scriptable", "ScriptedAdapter", "ScriptedArguments", "Sent", "always", "call",
    "calls", "cut_off", "delayed", "pieces", "reply",
]  # fmt: skip
