"""Replies that are cut off before the arguments of a call, created from recorded replies of any API.

a recorded call ── its finish reason replaced by the finish reason of a recorded length limit
                └─ its arguments replaced by empty ones ──▶ like a call that a vendor cut before its arguments
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from sabir import OptionCallPayload, PureDialect, Reply
from sabir.authoring import JSONValue
from sabir.errors import SabirError

from sabir_testing.kit.decoded_recordings import own_bodies
from sabir_testing.kit.suite import AdapterUnderTest


class CutReply(NamedTuple):
    """A response that ends at the length limit and whose calls have no arguments, and its decoded reply."""

    body: JSONValue
    reply: Reply


def cut_replies(subject: AdapterUnderTest) -> Iterator[CutReply]:
    """Yield the recorded complete responses with calls, each in several variants, changed as if the length limit had
    cut the calls' arguments.

    Nothing is yielded unless the suite has recorded a response at the limit. A response whose finish reason is not a
    text in its body cannot be changed, and is left out.
    """
    dialect = PureDialect(subject.dialect, subject.target, subject.provider)
    replies = [(body, reply) for body in own_bodies(subject) if (reply := _decode_if_valid(dialect, body))]
    limits = {reply.raw_finish_reason for _, reply in replies if reply.finish_reason == "length"}
    for limit in sorted(filter(None, limits)):
        for body, reply in replies:
            for emptied in _without_arguments(body, reply):
                cut = _replace_values(emptied, [reply.raw_finish_reason], limit)
                decoded = _decode_if_valid(dialect, cut)
                if decoded and decoded.finish_reason == "length" and decoded.option_calls:
                    yield CutReply(cut, decoded)


def _decode_if_valid(dialect: PureDialect, body: JSONValue) -> Reply | None:
    with suppress(SabirError):
        return dialect.decode(json.dumps(body))
    return None


def _without_arguments(body: JSONValue, reply: Reply) -> Iterator[JSONValue]:
    """Yield the body with empty arguments in its calls: "" and "{}" instead of text, {} instead of an object."""
    calls: list[OptionCallPayload] = [message.call for message in reply.option_calls]
    objects = [json.loads(call.arguments_json) for call in calls if call.raw_arguments is None]
    texts = [call.raw_arguments for call in calls if call.raw_arguments]
    for empty in ("", "{}") if calls else ():
        yield _replace_values(_replace_values(body, texts, empty), objects, {})


def _replace_values(value: Any, old: Sequence[Any], new: Any) -> Any:
    """Return the JSON value with `new` instead of each value in `old`."""
    if isinstance(value, str | dict) and value in old:
        return new
    if isinstance(value, dict):
        return {name: _replace_values(member, old, new) for name, member in value.items()}
    return [_replace_values(member, old, new) for member in value] if isinstance(value, list) else value
