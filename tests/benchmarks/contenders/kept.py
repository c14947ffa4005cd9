"""The limit of a loop: the hand-written loops again, keeping the bytes of what was rendered before."""

from collections.abc import Callable
from typing import Any

import orjson

from tests.benchmarks.contenders.hand import wire_of
from tests.benchmarks.contenders.limit import Appending, appending
from tests.benchmarks.work import Given

REQUIREMENTS = ("pydantic>=2.14", "orjson>=3", "httpx2>=2")


def keeping(given: Given, history: list[Any]) -> Callable[[], bytes]:
    """What renders a growing history: only what came since is encoded, and joined to the bytes kept."""
    wire = wire_of(given)
    skipped = int(wire.hoists)
    head = orjson.dumps(wire.head(history[0].text))[:-1] + b',"' + wire.field.encode() + b'":['
    kept = bytearray()
    done = skipped

    def render() -> bytes:
        nonlocal done
        fresh = orjson.dumps(wire.items(history[done:]))[1:-1]
        if kept:
            kept.extend(b",")
        kept.extend(fresh)
        done = len(history)
        return b"".join((head, kept, b"]}"))

    return render


def render_warm(given: Given) -> Appending:
    """Two messages encoded, the rest joined."""

    def make(history: list[Any]) -> Callable[[], bytes]:
        render = keeping(given, history)
        render()
        return render

    return Appending(given, make)


def loop(given: Given) -> Callable[[], object]:
    """Every turn renders what is new."""
    return appending(given, lambda history: keeping(given, history))


TASKS = {"render_warm": render_warm, "loop": loop}
