"""What a case is given: the adapter under test, taken apart into what the contract names.

adapter ──▶ provider · dialect · target        renderer() fresh · render() · items() · scope() · connect()
        ──▶ grade(capability, seen)            held against what the author declared, and noted for the summary
"""

import json
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import sabir
from sabir.base.values import JSONValue
from sabir.contract.protocols import Access, Connection, Dialect, Provider, Rendering
from sabir.contract.scope import DecodeScope, Tables
from sabir.errors import RenderingRefused
from sabir.options.option import Option
from sabir.rendering.renderer import Renderer
from sabir.vocabulary.messages import Message
from sabir.vocabulary.settings import Settings
from sabir.vocabulary.target import Target

from sabir_testing.broken import Broken
from sabir_testing.capabilities import CAPABILITIES, UNKNOWN, Grade

if TYPE_CHECKING:
    from sabir_testing.base import Suite

CAPABILITY_PROPERTY = "sabir.capability"
"""The name under which a case notes for the summary what it saw."""
HANDED_OVER = "sabir.handed_over"
"""The name under which it notes to which installed dialects the author's replies were handed over."""
Note = Callable[[str, object], None]
"""pytest's `record_property`."""


def _note_nothing(name: str, value: object) -> None:
    """For a subject outside a test."""


class Subject:
    """What is under test."""

    def __init__(self, suite: "Suite", note: Note = _note_nothing) -> None:
        self.suite = suite
        self.adapter: sabir.ModelAdapter = suite.adapter
        self._note = note

    @property
    def target(self) -> Target:
        """Where its renderings go."""
        return self.adapter.target

    @cached_property
    def provider(self) -> Provider:
        """Who carries its requests."""
        return self.adapter.provider

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

    def render(
        self,
        history: Sequence[Message],
        options: Sequence[Option] = (),
        settings: Settings | None = None,
        renderer: Renderer | None = None,
    ) -> Rendering | None:
        """The request for a history, rendered afresh unless a renderer is given; None where nothing is left to send."""
        try:
            return (renderer or self.renderer()).render(history, options, settings)
        except RenderingRefused:
            return None

    def rendered(
        self, history: Sequence[Message], options: Sequence[Option] = (), settings: Settings | None = None
    ) -> Rendering:
        """As `render`; Broken where nothing is left."""
        rendering = self.render(history, options, settings)
        if rendering is None:
            raise Broken("nothing is left to send of a history that holds a user's text", history=history)
        return rendering

    def items(self, rendering: Rendering | None) -> list[JSONValue]:
        """The wire's items of the messages field; none of no rendering."""
        if rendering is None:
            return []
        found: list[JSONValue] = json.loads(rendering.body_bytes)[self.dialect.messages_field]
        return found

    def scope(self) -> DecodeScope:
        """For decoding what this target answers."""
        return DecodeScope(self.target, policy=self.adapter.speaks_as)

    def connect(self, **access: Any) -> Connection:  # the fields of Access
        """A connection with that access."""
        return self.provider.connect(Access(**access))

    def declared(self, capability: str) -> Grade:
        """The grade that the author declared."""
        return Grade(self.suite.capabilities.get(capability, UNKNOWN))

    def grade(
        self,
        capability: str,
        seen: Grade,
        *,
        what: str = "",
        history: Sequence[Message] = (),
        rendering: Rendering | None = None,
    ) -> None:
        """Note what was seen; Broken where the author declared another grade. `what` says what was seen, in words."""
        self._note(CAPABILITY_PROPERTY, [capability, str(seen)])
        declared = self.declared(capability)
        if declared in (UNKNOWN, seen):
            return
        saw = f": {what}" if what else ""
        raise Broken(
            f"{capability} ({CAPABILITIES[capability]}) is declared {declared}, but was seen to be {seen}{saw}; "
            f"mend the dialect, or declare capabilities = {{{capability!r}: {seen.name}}}",
            history=history,
            rendering=rendering,
        )
