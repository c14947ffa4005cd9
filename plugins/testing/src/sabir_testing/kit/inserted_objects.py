"""Where a recorded answer has lists of typed objects and texts, so that objects can be inserted there.

{"parts": [{"type": "text", "text": "So."}]}      typed: every element has a "type"
{"parts": [{"text": "So."}]}                      untyped: recognized by a text of the reply within
{"index": 0, "step": {"type": "text"}}            a typed object within an event
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, NamedTuple

from sabir_testing.kit.changed_answers import DELETED, ChangeableAnswer, Place, renumbered
from sabir_testing.reading import Fragment, JSONPath, fragments_of, member_at, paths_in, replace_at, walk

UNKNOWN_TYPE = "kit_unknown"
STRANGE = "kit-strange-text"
"""A text in an object of an unknown type."""
SECOND = "kit-second-text"
"""The text of a copied list element."""


def unknown_object(*, typed: bool = True) -> dict[str, Any]:
    """Return an object that no API sends, with STRANGE in it."""
    return {"type": UNKNOWN_TYPE, "kit_note": STRANGE} if typed else {UNKNOWN_TYPE: {"kit_note": STRANGE}}


def is_typed(element: object) -> bool:
    """Return whether a JSON value is an object with a text as `type`."""
    return isinstance(element, Mapping) and isinstance(element.get("type"), str)


def typed_lists(document: Any) -> Iterator[JSONPath]:
    """Yield the paths of the lists whose elements are all typed objects. Empty lists are left out."""
    for path in paths_in(document):
        elements = member_at(document, path)
        if isinstance(elements, list) and elements and all(map(is_typed, elements)):
            yield path


def text_fragments(answer: ChangeableAnswer) -> list[list[Fragment]]:
    """Return the pieces of the reply's text and of its reasoning in the answer, one list for each that can be
    located.
    """
    texts = [text for text in (answer.reply.text, answer.reply.reasoning) if text.strip()]
    return [group for text in texts if (group := fragments_of(answer.documents, text))]


class TextElement(NamedTuple):
    """An element of a list that has a text of the reply as the value of one of its own fields."""

    elements: Place
    """The place of the list."""
    text: JSONPath
    """The path of the text in the element."""
    element: Any


def text_elements(answer: ChangeableAnswer) -> list[TextElement]:
    """Return the list elements with a piece of the reply's text or reasoning, the first of each list."""
    pieces = {each.text for group in text_fragments(answer) for each in group}
    placed = {(each.document, each.path) for group in text_fragments(answer) for each in group}
    if len(answer.documents) == 1:
        pieces |= {text for message in answer.reply.messages for part in message.parts for text in _texts_of(part)}
        placed |= {(at.document, at.path) for at, content in answer.leaves() if content in pieces and content}
    first: dict[Place, TextElement] = {}
    for number, path in sorted(placed, key=str):
        if len(path) > 1 and isinstance(path[-2], int) and path[-1] != "type":
            elements = Place(number, path[:-2])
            element = member_at(answer.documents[number], path[:-1])
            first.setdefault(elements, TextElement(elements, path[-1:], element))
    return list(first.values())


def _texts_of(part: Any) -> Iterator[str]:
    if text := getattr(part, "text", ""):
        yield text


def second_element(text_element: TextElement, position: int) -> Any:
    """Return a copy of a list element with SECOND as text, other ids, and its position as index."""
    return replace_at(renumbered(text_element.element, position), text_element.text, SECOND)


def nested_types(answer: ChangeableAnswer) -> list[str]:
    """Return the types of the objects within the events of a stream, without the types of events themselves."""
    paths = ((document, path) for document in answer.documents for path in paths_in(document) if path)
    nested = (member_at(document, path) for document, path in paths)
    return list(dict.fromkeys(each["type"] for each in nested if is_typed(each)))


def with_unknown_type(answer: ChangeableAnswer, type_name: str, group: list[Fragment]) -> list[Any]:
    """Return the events of a stream with UNKNOWN_TYPE instead of a type within them, and with STRANGE as the only piece
    of a text. The other pieces' events are left out, and repetitions of the text are changed too.
    """
    documents: list[Any] = list(deepcopy(answer.documents))
    text = "".join(each.text for each in group)
    for number, document in enumerate(documents):
        for leaf in walk(document):
            is_nested_type = leaf.path[-1:] == ("type",) and len(leaf.path) > 1 and not leaf.is_name
            if is_nested_type and leaf.value == type_name:
                documents[number] = replace_at(documents[number], leaf.path, UNKNOWN_TYPE)
            elif leaf.value == text and not leaf.is_name:
                documents[number] = replace_at(documents[number], leaf.path, STRANGE)
    first, *others = group
    documents[first.document] = replace_at(documents[first.document], first.path, STRANGE)
    for fragment in others:
        documents[fragment.document] = DELETED
    return documents


def unknown_piece(answer: ChangeableAnswer, fragment: Fragment) -> Any:
    """Return a copy of the event with a piece of text in which an object of an unknown type replaces the piece; None if
    the piece is not in an object within the event.
    """
    document, path = answer.documents[fragment.document], fragment.path
    if len(path) > 2 and isinstance(path[-2], int):
        typed = is_typed(member_at(document, path[:-1]))
        return replace_at(document, path[:-1], unknown_object(typed=typed))
    if len(path) < 2 or not is_typed(member_at(document, path[:-1])):
        return None
    return replace_at(document, path[:-1], {**member_at(document, path[:-1]), "type": UNKNOWN_TYPE, path[-1]: STRANGE})
