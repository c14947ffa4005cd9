"""The setting `prompt_cache` → the fields and markers that make an endpoint cache the beginning of a prompt.

    OpenAI, Azure, quirk cache_key    prompt_cache_key, and prompt_cache_retention if the model has it
    quirk cache_markers               a marker at the end of the turns that later messages cannot change (closed turns),
                                      and one on the last tool
    quirk top_level_cache             the request's field cache_control
    quirk gateway_cache               the field with which Vercel's gateway places markers itself
    quirk automatic_cache             nothing, because every prompt is cached
    none of these                     a loss

https://developers.openai.com/api/docs/guides/prompt-caching
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from sabir import TextPart
from sabir.authoring import Insertion, RequestScope, encode_json, list_or_empty, object_or_empty, without_fields

from sabir_openai.settings import is_openai

KEY = re.compile(r"sabir-[0-9a-f]{32}")
"""Matches the values of `prompt_cache_key` that sabir creates."""
LONGER = re.compile(r"gpt-(4\.1|5(\.[1245])?)(-pro|-codex|-codex-max|-codex-mini|-chat-latest)?(-\d{4}-\d\d-\d\d)?")
"""Models that keep a cached prompt for 24 hours. Later models accept no lifetime but 30 minutes, their default.
https://developers.openai.com/api/docs/guides/prompt-caching#prompt-cache-retention
"""
RETENTION = "24h"
"""The value of `prompt_cache_retention` for a lifetime of an hour."""
_LONGEST_TEXT = 4096
"""How many characters of each text at the beginning of a conversation count for its key."""
_PATH = "settings.prompt_cache"
_CacheFields: TypeAlias = Callable[[RequestScope, Any, list[dict[str, Any]]], dict[str, Any]]


def encode_prompt_cache(scope: RequestScope, vendor: Mapping[str, Any], tools: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the request fields for the setting `prompt_cache`, without those that the vendor settings contain.

    Adds markers to `scope.insertions` and to the last of the `tools`. Reports a loss if the endpoint has no cache, or
    accepts no such lifetime.
    """
    lifetime = scope.settings.take("prompt_cache")
    if lifetime is None:
        return {}
    encode = next((encode for quirk, encode in _ENCODERS.items() if quirk in scope.quirks), None)
    if encode is None and is_openai(scope):
        encode = _key_fields
    if encode is None:
        scope.losses.add("dropped", f"{scope.target} is not known to cache prompts", path=_PATH)
        return {}
    if lifetime is not True and scope.model_info.status_of(f"prompt_cache.{lifetime}") == "refused":
        reason = f"{scope.target} accepts no cache of {lifetime}; the prompt is cached for the usual time"
        scope.losses.add("downgraded", reason, path=_PATH)
        lifetime = True
    elif scope.setting("prompt_cache") is None:
        return {}
    fields = encode(scope, lifetime, tools)
    for name in fields.keys() & vendor.keys():
        if name != "prompt_cache_key" and vendor[name] != fields[name]:
            scope.losses.add("dropped", f"the vendor setting {name} replaces this setting", path=_PATH)
    return {name: value for name, value in fields.items() if name not in vendor}


def _marker(lifetime: Any) -> dict[str, Any]:
    return {"cache_control": {"type": "ephemeral"} | ({} if lifetime is True else {"ttl": lifetime})}


def _key_fields(scope: RequestScope, lifetime: Any, tools: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a key that is the same for all requests of a conversation, and the retention for a lifetime of an hour."""
    fields = {"prompt_cache_key": conversation_key(scope)}
    if lifetime != "1h":
        return fields
    target = scope.target
    is_listed = "vendor.prompt_cache_retention" in (scope.model_info.accepts or ())
    if is_listed or (target.provider == "openai" and LONGER.fullmatch(target.model)):
        reason = f"the API has no cache of an hour; prompt_cache_retention {RETENTION!r} was sent"
        scope.losses.add("rewritten", reason, path=_PATH)
        return fields | {"prompt_cache_retention": RETENTION}
    reason = f"{target} accepts no cache of an hour; the prompt is cached for the usual time"
    scope.losses.add("downgraded", reason, path=_PATH)
    return fields


def conversation_key(scope: RequestScope) -> str:
    """Return a key of the conversation: a hash of its texts up to the first message that is not a system message.

    Requests with the same key are sent to the same machine, whose cache has their common beginning.
    """
    digest = hashlib.sha256()
    for message in scope.messages:
        texts = [part.text[:_LONGEST_TEXT] for part in message.parts if isinstance(part, TextPart)]
        digest.update(encode_json([message.policy, *texts]).encode())
        if message.policy != "system":
            break
    return f"sabir-{digest.hexdigest()[:32]}"


def read_top_level(marker: Mapping[str, Any]) -> Any:
    """Return the value of `prompt_cache` for a cache marker; None if the setting cannot express the marker."""
    if marker.get("type") != "ephemeral" or marker.keys() - {"type", "ttl"}:
        return None
    return marker.get("ttl", True)


def split_markers(request: Mapping[str, Any]) -> tuple[Mapping[str, Any], Any]:
    """Return a stored chat request without its cache markers, and the value of `prompt_cache` that places these
    markers. If the setting would place other markers, return the request unchanged and None.
    """
    messages, tools = ([*map(object_or_empty, list_or_empty(request.get(name)))] for name in ("messages", "tools"))
    last = next((at for at in reversed(range(len(messages))) if messages[at].get("role") != "tool"), 0)
    parts = [object_or_empty(part) for part in list_or_empty(messages[last - 1].get("content"))] if last else []
    marked = [part for part in (*parts[-1:], *tools[-1:]) if "cache_control" in part]
    count = encode_json(request).count('"cache_control":')
    lifetimes = {read_top_level(object_or_empty(part["cache_control"])) for part in marked}
    if not parts or not marked or len(marked) != count or len(marked) != 1 + bool(tools) or len(lifetimes) != 1:
        return request, None
    message = {**messages[last - 1], "content": [*parts[:-1], without_fields(parts[-1], "cache_control")]}
    bare = {**request, "messages": [*messages[: last - 1], message, *messages[last:]]}
    if tools:
        bare["tools"] = [*tools[:-1], without_fields(tools[-1], "cache_control")]
    return bare, lifetimes.pop()


def _marker_fields(scope: RequestScope, lifetime: Any, tools: list[dict[str, Any]]) -> dict[str, Any]:
    """Add a marker to the last tool, and one to the end of the closed turns. Return no fields."""
    if tools:
        tools[-1] = {**tools[-1], **_marker(lifetime)}
    # With this quirk, a message ends with the array of its content, so the marker becomes a field of the last part.
    text = b"," + encode_json(_marker(lifetime))[1:-1].encode()
    scope.insertions.append(Insertion("closed", b"}]}", text, _PATH))
    return {}


def _top_level_fields(scope: RequestScope, lifetime: Any, tools: list[dict[str, Any]]) -> dict[str, Any]:
    return _marker(lifetime)


def _gateway_fields(scope: RequestScope, lifetime: Any, tools: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the field of Vercel's gateway for this API. A lifetime that the API does not accept is a loss."""
    if scope.target.dialect == "openai.responses":
        return {"caching": "auto"} | ({} if lifetime is True else {"cache_ttl": lifetime})
    if lifetime is not True:
        reason = f"{scope.target.provider} accepts no lifetime in this API; the prompt is cached for the usual time"
        scope.losses.add("downgraded", reason, path=_PATH)
    return {"providerOptions": {"gateway": {"caching": "auto"}}}


def _no_fields(scope: RequestScope, lifetime: Any, tools: list[dict[str, Any]]) -> dict[str, Any]:
    """Return no fields, because the endpoint caches every prompt. A lifetime is a loss."""
    if lifetime is not True:
        reason = f"{scope.target.provider} caches prompts by itself and accepts no lifetime"
        scope.losses.add("downgraded", reason, path=_PATH)
    return {}


_ENCODERS: Mapping[str, _CacheFields] = {
    "cache_key": _key_fields, "cache_markers": _marker_fields, "top_level_cache": _top_level_fields,
    "gateway_cache": _gateway_fields, "automatic_cache": _no_fields,
}  # fmt: skip
"""Quirk → the function that returns the request fields for endpoints with this quirk."""
