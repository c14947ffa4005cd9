"""Reading a request that nobody here knows: what of a history stands in it, and by which grade.

a mark in the body, no loss ─▶ FULL     a mark and a loss ─▶ DOWNGRADED     a loss alone ─▶ REFUSED     neither: Broken
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sabir import Loss, Message, Rendering
from sabir.authoring import JSONValue, refuse
from sabir.errors import RenderingRefused
from sabir.vocabulary.settings import NEVER_READ

from sabir_testing.kit.broken import Broken
from sabir_testing.kit.capabilities import DOWNGRADED, FULL, REFUSED, Grade
from sabir_testing.kit.suite import Subject

WORDS = "kit-words"


def every_string(value: JSONValue) -> Iterator[str]:
    """Every string of a JSON value, its keys among them, and what stands in strings that are JSON themselves."""
    if isinstance(value, str):
        yield value
        yield from _inner(value)
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield key
            yield from every_string(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from every_string(each)


def _inner(text: str) -> Iterator[str]:
    """The strings of a JSON text: arguments and results often are such."""
    if text.startswith(("{", "[")):
        try:
            yield from every_string(json.loads(text))
        except ValueError:
            return


def body_text(rendering: Rendering) -> str:
    """The body as text, other scripts as they are."""
    return json.dumps(json.loads(rendering.body_bytes), ensure_ascii=False)


def without_words(item: JSONValue) -> JSONValue:
    """An item without WORDS: who says them is left, and how."""
    if isinstance(item, Mapping):
        return {key: without_words(each) for key, each in item.items()}
    if isinstance(item, list | tuple):
        return [without_words(each) for each in item][:1]
    return None if isinstance(item, str) and WORDS in item else item


def plain(value: JSONValue) -> Any:  # JSON of dicts and lists
    """A JSON value that `json` can write."""
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def is_forgotten(loss: Loss) -> bool:
    """Whether it says of a setting that the dialect never looked at it."""
    return loss.reason.endswith(NEVER_READ)


def grade_by_losses(
    subject: Subject,
    capability: str,
    rendering: Rendering,
    history: Sequence[Message],
    *,
    is_carried: bool,
    of: Message | None = None,
    path: str = "",
) -> None:
    """Tell full, downgraded and refused apart by what is in the body and in the losses of a message or a path."""
    lost = [
        loss
        for loss in rendering.losses
        if (loss.message_id == of.id if of is not None else loss.path.startswith(path))
    ]
    if any(map(is_forgotten, rendering.losses)):
        return  # a case of its own says so
    if not is_carried and not lost:
        raise Broken(f"{capability} is neither in the body nor in the losses", history=history, rendering=rendering)
    is_another = any(loss.kind != "rewritten" for loss in lost)  # rewritten: the same meaning, in other characters
    seen: Grade = REFUSED if not is_carried else DOWNGRADED if is_another else FULL
    if seen is REFUSED:
        _check_refusal(capability, rendering, history)
    what = "; ".join(loss.reason for loss in lost)
    subject.grade(capability, seen, what=what, history=history, rendering=rendering)


def _check_refusal(capability: str, rendering: Rendering, history: Sequence[Message]) -> None:
    """What is not carried can be refused before anything is sent: by `strict=True`."""
    try:
        refuse(rendering.losses, True, str(rendering.target))
    except RenderingRefused:
        return
    kinds = ", ".join(sorted({loss.kind for loss in rendering.losses}))
    raise Broken(
        f"{capability} is left out, but strict=True does not refuse it: its loss is {kinds}; make it dropped",
        history=history,
        rendering=rendering,
    )
