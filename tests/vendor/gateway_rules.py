"""What a request has, and what a row forbids in it: an oracle that reads request bodies and the rows' own files.

    feature ──FEATURES──▶ is it in this body?        deviation ──DEVIATIONS──▶ does this body break it?
    row's file ──forbidden(place)──▶ features that no request to a model may have

Nothing here is the dialects' code. The names of features are those of the rows.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from importlib.resources import files
from itertools import pairwise
from typing import Any, NamedTuple

Body = Mapping[str, Any]
REASONING = ("reasoning_content", "reasoning", "reasoning_details")
"""Fields of a message that hold its reasoning."""


def messages(body: Body) -> list[Any]:
    """Return the messages of a chat request, or the items of a Responses request."""
    given = body.get("messages") or body.get("input") or []
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def _contents(body: Body, roles: tuple[str, ...]) -> Iterator[Any]:
    """Yield the content parts of messages with those roles; the output of a Responses result has the role `tool`."""
    for item in messages(body):
        role = "tool" if item.get("type") == "function_call_output" else item.get("role")
        content = item.get("output") if item.get("type") == "function_call_output" else item.get("content")
        if role in roles and isinstance(content, list):
            yield from (part for part in content if isinstance(part, dict))


def _text(value: Any) -> str:
    """Return a URL or data that is a string, or in an object's field of the usual names."""
    if isinstance(value, dict):
        value = next((value[name] for name in ("url", "data", "file_data") if value.get(name)), "")
    return value if isinstance(value, str) else ""


_PARTS = {
    "image": ("image_url", "input_image"), "audio": ("input_audio", "audio_url"), "video": ("video_url",),
    "document": ("file", "file_url", "document_url", "input_file"),
}  # fmt: skip
"""Modality → the types of parts that hold it."""


def has_medium(modality: str, form: str, roles: tuple[str, ...], body: Body) -> bool:
    """Return whether a message has a medium: as "data", by "url", or as a "file" of the vendor's."""
    return any(form in ("", _form_of(part)) for part in _contents(body, roles) if part.get("type") in _PARTS[modality])


def _form_of(part: dict[str, Any]) -> str:
    inner = part.get(part["type"])
    if part.get("file_id") or (isinstance(inner, dict) and inner.get("file_id")):
        return "file"
    values = [inner, *(part.get(name) for name in ("image_url", "file_data", "file_url"))]
    text = next(filter(None, map(_text, values)), "")
    return "url" if re.match(r"https?://", text) else "data"


def choice_of(body: Body) -> str:
    choice = body.get("tool_choice")
    if isinstance(choice, str):
        return "required" if choice == "any" else choice
    return "named" if choice else ""


def format_of(body: Body) -> str:
    """Return the type of a request's format of replies; "" without one."""
    form = body.get("response_format") or (body.get("text") or {}).get("format") or {}
    return {"json_schema": "schema", "json_object": "object"}.get(str(form.get("type")), "")


def effort_of(body: Body) -> str:
    """Return the effort of reasoning that a request asks for; "" without one."""
    effort = body.get("reasoning_effort") or (body.get("reasoning") or {}).get("effort") or ""
    return "none" if (body.get("thinking") or {}).get("type") == "disabled" else effort


def _functions(body: Body) -> list[Any]:
    tools = body.get("tools") or ()
    return [tool.get("function") or tool for tool in tools if tool.get("type", "function") == "function"]


def _has_reasoning(body: Body) -> bool:
    return any(
        item.get("type") == "reasoning"
        or (item.get("role") == "assistant" and any(item.get(name) for name in REASONING))
        for item in messages(body)
    ) or any(part.get("type") == "thinking" for part in _contents(body, ("assistant",)))


def _field(name: str, body: Body) -> bool:
    return body.get(name) not in (None, [], {})


def _has_later_system(body: Body) -> bool:
    roles = [str(item.get("role")) for item in messages(body)]
    first = next((at for at, role in enumerate(roles) if role not in ("system", "developer")), len(roles))
    return any(role in ("system", "developer") for role in roles[first:])


_NATIVE: Mapping[str, frozenset[str]] = {
    "code_execution": frozenset({"code_interpreter"}),
    "mcp_server": frozenset({"mcp"}),
    "web_search": frozenset({"browser_search", "openrouter:web_search", "web_search"}),
}
"""Native option → the names that endpoints have for the tool."""


def _tool_types(body: Body) -> set[str]:
    compound = ((body.get("compound_custom") or {}).get("tools") or {}).get("enabled_tools") or ()
    return {*compound, *(str(tool.get("type")) for tool in body.get("tools") or ())}


def _has_native(names: frozenset[str], body: Body) -> bool:
    return not names.isdisjoint(_tool_types(body))


def _has_other_tools(own: frozenset[str], body: Body) -> bool:
    """Return whether a request has a vendor's own tool under a name that this endpoint does not know."""
    return not (frozenset[str]().union(*_NATIVE.values()) - own).isdisjoint(_tool_types(body))


def _has_marker(body: Body) -> bool:
    return '"cache_control"' in json.dumps(body)


def cache_of(body: Body) -> str:
    """Return how long a request wants its prompt cached: "1h", "5m" or "default"; "" if it does not ask for it."""
    text = json.dumps(body)
    if body.get("prompt_cache_retention") == "24h" or '"ttl": "1h"' in text:
        return "1h"
    if '"ttl": "5m"' in text:
        return "5m"
    names = ("prompt_cache_key", "prompt_cache_retention", "caching")
    return "default" if '"cache_control"' in text or any(_field(name, body) for name in names) else ""


FEATURES: Mapping[str, Callable[[Body], bool]] = {
    "prompt_cache": lambda body: cache_of(body) != "",
    "max_output_tokens": lambda body: any(
        _field(name, body) for name in ("max_tokens", "max_completion_tokens", "max_output_tokens")
    ),
    "temperature": partial(_field, "temperature"),
    "top_p": partial(_field, "top_p"),
    "stop": partial(_field, "stop"),
    "seed": lambda body: _field("seed", body) or _field("random_seed", body),
    "reasoning_effort": lambda body: effort_of(body) != "",
    "parallel_options": lambda body: body.get("parallel_tool_calls") is not None,
    "options": lambda body: bool(_functions(body)),
    "strict": lambda body: any(each.get("strict") for each in _functions(body)),
    "option_choice": lambda body: choice_of(body) != "",
    "response_format": lambda body: format_of(body) != "",
    "reasoning": _has_reasoning,
    "stream_options": partial(_field, "stream_options"),
    "later_system": _has_later_system,
    "results.image": partial(has_medium, "image", "", ("tool",)),
    **{f"native.{kind}": partial(_has_native, names) for kind, names in _NATIVE.items()},
    **{
        f"{modality}.{form}": partial(has_medium, modality, form, ("user", "system"))
        for modality in _PARTS
        for form in ("url", "data", "file")
    },
}


def has_feature(name: str, body: Body) -> bool:
    """Return whether a request has a feature, by the name that rows give it."""
    setting, _, variant = name.partition(".")
    if name in FEATURES:
        return FEATURES[name](body)
    if setting == "vendor":
        value = body.get(variant)
        return value not in (None, [], {}, False) and not (variant == "n" and value == 1)
    values = {"option_choice": choice_of, "response_format": format_of, "reasoning_effort": effort_of}
    values["prompt_cache"] = cache_of
    return values[setting](body) == variant


class Deviation(NamedTuple):
    """A structural deviation: how a request shows that it is obeyed, and how that it is broken."""

    shows: Callable[[Body], bool]
    breaks: Callable[[Body], bool]


def _ids(body: Body) -> list[str]:
    calls = [call["id"] for item in messages(body) for call in item.get("tool_calls") or ()]
    return calls + [item["tool_call_id"] for item in messages(body) if item.get("tool_call_id")]


def _has_plain_text(body: Body) -> bool:
    contents = [item.get("content") for item in messages(body) if isinstance(item.get("content"), list)]
    return not any(all(part.get("type") == "text" for part in content) for content in contents)


def _alternates(body: Body) -> bool:
    """Return whether user and assistant take turns after the first messages, which are the system's."""
    roles = [item["role"] for item in messages(body) if item["role"] != "system"]
    return not any(one == two for one, two in pairwise(roles))


def _lacks_reasoning(body: Body) -> bool:
    calls = [item for item in messages(body) if item.get("tool_calls")]
    return any(not isinstance(item.get("reasoning_content"), str) for item in calls)


def _part_of_type(kind: str, body: Body) -> bool:
    return any(part.get("type") == kind for part in _contents(body, ("user",)))


def _has_file_data(body: Body) -> bool:
    return any(part.get("type") == "file" and "file" in part for part in _contents(body, ("user",)))


def _never(body: Body) -> bool:
    return False


_SAYS_SCHEMA = partial(has_feature, "response_format.schema")
DEVIATIONS: Mapping[str, Deviation] = {
    "automatic_cache": Deviation(lambda body: not cache_of(body), lambda body: cache_of(body) != ""),
    "cache_key": Deviation(partial(_field, "prompt_cache_key"), _has_marker),
    "cache_markers": Deviation(_has_marker, partial(_field, "prompt_cache_key")),
    "gateway_cache": Deviation(
        lambda body: cache_of(body) != "", lambda body: _has_marker(body) or _field("prompt_cache_key", body)
    ),
    "call_ids_9": Deviation(
        lambda body: any(re.fullmatch("[A-Za-z0-9]{9}", each) for each in _ids(body)),
        lambda body: any(not re.fullmatch("[A-Za-z0-9]{9}", each) for each in _ids(body)),
    ),
    "document_url": Deviation(partial(_part_of_type, "document_url"), _has_file_data),
    "echoes_reasoning": Deviation(_has_reasoning, _never),
    "file_data_url": Deviation(partial(has_medium, "document", "url", ("user",)), _never),
    "file_url": Deviation(partial(_part_of_type, "file_url"), partial(_part_of_type, "file")),
    "joins_turns": Deviation(_alternates, lambda body: not _alternates(body)),
    "groq_compound": Deviation(
        partial(_field, "compound_custom"), partial(_has_other_tools, frozenset({"code_interpreter", "web_search"}))
    ),
    "groq_tools": Deviation(
        partial(_has_native, frozenset({"browser_search"})),
        partial(_has_other_tools, frozenset({"browser_search", "code_interpreter"})),
    ),
    "json_object": Deviation(partial(has_feature, "response_format.object"), _SAYS_SCHEMA),
    "max_tokens": Deviation(partial(_field, "max_tokens"), partial(_field, "max_completion_tokens")),
    "needs_reasoning": Deviation(_has_reasoning, _lacks_reasoning),
    "no_calls": Deviation(
        lambda body: not _ids(body),
        lambda body: bool(_ids(body)) or any(item.get("role") == "tool" for item in messages(body)),
    ),
    "no_strict": Deviation(lambda body: not has_feature("strict", body), partial(has_feature, "strict")),
    "openrouter_tools": Deviation(
        partial(_has_native, frozenset({"openrouter:web_search"})),
        partial(_has_other_tools, frozenset({"openrouter:web_search"})),
    ),
    "plain_text": Deviation(_has_plain_text, lambda body: not _has_plain_text(body)),
    "random_seed": Deviation(partial(_field, "random_seed"), partial(_field, "seed")),
    "results_image": Deviation(partial(has_feature, "results.image"), _never),
    "system_role": Deviation(
        lambda body: any(item.get("role") in ("system", "developer") for item in messages(body)),
        lambda body: any(item.get("role") == "developer" for item in messages(body)),
    ),
    "thinking_type": Deviation(
        lambda body: _field("thinking", body), lambda body: body.get("reasoning_effort") == "none"
    ),
    "video_url": Deviation(partial(_part_of_type, "video_url"), _never),
    "xai_tools": Deviation(
        partial(_has_native, frozenset({"web_search"})),
        lambda body: any("filters" in tool or "container" in tool for tool in body.get("tools") or ()),
    ),
}
RENAMES = {"max_tokens": "max_tokens", "random_seed": "random_seed"}
"""Field of a rename → the deviation of that name."""
_FORMS = {"results_image": "results.image", "video_url": "video.url"}
"""Deviation without which a request has no such feature, because the wire has no part for it."""


@cache
def row_file(name: str) -> dict[str, Any]:
    text = files("sabir_openai").joinpath("gateways", f"{name}.toml").read_text("utf-8")
    row: dict[str, Any] = tomllib.loads(text)["rows"][0]
    return row


@cache
def entries(row: str, dialect: str, model: str) -> tuple[dict[str, Any], ...]:
    """Return the entries of a row for a model and a dialect's short name, those of shorter prefixes first."""
    found = []
    for entry in row_file(row)["entries"]:
        lengths = [len(prefix) for prefix in entry.get("models", [""]) if model.startswith(prefix)]
        if lengths and dialect in entry.get("dialects", [dialect]):
            found.append((max(lengths), entry))
    return tuple(entry for _, entry in sorted(found, key=lambda pair: pair[0]))


def is_forbidden(row: str, dialect: str, model: str, feature: str, reasons: bool = True) -> bool:
    """Return whether a row says last that a model refuses or ignores a feature."""
    verdict = False
    for entry in entries(row, dialect, model):
        if entry.get("while_reasoning") and not reasons:
            continue
        if feature in (*entry.get("refuses", ()), *entry.get("ignores", ())):
            verdict = True
        elif feature in entry.get("accepts", ()):
            verdict = False
    return verdict


@cache
def forbidden(row: str, dialect: str, model: str, reasons: bool) -> tuple[str, ...]:
    named = {
        feature
        for entry in entries(row, dialect, model)
        for feature in (*entry.get("refuses", ()), *entry.get("ignores", ()))
    }
    found = {each for each in named if is_forbidden(row, dialect, model, each, reasons)}
    # Where a setting is forbidden, a value that an entry accepts is not.
    return tuple(sorted(each for each in found if each not in ("option_choice", "response_format")))


@cache
def deviations(row: str, dialect: str, model: str) -> frozenset[str]:
    """Return the deviations of a row for a model, those that its renames and refusals are among them."""
    found = set()
    for entry in entries(row, dialect, model):
        found |= {*entry.get("adds", ()), *(RENAMES[field] for field in entry.get("renames", {}).values())}
    return frozenset(found)


def reasons(row: str, dialect: str, model: str, body: Body) -> bool:
    known = [entry["reasoning"] for entry in entries(row, dialect, model) if "reasoning" in entry]
    effort = effort_of(body)
    return effort != "none" and (effort != "" or bool(known and known[-1]))


def broken_rules(row: str, dialect: str, model: str, body: Body) -> Iterator[str]:
    """Yield what a request has that the row says a model refuses or ignores, and each deviation that it breaks."""
    for feature in forbidden(row, dialect, model, reasons(row, dialect, model, body)):
        if has_feature(feature, body):
            yield f"has {feature}"
    own = deviations(row, dialect, model)
    for name in own if dialect == "chat" else own & {"no_strict", "openrouter_tools", "xai_tools"}:
        if DEVIATIONS[name].breaks(body):
            yield f"breaks {name}"
    if dialect == "chat":
        for name, feature in _FORMS.items():
            if name not in own and has_feature(feature, body):
                yield f"has {feature} without {name}"
        if "echoes_reasoning" not in own and _has_reasoning(body):
            yield "has reasoning without echoes_reasoning"
        if DEVIATIONS["system_role"].breaks(body):
            yield "has the role developer"
