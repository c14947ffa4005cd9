"""Law 13: fields, headers and tools for one target are never sent to another target. There they are losses.

    extra_body, and extra_body_for[name of this target] ──merged──▶ the body that the dialect rendered
    extra_body_for[name of another target]              ──────────▶ dropped; a loss without an entry for this target
    vendor[another provider]["tools"]                   ──────────▶ dropped, like an option_choice of such a tool

Other settings in a vendor's section are not reported as losses, because they change neither what a model reads nor what
it may call.
"""

from collections.abc import Mapping
from typing import Any

from sabir.base.values import JSONValue, freeze
from sabir.contract.turns import LossLog
from sabir.vocabulary.settings import Settings, Target

CONTENT = frozenset({
    "cached_content", "conversation", "mcp_servers", "previous_response_id", "prompt", "tool_choice", "tool_config",
    "tools", "web_search_options",
})  # fmt: skip
"""Vendor settings that change what the model reads or may call: the vendor's own tools, and content on its servers."""


def extras_for(target: Target, settings: Settings, losses: LossLog) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the fields of the body and the headers that the settings add for a target. `extra_body` and
    `extra_headers` override entries for the target.

    Entries for other targets are losses, unless there is also an entry for this target, which replaces them.
    """
    extras: list[dict[str, Any]] = []
    for field in ("extra_body", "extra_headers"):
        sections: Mapping[str, Mapping[str, Any]] = getattr(settings, f"{field}_for")
        own = [section for name, section in sections.items() if target.is_named(name)]
        for owner, section in sections.items() if not own else ():
            for name in section:
                losses.add("dropped", f"it is for {owner}, not for {target}", path=f"{field}.{name}")
        extras.append({name: value for each in (*own, getattr(settings, field)) for name, value in each.items()})
    body, headers = extras
    return body, headers


def merge(rendered: Any, extra: Any, path: str, losses: LossLog) -> Any:
    """Return the value of the request with the value of `extra_body` merged into it.

    Objects are merged field by field; objects with a field "type", such as schemas, and all other values are replaced,
    with a loss if they differ. `path` is the place for the loss.
    """
    if isinstance(rendered, Mapping) and isinstance(extra, Mapping) and "type" not in {*rendered, *extra}:
        shared = [name for name in rendered if name in extra]
        merged = {name: merge(rendered[name], extra[name], f"{path}.{name}", losses) for name in shared}
        return {**rendered, **extra, **merged}
    if freeze(rendered) != extra:
        losses.add("dropped", "extra_body replaced the value from the settings and options", path=path)
    return extra


def without_foreign_tools(settings: Settings, target: Target, offered: Mapping[str, str], losses: LossLog) -> Settings:
    """Return the settings without an `option_choice` that names a tool of another vendor. Add losses for the CONTENT
    settings of other vendors.

    If the target's own section has CONTENT settings, they replace those of other vendors: return the settings
    unchanged, without losses.
    """
    if CONTENT & settings.vendor.get(target.provider, {}).keys():
        return settings
    names: set[str] = set()
    for provider, section in settings.vendor.items():
        for field in sorted(CONTENT & section.keys()) if provider != target.provider else ():
            path, reason = f"settings.vendor.{provider}.{field}", f"it is for {provider}, not for {target}"
            if field != "tools":
                losses.add("dropped", reason, path=path)
                continue
            for index, tool in enumerate(section[field]):
                names.add(declared_name(tool))
                losses.add("dropped", reason, path=f"{path}[{index}]")
    choice = settings.option_choice
    if choice is None or choice in offered or choice not in names:
        return settings
    losses.add("dropped", f"{choice!r} is a tool of another vendor; no choice was sent", path="settings.option_choice")
    return settings.model_copy(update={"option_choice": None})


def declared_name(tool: JSONValue) -> str:
    """Return the name in the declaration of a vendor's tool; if the declaration has an object in the field that its
    "type" names, the name in this object. "" if there is none.
    """
    if not isinstance(tool, Mapping):
        return ""
    inner = tool.get(str(tool.get("type")))
    name = (inner if isinstance(inner, Mapping) else tool).get("name")
    return name if isinstance(name, str) else ""
