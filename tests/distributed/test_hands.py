"""Who begins, who stands in line, and who is sent away: the longest on its way first."""

import sabir
from sabir_distributed.envelopes import Request
from sabir_distributed.hands import Hands
from sabir_distributed.work import Work


def work(id: str, since: float = 0.0, size: int = 0) -> Work:
    request = Request(id=id, context="Desk", policy="llm", observations=(sabir.user("x"),), seconds_left=5)
    return Work(request, "_INBOX.ada.reply.1", ends=5.0, since=since, size=size)


def ids(works: list[Work]) -> list[str]:
    return [each.request.id for each in works]


def test_so_many_begin_and_the_rest_stands_in_line_by_age() -> None:
    """Not by when they came: one that was sent away takes up its turn again."""
    hands = Hands(places=1, room=3, held=100)
    first = work("first")
    hands.begin(first)
    for each in (work("younger", 3.0), work("older", 1.0), work("between", 2.0)):
        assert hands.line_up(each) is None

    assert not hands.has_place
    assert ids(hands.line) == ["older", "between", "younger"]
    following = hands.put_away(first)
    assert following is not None
    assert ids([following]) == ids(list(hands.begun.values())) == ["older"]
    assert ids(hands.all()) == ["older", "between", "younger"]
    assert not hands.has_place


def test_a_full_line_sends_its_youngest_away() -> None:
    """So nobody who is older waits for it; it may be the newcomer itself."""
    hands = Hands(places=1, room=1, held=100)
    old, older, young = work("old", 2.0), work("older", 1.0), work("young", 3.0)

    assert hands.line_up(old) is None
    assert hands.line_up(young) is young
    assert hands.line_up(older) is old
    assert ids(hands.line) == ["older"]


def test_a_line_without_room_sends_everybody_away() -> None:
    """As a setting of 0 asks for."""
    one = work("one")

    assert Hands(places=1, room=0, held=100).line_up(one) is one


def test_whoever_stood_in_line_for_a_whole_beat_is_sent_away() -> None:
    """Another worker may have a place; those who came since the last beat stay."""
    hands = Hands(places=1, room=3, held=100)
    hands.line_up(work("early"))
    assert hands.dismiss_tired() == []
    hands.line_up(work("late"))

    assert ids(hands.dismiss_tired()) == ["early"]
    assert ids(hands.line) == ["late"]
    assert ids(hands.dismiss_line()) == ["late"]
    assert hands.all() == []


def test_what_is_put_away_from_the_line_gives_nobody_a_place() -> None:
    """It had none."""
    hands = Hands(places=1, room=3, held=100)
    begun, waits, next_one = work("begun"), work("waits", 1.0), work("next", 2.0)
    hands.begin(begun)
    hands.line_up(waits)
    hands.line_up(next_one)

    assert hands.find("waits") is waits
    assert hands.put_away(waits) is None
    assert hands.find("waits") is None
    assert hands.put_away(begun) is next_one
    assert hands.put_away(next_one) is None
    assert hands.has_place


def test_so_many_bytes_are_held_at_once() -> None:
    """Requests that were sent small unpack to many bytes; one alone may have more than all the others together."""
    hands = Hands(places=1, room=3, held=100)
    assert hands.can_hold(101)
    hands.begin(work("begun", size=50))
    hands.line_up(work("in line", size=40))

    assert hands.can_hold(10)
    assert not hands.can_hold(11)
