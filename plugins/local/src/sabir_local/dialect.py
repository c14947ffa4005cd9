"""Chat Completions as the embedded server speaks it.

    openai.chat ── as it is, but for whether the model is to call

A model of this size calls when it is made to and answers when it is kept from calling; left to itself it does neither
reliably. So where the caller leaves the choice open, a turn of the user's asks for a call, and a turn of results for an
answer (figures and the command that repeats them: server.py).
"""

from collections.abc import Mapping

from sabir.contracts import Dialect
from sabir.scope import RequestScope
from sabir.values import JSONValue
from sabir_openai.chat_dialect import ChatDialect

CHOICES: Mapping[str | None, Mapping[str, JSONValue]] = {
    "user": {"tool_choice": "required", "parallel_tool_calls": False},
    "results": {"tool_choice": "none"},
}
"""The side of the last turn → what an open choice becomes."""
LEFT_OPEN = (None, "auto")


class LocalDialect(ChatDialect):
    """The dialect `openai.chat` for a small model behind the embedded server."""

    def encode_request(self, scope: RequestScope) -> Mapping[str, JSONValue]:
        """As `openai.chat` encodes it; an open choice of an option is decided by whose turn it is."""
        body = super().encode_request(scope)
        choice = body.get("tool_choice", "auto") if "tools" in body else "decided"
        return {**body, **CHOICES.get(scope.last_side, {})} if choice in LEFT_OPEN else body


LOCAL_CHAT: Dialect = LocalDialect()
