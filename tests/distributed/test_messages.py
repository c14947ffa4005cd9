"""The messages of a request are kept when they are sent again, and are always the right ones (RN-29)."""

import gc
import json
from collections.abc import Callable
from typing import Any

import pytest
import sabir
from hypothesis import given
from hypothesis import strategies as st
from sabir import Message
from sabir.vocabulary.history import loads
from sabir_runtime.distributed import message_cache
from sabir_runtime.distributed.envelopes import Request, decode_request, encode
from sabir_runtime.distributed.message_cache import LARGEST_LINE, KnownMessages, lines_of

from tests.distributed.test_envelopes import NEWER

HISTORY = (sabir.system("Be brief."), sabir.user("Is it\n1,\n2 or 3?", "\n]}"), sabir.assistant("It is."))
LARGE = sabir.user("x" * LARGEST_LINE)


def body_of(*observations: Message) -> bytes:
    return encode(Request(id="r1", context="Desk", policy="llm", observations=observations, seconds_left=5.0))


def test_a_message_is_written_once_more_and_then_kept_while_it_lives() -> None:
    message = sabir.user("once")
    key, first = id(message), lines_of([message])
    assert key not in message_cache._lines
    written = lines_of([message])

    assert lines_of([message]) is written
    assert written == first
    del message
    gc.collect()
    assert key not in message_cache._lines


def test_equal_messages_are_not_taken_for_one_another() -> None:
    """By identity: one that has a newer writer's field beside its equal would lose it."""
    one = sabir.user("hm")
    other = one.model_copy(update={"policy": "else"})
    for message in (one, other, one, other):
        lines_of([message])

    assert json.loads(lines_of([other]))["policy"] == "else"
    assert json.loads(lines_of([one]))["policy"] == "user"


def test_a_large_message_is_not_held_twice() -> None:
    """Media are many bytes: what is written of them is sent and forgotten, at both ends."""
    known = KnownMessages()
    body = [body_of(LARGE) for _ in range(3)][-1]

    assert id(LARGE) not in message_cache._lines
    *_, second, third = (decode_request(body, known).observations[0] for _ in range(3))
    assert second == third == LARGE
    assert second is not third


def test_each_message_is_a_line_of_json() -> None:
    lines = body_of(*HISTORY).split(b"\n")

    assert [json.loads(line.removesuffix(b","))["id"] for line in lines[1:-1]] == [each.id for each in HISTORY]


def test_a_worker_has_the_same_object_for_the_same_message() -> None:
    """From the second time on: what core keeps with a message serves the next turn, which has one more."""
    known, history = KnownMessages(), list(HISTORY)
    turns = []
    for text in ("And now?", "And then?", "And so?"):
        history.append(sabir.user(text))
        turns.append(decode_request(body_of(*history), known).observations)

    assert [list(turn) for turn in turns] == [history[:4], history[:5], history]
    assert all(one is other for one, other in zip(turns[1][:4], turns[2][:4], strict=True))


def test_what_is_sent_once_is_not_kept() -> None:
    known = KnownMessages()
    for text in ("one", "two"):
        decode_request(body_of(sabir.user(text), sabir.user("and")), known)

    assert len(known._messages) == 0
    assert len(known._seen_once) == 4


def test_what_was_heard_is_forgotten_beyond_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_cache, "MOST_SEEN", 2)
    known, kept = KnownMessages(), [lines_of([sabir.user("kept")])]
    for _ in range(2):
        before = known.read(kept)
    for number in range(5):
        assert known.read([lines_of([sabir.user(str(number))])]) is None

    assert len(known._seen_once) <= 2
    assert before is not None
    assert known.read(kept) == before


def test_the_oldest_messages_are_forgotten_beyond_a_size() -> None:
    """A conversation that goes on has its own kept anew; a line that stands twice in one request is counted once."""
    one, two, three = (lines_of([sabir.user(text)]) for text in ("one", "two", "333"))
    known = KnownMessages(size=len(one) + len(two))
    for line in (one, two, one, two, three, three):
        known.read([line])
    assert list(known._messages) == [two, three]
    known.read([one, one])

    assert list(known._messages) == [three, one]
    assert known._cached_size == len(three) + len(one)


@pytest.mark.parametrize(
    "written",
    [
        lambda document: json.dumps(document),
        lambda document: json.dumps(document, indent=1),
        lambda document: json.dumps(document, indent=0).replace('],\n"', '],"'),
        lambda document: json.dumps({"observations": document.pop("observations"), **document}),
    ],
    ids=["one line", "indented", "broken anywhere", "first"],
)
def test_a_request_may_be_written_otherwise(written: Callable[[dict[str, Any]], str]) -> None:
    document = json.loads(body_of(*HISTORY))

    assert decode_request(written(document).encode(), KnownMessages()).observations == HISTORY


def test_what_is_unknown_in_a_message_is_kept_beside_messages_that_are_known() -> None:
    known, history = KnownMessages(), (*HISTORY, *loads(NEWER))
    for _ in range(2):
        decode_request(body_of(*HISTORY), known)

    for _ in range(3):
        assert decode_request(body_of(*history), known).observations == history


def test_pieces_that_are_messages_only_together_are_not_remembered() -> None:
    """As many pieces as messages, and yet other ones: whoever sends the second line next must not get the third."""
    known = KnownMessages()
    one, two, three, four = (lines_of([sabir.user(text)]) for text in ("one", "two", "three", "four"))
    broken = b",\n".join([one + b"," + three, two, *four.split(b",", 1)])
    head = body_of(*HISTORY).partition(b"\n")[0]

    for _ in range(3):
        observed = decode_request(head + b"\n" + broken + b"\n]}", known).observations
        assert [each.text for each in observed] == ["one", "three", "two", "four"]
    read = known.read([one, two, three, four])
    assert read is not None
    assert [each.text for each in read] == ["one", "two", "three", "four"]


@given(st.data())
def test_wherever_a_request_is_broken_into_lines_it_is_the_same(data: Any) -> None:
    """Line breaks say nothing in JSON, and so nothing here."""
    known, history = KnownMessages(), tuple(sabir.user(text) for text in ("one", "two", "three"))
    lines = [lines_of([message]) for message in history]
    text = b",".join(lines)
    commas = [place for place in range(len(text)) if text[place : place + 1] == b","]
    for place in sorted(data.draw(st.sets(st.sampled_from(commas), max_size=4)), reverse=True):
        text = text[:place] + b",\n" + text[place + 1 :]
    head = body_of(*history).partition(b"\n")[0]

    for _ in range(3):
        assert decode_request(head + b"\n" + text + b"\n]}", known).observations == history
    known.read(lines)
    assert known.read(lines) == history
