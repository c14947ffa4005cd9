"""What a prompt cache can reuse of an earlier request: the common beginning of two prompts, in the vendor's own order.

    model ─▶ fields before the messages, such as tools and system text ─▶ messages        the first difference ends it

A prompt is the part of a request's body that the model reads. Other fields, such as a temperature, and cache markers
do not count. Nothing here knows whether a vendor caches, for how long, or from which length on.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic_core import from_json, to_json

from sabir.base.models import Frozen
from sabir.vocabulary.fields import Text
from sabir.vocabulary.reply import Usage
from sabir.vocabulary.settings import Target

BYTES_PER_TOKEN = 4
"""The estimate of `count_tokens` for APIs that cannot count."""


class SharedPrefix(Frozen):
    """The beginning that two requests have in common, which a cache can reuse. Created by `Rendering.shared_prefix`.

    `byte_count` is its length in bytes of JSON, and `tokens` the greatest number of tokens that the provider can read
    from its cache, estimated. `changed` is the path of the first difference in the body, such as "tools[0]" or
    "messages[4]", or "model", "endpoint", "dialect" or "provider". It is "" if the later request contains the complete
    prompt of the earlier one.
    """

    byte_count: int
    tokens: int
    changed: Text = ""


class PromptRequest(NamedTuple):
    """The facts about a request to compare: target, body, the prompt's fields in order, and the cache markers."""

    target: Target
    body: bytes
    prompt_fields: Sequence[str]
    cache_markers: Sequence[str]


def compare_prompts(earlier: PromptRequest, later: PromptRequest, usage: Usage | None) -> SharedPrefix:
    """Return the common beginning of two requests. `usage` is the usage of the reply to the earlier request."""
    for name in ("provider", "dialect", "endpoint", "model"):
        if getattr(earlier.target, name) != getattr(later.target, name):
            return SharedPrefix(byte_count=0, tokens=0, changed=name)
    before, fields, changed = _without_markers(earlier), later.prompt_fields, ""
    after = later.body if later.body.startswith(before[:-2]) else _without_markers(later)
    total = length = _length_if_grown(before, after, fields)
    if not length:
        values = from_json(before), from_json(after)
        total, (length, changed) = _prompt_length(values[0], fields), _compare(*values, fields)
    if usage is None or usage.input_tokens is None:
        tokens = -(-length // BYTES_PER_TOKEN)
    elif changed:
        tokens = -(-usage.input_tokens * length // max(total, 1))
    else:  # some vendors also cache their own answer
        tokens = usage.input_tokens + (usage.output_tokens or 0)
    return SharedPrefix(byte_count=length, tokens=tokens, changed=changed)


def _without_markers(request: PromptRequest) -> bytes:
    """Return the body without cache markers, whose values are flat objects. Quotes in a text would be escaped."""
    body = request.body
    names = [name for name in request.cache_markers if b'"%s"' % name.encode() in body]
    if not names:
        return body
    marker = rb'"(?:%s)":\s*\{[^{}]*\}' % b"|".join(name.encode() for name in names)
    return re.sub(rb",\s*" + marker, b"", re.sub(rb"(?<=\{)\s*" + marker + rb"\s*,?\s*", b"", body))


def _length_if_grown(before: bytes, after: bytes, fields: Sequence[str]) -> int:
    """Return the length of the prompt in `before` if both bodies end with the list of messages and `after` only adds
    messages. Return 0 otherwise, and if the bytes do not show that the messages are the last field.

    Most requests of a conversation grow like this, and comparing bytes is much faster than parsing two bodies.
    """
    start = b'"%s":[' % fields[-1].encode()
    position = before.find(start)
    if position < 0 or not (before.endswith(b"]}") and after.endswith(b"]}") and after.startswith(before[:-2])):
        return 0
    try:
        head = from_json(before[:position] + start + b"]}")
    except ValueError:  # another field has a field of this name
        return 0
    absent = [b'"%s":' % name.encode() for name in fields[:-1] if name not in head]
    if before.find(b'],"', position) >= 0 and any(before.find(name, position) >= 0 for name in absent):
        return 0  # the field may follow the messages
    return _prompt_length(head, fields[:-1]) + len(before) - position - len(start)


def _prompt_length(body: Mapping[str, Any], fields: Sequence[str]) -> int:
    return sum(len(to_json(body[name])) for name in fields if name in body)


def _compare(before: Mapping[str, Any], after: Mapping[str, Any], fields: Sequence[str]) -> tuple[int, str]:
    """Return the length of the common beginning, and the path of the first difference: "" if `after` only adds."""
    for number, name in enumerate(fields):
        one, other = before.get(name), after.get(name)
        if one == other or (name == fields[-1] and _continues(one, other)):
            continue
        length = _prompt_length(before, fields[:number])
        if not (isinstance(one, list) and isinstance(other, list)):
            return length + _common_length(one, other), name
        pairs = zip(one, other, strict=False)
        index = next((index for index, (old, new) in enumerate(pairs) if old != new), min(len(one), len(other)))
        old, new = (each[index] if index < len(each) else None for each in (one, other))
        return length + len(to_json(one[:index])) + _common_length(old, new), f"{name}[{index}]"
    return _prompt_length(before, fields), ""


def _continues(items: Any, longer: Any) -> bool:
    return isinstance(items, list) and isinstance(longer, list) and longer[: len(items)] == items


def _common_length(one: Any, other: Any) -> int:
    """Return how many bytes the JSON texts of two values have in common at their beginning."""
    if one is None or other is None:
        return 0
    texts = to_json(one), to_json(other)
    low, high = 0, min(map(len, texts))
    while low < high:
        middle = (low + high + 1) // 2
        if texts[0][low:middle] == texts[1][low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
