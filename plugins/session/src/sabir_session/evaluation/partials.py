"""Versions of an output while it arrives.

    pieces ──▶ JSONScanner ──▶ Draft ──▶ Partial(Trip(city="Ro", days=None))
                                └ complete ──▶ the validators of the output type ──▶ Partial(…, is_complete=True)

Law: the work is linear in the length of the text. Every character is scanned once, and validated once for each value
that contains it: for an output of depth d, at most d + 1 times. A version copies references to the values in what is
open, so a long text has a version only after VERSIONS_IN_LENGTH-th of it is new: all copies together take at most
VERSIONS_IN_LENGTH times the length of the text.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, TypeAdapter

from sabir_session.evaluation.events import Event, OutputArrived, ReplyArrived, RequestStarted, TextArrived
from sabir_session.evaluation.json_scanner import JSONScanner, OpenContainer
from sabir_session.evaluation.prompts import Output
from sabir_session.evaluation.shapes import MISSING, DraftChoice, Shape

Selected = TypeVar("Selected")

VERSIONS_IN_LENGTH = 512
"""A version is built when this part of the text is new: for a text of 5,120 characters, every 10 characters."""


@dataclass(frozen=True)
class Partial(Generic[Output]):
    """A version of an output while it arrives. `stream.outputs` of an answer yields these objects.

    `output` is the output so far: an object of the output type whose missing fields are None. In lists and dicts, only
    what arrived is there, and the last value may be incomplete itself. A string may be cut off; a number, an Enum, a
    date and every other value is there when it is complete. An object of a union is there when only one of its types
    has all keys that arrived. An object is validated when it is complete. A value that does not fit its type is left
    out, and no validation error is raised. `output` has no static type, because Python cannot express "the same fields,
    but optional"; `get` has one.

    `is_complete` says whether `output` is complete, and fits its type.

    >>> import sabir_session
    >>> with sabir_session.Conversation("echo:m").stream_sync('[1, 2, 3]', output=list[int]) as stream:
    ...     for part in stream.outputs:
    ...         print(part.output, part.is_complete)
    [1] False
    [1, 2] False
    [1, 2, 3] True
    """

    output: Any
    is_complete: bool = False

    def get(self, select: Callable[[Output], Selected]) -> Selected | None:
        """Return what a function selects from `output`, or None while it is missing.

        Type checkers know the fields of the function's argument, and that the result may be None.

        >>> import sabir_session
        >>> part: sabir_session.Partial[list[str]] = sabir_session.Partial(["Rome"])
        >>> part.get(lambda cities: cities[0].upper()), part.get(lambda cities: cities[1].upper())
        ('ROME', None)
        """
        try:
            return select(self.output)
        except (AttributeError, LookupError, TypeError):
            return None


class OutputWrapper(BaseModel):
    """The object around a value whose own schema is not an object."""

    value: Any


class OutputForm:
    """How an output is read from a complete JSON text, and from an incomplete text.

    `read` returns the output of a complete text, or raises ValueError. `adapter` is the type of the JSON. If it is an
    object around the output, `inner` is the type of the output.
    """

    def __init__(
        self,
        read: Callable[[str], object],
        adapter: TypeAdapter[Any],
        inner: TypeAdapter[Any] | None,
        *,
        searches: bool,
        most_values: int,
    ) -> None:
        self.read = read
        self.searches = searches
        self.most_values = most_values
        self._adapters = adapter, inner
        self._shapes: tuple[Shape, Shape | None] | None = None

    def draft(self, root: OpenContainer) -> DraftChoice:
        """Return the draft of a JSON text. A model may also have left out the object around the output."""
        if self._shapes is None:
            adapter, inner = self._adapters
            self._shapes = Shape.of(adapter), None if inner is None else Shape.of(inner)
        key = root.closed[0].key if root.closed else root.key
        has_wrapper = root.bracket == "{" and key == "value"
        outer, inner_shape = self._shapes
        return DraftChoice(outer if inner_shape is None or has_wrapper else inner_shape, root)


class VersionBuilder(ABC):
    """Builds the versions of an output from the pieces of one reply's text, or of the arguments of a call."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = self._seen = 0

    def feed(self, piece: str) -> Partial[Any] | None:
        """Return the version with the next piece, or None if nothing can be shown, or too little is new."""
        self._pieces.append(piece)
        self._length += len(piece)
        is_due = (self._length - self._seen) * VERSIONS_IN_LENGTH >= self._length
        version = self._version(is_due=is_due)
        self._seen = self._length if is_due else self._seen
        return version

    @abstractmethod
    def end(self) -> Partial[Any] | None:
        """Return the version at the end of the reply."""

    @abstractmethod
    def _version(self, *, is_due: bool) -> Partial[Any] | None:
        """Return the version now. If it is not due, return only a complete version."""


class TextVersions(VersionBuilder):
    """The versions of a plain text, which is complete when the reply is."""

    def end(self) -> Partial[Any]:
        """Return the complete text."""
        return Partial("".join(self._pieces), is_complete=True)

    def _version(self, *, is_due: bool) -> Partial[Any] | None:
        if not is_due:
            return None
        self._pieces = ["".join(self._pieces)]
        return Partial(self._pieces[0])


class JSONVersions(VersionBuilder):
    """The versions of an output that is read from JSON."""

    def __init__(self, form: OutputForm) -> None:
        super().__init__()
        self._form = form
        self._scanner = JSONScanner(searches=form.searches, most_values=form.most_values)
        self._draft: tuple[object, DraftChoice | None] = (None, None)
        self._is_complete = False

    def feed(self, piece: str) -> Partial[Any] | None:
        """Return the version with the next piece, or None if nothing can be shown, or too little is new."""
        self._scanner.feed(piece)
        return super().feed(piece)

    def end(self) -> Partial[Any] | None:
        """Return the complete output if it was not shown yet, or what can be shown of an output that is cut off."""
        return None if self._is_complete else self._complete("".join(self._pieces)) or self._draft_version()

    def _version(self, *, is_due: bool) -> Partial[Any] | None:
        if self._is_complete:
            return None
        if self._scanner.text is not None:
            return self._complete(self._scanner.text)
        return self._draft_version() if is_due else None

    def _complete(self, text: str) -> Partial[Any] | None:
        with suppress(ValueError):
            version = Partial(self._form.read(text), is_complete=True)
            self._is_complete = True
            return version
        return None

    def _draft_version(self) -> Partial[Any] | None:
        root = self._scanner.root
        if root is None or not (root.closed or root.child):
            return None
        if self._draft[0] is not root:  # a scanner that searches may have begun another object
            self._draft = (root, self._form.draft(root))
        output = MISSING if self._draft[1] is None else self._draft[1].build()
        if isinstance(output, OutputWrapper):
            output = output.value if output.model_fields_set else MISSING
        return None if output is MISSING else Partial(output)


class OutputVersions(Generic[Output]):
    """Converts the events of an answer to the versions of its output.

    `create` creates the builder for the versions of one reply; None means that there are no versions.
    """

    def __init__(self, create: Callable[[], VersionBuilder] | None) -> None:
        self._create = create
        self._builder: VersionBuilder | None = None
        self._is_call = False
        self._last: Partial[Any] | None = None

    def __call__(self, event: Event) -> Partial[Output] | None:
        """Return the new version of the output if the event changed it; else None."""
        if isinstance(event, RequestStarted):
            self._builder, self._is_call, self._last = None, False, None
        elif isinstance(event, ReplyArrived):
            is_output = self._is_call or not (event.reply.option_calls or event.reply.refusal)
            return self._changed(self._builder.end() if self._builder is not None and is_output else None)
        elif isinstance(event, TextArrived | OutputArrived) and self._create is not None:
            is_call = isinstance(event, OutputArrived)
            if self._builder is None or (is_call and not self._is_call):  # a text before the call is not the output
                self._builder, self._is_call = self._create(), is_call
            if is_call == self._is_call:
                return self._changed(self._builder.feed(event.text))
        return None

    def _changed(self, version: Partial[Any] | None) -> Partial[Any] | None:
        if version is None or version == self._last:
            return None
        self._last = version
        return version
