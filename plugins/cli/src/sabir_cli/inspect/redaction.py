"""Replace the contents of a conversation, and keep its structure, so that it can be attached to a bug report.

    "Ada, 12 May"            ──▶ "xxxx xx xxx"        each character except white space
    {"city": "Rome", "n": 3} ──▶ {"city": "xxxx", "n": 0}
    an image                 ──▶ an empty image of the same type, "redacted, 4711 bytes"

Kinds, the number and order of messages and parts, names of options and of their arguments, models, tokens and times
remain. Everything after redaction works on the new messages, so nothing of the old ones can reach the page.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import sabir
from sabir.authoring import load_stored

from sabir_cli.inspect.inspection import InspectedMessage, Inspection

TITLE = "redacted conversation"
KNOWN_POLICIES = frozenset({"user", "system", "llm", "runtime"})
"""Policies that are no names of people."""
PLAIN_WORD = re.compile(r"[a-z][a-z0-9_.]{0,39}")
TYPE_FIELDS = frozenset({"type", "role", "status", "kind"})
"""Fields of vendors' blocks whose words are names of the API."""
KEPT_FIELDS = frozenset({
    "schema", "kind", "modality", "option_name", "is_error", "retryable", "invalid_arguments", "cut_off", "tool",
    "dialect", "pair", "step_num", "role_hint_for_llm", "start", "end", "mime",
})  # fmt: skip
"""Fields of sabir's messages that describe structure."""
BLOCKS = frozenset({"state", "raw", "block", "source"})
"""Fields with vendors' JSON, whose field names belong to the API."""
PRIVATE = "https://redacted.invalid"


def redact(inspection: Inspection) -> Inspection:
    """Return the conversation without its contents."""
    names = {option.name for option in inspection.options}
    names |= {call.option_name for message in inspection.messages if (call := message.call or message.result)}
    redactor = _Redactor(names)
    settings = inspection.settings
    neutral = {
        name: getattr(settings, name)
        for name in ("max_output_tokens", "temperature", "top_p", "reasoning_effort", "parallel_options",
                     "prompt_cache", "media_labels", "unsupported_media")
    }  # fmt: skip
    return Inspection(
        TITLE,
        "contents redacted; structure, names of options and figures are kept",
        tuple(redactor.entry(entry) for entry in inspection.entries),
        tuple(redactor.option(option) for option in inspection.options),
        sabir.Settings(**{name: setting for name, setting in neutral.items() if setting is not None}),
        tuple(hide_text(note) for note in inspection.notes),
    )


def hide_text(text: str) -> str:
    """Return a text of the same length, with x for each character except white space."""
    return re.sub(r"\S", "x", text)


class _Redactor:
    """Redacts the messages of one conversation. Equal ids stay equal."""

    def __init__(self, option_names: set[str]) -> None:
        self._option_names = option_names
        self._ids: dict[str, str] = {}

    def entry(self, entry: InspectedMessage) -> InspectedMessage:
        """Return a message without its contents. Figures remain."""
        losses = tuple(loss.model_copy(update={"reason": hide_text(loss.reason), "message_id": ""})
                       for loss in entry.losses)  # fmt: skip
        figures = entry.figures
        if figures is not None:
            usage = figures.usage.model_copy(update={"details_json": None})
            figures = replace(figures, usage=usage)
        return replace(entry, message=self.message(entry.message), figures=figures, losses=losses,
                       heading=hide_text(entry.heading))  # fmt: skip

    def message(self, message: sabir.Message) -> sabir.Message:
        """Return a message without its contents. If the result were invalid, return a text that says so."""
        fields = message.model_dump(mode="json", exclude_none=True, by_alias=True)
        policy = message.policy if message.policy in KNOWN_POLICIES | self._option_names else hide_text(message.policy)
        hidden: dict[str, Any] = {"id": self._number(message.id), "policy": policy}
        if message.origin is not None:
            hidden["origin"] = _hide_origin(message.origin)
        for name in ("role_hint_for_llm", "step_num"):
            if name in fields:
                hidden[name] = fields[name]
        if message.kind == "unknown":
            return sabir.Message.model_validate(hidden | {"payload": _note("a message of a newer version")})
        hidden["payload"] = {name: self._field(name, inner) for name, inner in fields["payload"].items()}
        try:
            return load_stored(sabir.Message.model_validate, hidden)
        except ValueError:
            return sabir.Message.model_validate(hidden | {"payload": _note("a message that cannot be redacted")})

    def option(self, option: sabir.Option) -> sabir.Option:
        """Return an option without its descriptions."""
        if option.is_native:
            return option
        return sabir.Option.from_schema(option.name, hide_text(option.description), _hide_schema(option.parameters))

    def _field(self, name: str, inner: Any) -> Any:  # any JSON
        if name in KEPT_FIELDS:
            return inner
        if name in ("invocation_id", "pair_id", "id"):
            return self._number(str(inner))
        if name == "parts":
            return [self._part(part) for part in inner]
        if name == "arguments" and isinstance(inner, dict):
            return {key: hide_json(each) for key, each in inner.items()}
        if name == "vendor":
            return {}
        return hide_json(inner, keeps_names=name in BLOCKS)

    def _part(self, part: Mapping[str, Any]) -> dict[str, Any]:
        if part.get("kind") == "media":
            return _hide_medium(part)
        hidden = {name: self._field(name, inner) for name, inner in part.items()}
        for name in ("citations", "sources", "files"):
            if name in part:
                hidden[name] = [{key: self._field(key, inner) for key, inner in each.items()} for each in part[name]]
        return hidden

    def _number(self, identifier: str) -> str:
        return self._ids.setdefault(identifier, f"id-{len(self._ids) + 1}")


def _note(text: str) -> dict[str, Any]:  # a payload's fields
    return {"kind": "parts", "parts": [{"kind": "text", "text": f"[{text}]"}]}


def _hide_origin(origin: sabir.Origin) -> dict[str, str]:
    """Return an origin with the endpoint only if it is the default one of an installed provider."""
    endpoint = PRIVATE
    try:
        default = sabir.dialect(f"{origin.provider}.{origin.dialect.rpartition('.')[2]}").target.endpoint
        endpoint = origin.endpoint if origin.endpoint in ("", default) else PRIVATE
    except sabir.SabirError:
        pass
    return {"provider": origin.provider, "dialect": origin.dialect, "model": origin.model, "endpoint": endpoint}


def _hide_medium(part: Mapping[str, Any]) -> dict[str, Any]:
    url = str(part.get("url", ""))
    header, _, payload = url.partition(",")
    form = url.partition(":")[0].lower()
    hidden = {"kind": "media", "modality": part["modality"], "name": "redacted"}
    if "mime" in part:
        hidden["mime"] = part["mime"]
    if form == "data":
        mime = header.partition(":")[2].partition(";")[0]
        return {**hidden, "url": f"data:{mime};base64,AAAA", "name": f"redacted, {len(payload) * 3 // 4} bytes"}
    if form == "provider-file":
        return {**hidden, "url": f"{url.partition('/')[0]}/redacted"}
    return {**hidden, "url": f"{PRIVATE}/medium"}


def hide_json(tree: Any, *, keeps_names: bool = False) -> Any:  # any JSON
    """Return a JSON value of the same structure: texts as x, numbers as 0.

    With `keeps_names`, names of fields remain, and the API's words in TYPE_FIELDS. Otherwise names are hidden too.
    """
    if isinstance(tree, dict):
        hidden: dict[str, Any] = {}
        for name, inner in tree.items():
            key = name if keeps_names else f"{hide_text(name)}{len(hidden) or ''}"
            is_word = keeps_names and name in TYPE_FIELDS and isinstance(inner, str) and PLAIN_WORD.fullmatch(inner)
            hidden[key] = inner if is_word else hide_json(inner, keeps_names=keeps_names)
        return hidden
    if isinstance(tree, list):
        return [hide_json(inner, keeps_names=keeps_names) for inner in tree]
    if isinstance(tree, str):
        return hide_text(tree)
    return tree if tree is None or isinstance(tree, bool) else 0


def _hide_schema(schema: Any) -> Any:  # any JSON
    """Return a JSON schema without descriptions, examples and values."""
    if isinstance(schema, Mapping):
        hidden = {"description", "title", "examples", "default", "const", "enum", "pattern", "$comment"}
        return {
            name: _hide_schema(inner)
            for name, inner in schema.items()
            if name not in hidden or isinstance(inner, Mapping)
        }
    return [*map(_hide_schema, schema)] if isinstance(schema, list | tuple) else schema
