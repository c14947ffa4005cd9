"""Makes messages from keywords: chooses the kind, or updates a given message.

instruction and its parts · assistant_response · system · action_function, action_arguments, action_request
· action_output, action_response               one kind at a time; None counts as not given, except as an output
"""

from collections.abc import Mapping
from typing import Any, TypedDict, TypeVar, Unpack

from jinja2 import Template
from sabir.authoring import describe_kind, show_arguments

from sabir_roles.actions import ActionRequest, ActionResponse
from sabir_roles.assistant_response import AssistantResponse
from sabir_roles.base import UNSET, SenderRecipient
from sabir_roles.content import plain
from sabir_roles.errors import RoleError
from sabir_roles.instruction import Instruction, InstructionArguments
from sabir_roles.message import RoledMessage, check_kind
from sabir_roles.system import System

Kind = TypeVar("Kind", bound=RoledMessage)


class Common(TypedDict, total=False):
    """What every kind takes."""

    sender: SenderRecipient | None
    recipient: SenderRecipient | None
    template: Template | str | None


class MessageArguments(InstructionArguments, total=False):
    """The arguments of `add_message`: those of one kind, and common ones; the others are in InstructionArguments."""

    instruction: Any
    assistant_response: Any
    system: Any
    system_datetime: bool | str | None
    action_function: Any
    action_arguments: Mapping[str, Any] | str | None
    action_request: ActionRequest | None
    action_output: Any
    action_response: ActionResponse | None
    template_context: Mapping[str, Any] | None
    metadata: Mapping[str, Any] | None


SHARED = frozenset({"template", "template_context", "sender", "recipient", "metadata"})
INSTRUCTION = frozenset({"instruction", *InstructionArguments.__annotations__}) - SHARED
_WORDS: Mapping[str, frozenset[str]] = {
    "instruction": INSTRUCTION,
    "assistant_response": frozenset({"assistant_response"}),
    "system": frozenset({"system", "system_datetime"}),
    "action_request": frozenset({"action_function", "action_arguments", "action_request"}),
    "action_response": frozenset({"action_output", "action_response"}),
}

_PARAMETERS = {"action_function": "function", "action_arguments": "arguments"}
"""Keyword of `add_message` → that of its maker, where they differ."""


def kind_of(given: Mapping[str, Any]) -> str:
    """The kind that the keywords make; raises RoleError for none, for two, and for an unknown keyword."""
    known = frozenset.union(SHARED, *_WORDS.values())
    for name in given:
        if name not in known:
            raise RoleError(f"add_message() takes no {name!r}; it takes {', '.join(sorted(known))}")
    said = {name for name, value in given.items() if value is not None}
    if given.get("system_datetime") is False and "system" not in said:
        said.discard("system_datetime")  # no time is no message
    if "action_output" in given and "action_request" in said:
        said.add("action_output")  # a function may give None back
    kinds = [kind for kind, words in _WORDS.items() if words & said]
    if kinds == ["action_request", "action_response"] and not said & {"action_function", "action_arguments"}:
        return "action_response"
    if len(kinds) == 1:
        return kinds[0]
    if not kinds:
        raise RoleError(f"add_message() was given no message; give one of {', '.join(_WORDS)} …")
    raise RoleError(f"add_message() was given {' and '.join(kinds)}; add one message at a time")


@show_arguments
class Makers:
    """Messages of each kind by keywords, made or updated, and not added anywhere."""

    @staticmethod
    def create_instruction(
        *,
        instruction: Any = None,
        template_context: Mapping[str, Any] | None = None,
        **given: Unpack[InstructionArguments],
    ) -> Instruction:
        """An instruction; one that is given is updated."""
        context = plain_object("template_context", template_context)
        if isinstance(instruction, Instruction):
            made = instruction
            if given:
                made.update(**given)
        else:
            made = Instruction.create(instruction, **given)
        return _in_context(made, context)

    @staticmethod
    def create_assistant_response(
        *,
        assistant_response: Any = None,
        template_context: Mapping[str, Any] | None = None,
        **given: Unpack[Common],
    ) -> AssistantResponse:
        """An answer; one that is given is updated."""
        context = plain_object("template_context", template_context)
        if isinstance(assistant_response, AssistantResponse):
            made = assistant_response
            made.update(**given)
        else:
            made = AssistantResponse.create(assistant_response, **given)
        return _in_context(made, context)

    @staticmethod
    def create_system(
        *,
        system: Any = None,
        system_datetime: bool | str | None = None,
        template_context: Mapping[str, Any] | None = None,
        **given: Unpack[Common],
    ) -> System:
        """A system message; one that is given is updated."""
        context = plain_object("template_context", template_context)
        if isinstance(system, System):
            made = system
            made.update(system_datetime=system_datetime, **given)
        else:
            said = {} if system is None else {"system_message": system}
            made = System.create(system_datetime=system_datetime, **said, **given)
        return _in_context(made, context)

    @staticmethod
    def create_action_request(
        *,
        function: Any = None,
        arguments: Mapping[str, Any] | str | None = None,
        action_request: ActionRequest | None = None,
        template_context: Mapping[str, Any] | None = None,
        **given: Unpack[Common],
    ) -> ActionRequest:
        """A request; one that is given is updated."""
        context = plain_object("template_context", template_context)
        if action_request is None:
            return _in_context(ActionRequest.create(function, arguments, **given), context)
        check_kind(action_request, ActionRequest)
        if any(value is not None for value in (function, arguments, template_context, *given.values())):
            action_request.update(function, arguments, **given)
        return _in_context(action_request, context)

    @staticmethod
    def create_action_response(
        *,
        action_request: ActionRequest | None = None,
        action_output: Any = UNSET,
        action_response: ActionResponse | None = None,
        template_context: Mapping[str, Any] | None = None,
        **given: Unpack[Common],
    ) -> ActionResponse:
        """A response to a request; one that is given is updated. RoleError without a request."""
        context = plain_object("template_context", template_context)
        if action_response is not None:
            check_kind(action_response, ActionResponse)
            action_response.update(action_request, action_output, **given)
            return _in_context(action_response, context)
        if action_request is None:
            raise RoleError("a response answers a request; give action_request=")
        return _in_context(ActionResponse.create(action_request, action_output, **given), context)

    def make(self, kind: str, given: Mapping[str, Any]) -> RoledMessage:
        """The message of a kind that the keywords of `add_message` make."""
        words = SHARED | _WORDS[kind] | ({"action_request"} if kind == "action_response" else set())
        said = {_PARAMETERS.get(name, name): value for name, value in given.items() if name in words}
        made: RoledMessage = getattr(self, f"create_{kind}")(**said)
        return made


def plain_object(name: str, given: object) -> dict[str, Any] | None:
    """A mapping that was given, as plain JSON; RoleError for anything else but None."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise RoleError(f"{name} is {describe_kind(given)}; give a mapping")
    made: dict[str, Any] = plain(dict(given))
    return made


def _in_context(made: Kind, context: dict[str, Any] | None) -> Kind:
    """The message, with further variables for its template."""
    if context is not None:
        made._change({"template_context": context})
    return made
