"""Recorded answers with some values changed, decoded like the answers themselves.

    a complete response ──▶ one JSON document ──────┐  changed({place: value})  ──▶ decode ──▶ the reply, or the error
    a stream ──▶ a JSON document for each event ────┘  place: (document, path)

Law: an answer without changes is decoded to the recorded reply. Events are changed after the framing has read them, so
the framing may be of any kind.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

from sabir import PureDialect, Reply
from sabir.authoring import ServerEvent
from sabir.errors import SabirError

from sabir_testing.kit.asking import STREAMED, WHOLE, QuestionResult, Suffix
from sabir_testing.kit.decoded_recordings import DecodedStream, RecordedStream
from sabir_testing.kit.failures import ConformanceFailure
from sabir_testing.kit.service import OWN_ID, Service
from sabir_testing.reading import JSONPath, as_json, compact_json, member_at, objects, walk

DELETED = object()
"""As the new value of a place: the field is left out."""
Changes: TypeAlias = Mapping["Place", Any]


class Place(NamedTuple):
    """A value in one of an answer's documents."""

    document: int
    path: JSONPath

    @property
    def name(self) -> str:
        """The name of the innermost field that contains the value; "" if there is none."""
        return next((str(step) for step in reversed(self.path) if isinstance(step, str)), "")


class PlacedLeaf(NamedTuple):
    """A text, number, boolean or null in an answer, with its place."""

    place: Place
    content: Any


@dataclass(frozen=True, eq=False)
class ChangeableAnswer:
    """A recorded answer whose values can be changed. `documents` are the JSON values of its body or of its events."""

    label: str
    reply: Reply
    """The reply that the unchanged answer is decoded to."""
    documents: tuple[Any, ...]
    _decode: Callable[[Sequence[Any]], DecodedStream]

    def leaves(self) -> Iterator[PlacedLeaf]:
        """Yield all texts, numbers, booleans and nulls of the answer, in order, without the names of fields."""
        for number, document in enumerate(self.documents):
            for leaf in walk(document):
                if not leaf.is_name:
                    yield PlacedLeaf(Place(number, leaf.path), leaf.value)

    def places_of(self, content: object) -> list[Place]:
        """Return the places of a text, number, boolean or null, compared by its value and type."""
        return [each.place for each in self.leaves() if type(each.content) is type(content) and each.content == content]

    def decode(self, changes: Changes) -> DecodedStream:
        """Decode the answer with other values at some places. The result has a reply or an error."""
        return self._decode(self.changed(changes))

    def decode_documents(self, documents: Sequence[Any]) -> DecodedStream:
        """Decode other documents instead of the answer's. In a stream, DELETED leaves out an event, and a tuple of
        documents replaces an event by several.
        """
        return self._decode(documents)

    def reply_to(self, changes: Changes, what: str) -> Reply:
        """Decode the answer with other values at some places, and return the reply. Raises ConformanceFailure if there
        is none. `what` describes the change.
        """
        decoded = self.decode(changes)
        if decoded.reply is None:
            fault = f"{what} in {self.label} gives {type(decoded.error).__name__} ({decoded.error}); expected a reply"
            raise ConformanceFailure(fault, details=self.details(changes))
        return decoded.reply

    def changed(self, changes: Changes) -> list[Any]:
        """Return the documents with other values at some places. Later places of one list are changed first."""
        documents = list(deepcopy(self.documents))
        for place, content in sorted(changes.items(), key=lambda change: str(change[0]), reverse=True):
            holder = member_at(documents[place.document], place.path[:-1])
            if content is DELETED:
                del holder[place.path[-1]]
            else:
                holder[place.path[-1]] = content
        return documents

    def details(self, changes: Changes) -> dict[str, object]:
        """Return the changed documents, for `details` of a ConformanceFailure."""
        documents = self.changed(changes)
        numbers = sorted({place.document for place in changes})
        return {"the changed response": "\n".join(compact_json(documents[number]) for number in numbers)}


def changeable_answers(service: Service) -> list[ChangeableAnswer]:
    """Return the answers of a suite, complete and streamed, that are JSON. Answers that are not are left out."""
    return service.subject.once("changeable answers", lambda: list(_read_answers(service)))


def _read_answers(service: Service) -> Iterator[ChangeableAnswer]:
    suffixes: list[Suffix] = [WHOLE, *([] if service.refused_need("text", STREAMED) else [STREAMED])]
    for suffix in suffixes:
        for answer in service.answers(suffix):
            readable = _read_complete(answer, service) if suffix == WHOLE else _read_streamed(answer, service)
            if readable is not None and readable.decode({}).reply is not None:
                yield readable


def _read_complete(answer: QuestionResult, service: Service) -> ChangeableAnswer | None:
    subject = service.subject
    body = as_json(answer.exchanges[-1].response_body)
    dialect = PureDialect(subject.dialect, subject.target, subject.provider)

    def decode(documents: Sequence[Any]) -> DecodedStream:
        try:
            return DecodedStream((), dialect.decode(json.dumps(documents[0]), policy=subject.adapter.speaks_as))
        except SabirError as error:
            return DecodedStream((), error=error)  # type: ignore[arg-type]

    is_json = isinstance(body, dict | list)
    return ChangeableAnswer(str(answer), answer.reply, (body,), decode) if is_json else None


def _read_streamed(answer: QuestionResult, service: Service) -> ChangeableAnswer | None:
    exchange = answer.exchanges[-1]
    scope = replace(service.subject.scope(), content_type=exchange.headers.get("content-type", ""))
    stream = RecordedStream(service.subject.dialect, scope, answer.name, exchange.response_body)
    documents = tuple(as_json(event.data) for event in stream.events)

    def decode(changed: Sequence[Any]) -> DecodedStream:
        each_changed = zip(stream.events, documents, changed, strict=True)
        return stream.decode_events([new for each in each_changed for new in _changed_events(*each)])

    return ChangeableAnswer(str(answer), answer.reply, documents, decode)


def _changed_events(event: ServerEvent, document: Any, changed: Any) -> Iterator[ServerEvent]:
    """Yield the events that replace an event of a stream, by `ChangeableAnswer.decode_documents`."""
    for each in changed if isinstance(changed, tuple) else () if changed is DELETED else (changed,):
        yield event if each == document else event._replace(data=compact_json(each))


def renumbered(element: Any, position: int) -> Any:
    """Return a copy of a list's element with other ids, and with its position as index."""
    copy = deepcopy(element)
    for inner in objects(copy):
        assert isinstance(inner, dict)
        for name, own in inner.items():
            if isinstance(own, str) and OWN_ID.search(name):
                inner[name] = f"{own}-2"
            elif name == "index" and type(own) is int:
                inner[name] = position
    return copy
