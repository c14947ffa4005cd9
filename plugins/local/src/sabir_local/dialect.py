"""Chat Completions for the embedded server.

    openai.chat ── unchanged, except for the choice of an option

The embedded model (and other models of its family, SmolLM2) calls an option if a call is required, and answers if calls
are forbidden; with a free choice it does neither reliably. So if the user leaves the choice open, a request whose last
turn is the user's requires a call, and any other request forbids calls (server.py has figures, and the command that
measures them). Other models get an open choice unchanged.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sabir.authoring import JSONValue, RequestScope
from sabir_openai.chat_dialect import CHAT

from sabir_local.models import template_name

OPEN_CHOICES: Mapping[str | None, str] = {"user": "required"}
"""The side of the last turn → the option choice that replaces an open choice. For other sides, the choice is "none"."""
EXPECTS_CALL: Mapping[str, bool] = {"required": True, "none": False}
"""Option choice → the argument `expects_call` of the chat template."""


def encode_request(scope: RequestScope) -> Mapping[str, JSONValue]:
    """Return the fields that `openai.chat` sends, except the messages, with the option choice in the form that the
    server supports. Raises SettingsInvalid like `openai.chat`.

    For a model of the embedded model's family, the side of the last turn decides an open choice, and "auto" is reported
    as a loss. For every model, `parallel_options` True is reported as a loss if the request requires a call.
    """
    body = dict(CHAT.encode_request(scope))
    is_open = body.get("tool_choice", "auto") == "auto"
    if "tools" not in body or (is_open and template_name(scope.target.model) is None):
        return body
    adapted = {**body, **_adapt_tool_choice(body, scope)}
    if scope.settings.take("option_choice") == "auto":
        decision = adapted["tool_choice"]
        reason = f"{scope.target.model} cannot choose whether to call a tool; tool_choice {decision!r} was sent instead"
        scope.losses.add("rewritten", reason, path="settings.option_choice")
    if body.get("parallel_tool_calls") and not adapted["parallel_tool_calls"]:
        reason = "a request that requires a call allows only one call at a time; parallel_tool_calls false was sent"
        scope.losses.add("dropped", reason, path="settings.parallel_options")
    return adapted


def _adapt_tool_choice(body: Mapping[str, Any], scope: RequestScope) -> Mapping[str, JSONValue]:
    """Return the fields for the option choice: an open choice is decided, and a named option becomes the only one."""
    choice = body.get("tool_choice", "auto")
    if choice == "auto":
        choice = OPEN_CHOICES.get(scope.last_side, "none")
    if isinstance(choice, Mapping):  # the server ignores a name, so only this tool is offered, and a call is required
        name = choice.get("function", {}).get("name")
        named = [tool for tool in body["tools"] if tool["function"]["name"] == name]
        return {"tools": named, **_choice_fields("required")}
    return _choice_fields(choice)


def _choice_fields(choice: str) -> Mapping[str, JSONValue]:
    """Return the request fields for the choice "required" or "none", or for a word of a vendor setting, which the
    server may know.
    """
    if choice not in EXPECTS_CALL:
        return {"tool_choice": choice}
    expects_call = {"expects_call": EXPECTS_CALL[choice]}
    fields: dict[str, JSONValue] = {"tool_choice": choice, "chat_template_kwargs": expects_call}
    return fields | ({"parallel_tool_calls": False} if choice == "required" else {})


LOCAL_CHAT = replace(CHAT, encode_request=encode_request)
"""The dialect `openai.chat` with the option choice adapted to the embedded server and model."""
