"""Create messages from the arguments of `add_message`, or update a message that is passed as an argument.

    argument                                               kind of message
    instruction, or another argument of an instruction     Instruction
    assistant_response                                     AssistantResponse
    system, system_datetime                                System
    action_function, action_arguments, action_request      ActionRequest
    action_output, action_response                         ActionResponse

Pass arguments of one kind only. None means not passed, except for `action_output` together with `action_request`.
"""

from collections.abc import Mapping
from typing import Any, TypedDict, TypeVar, Unpack

from jinja2 import Template
from sabir.authoring import describe_kind, show_arguments

from sabir_roles.actions import ActionRequest, ActionResponse
from sabir_roles.assistant_response import AssistantResponse
from sabir_roles.content import json_copy
from sabir_roles.errors import RoleError
from sabir_roles.instruction import Instruction, InstructionArguments
from sabir_roles.message import RoledMessage, check_kind
from sabir_roles.roles import UNSET, SenderRecipient
from sabir_roles.system import System

Kind = TypeVar("Kind", bound=RoledMessage)


class CommonArguments(TypedDict, total=False):
    """The optional arguments of every kind. None means the default of the kind for a new message, and no change of a
    message that is passed.

    sender: who sends the message.
    recipient: who receives the message.
    template: a jinja2 source, the file name of a template of sabir_roles, or a Template.
    """

    sender: SenderRecipient | None
    recipient: SenderRecipient | None
    template: Template | str | None


class MessageArguments(InstructionArguments, total=False):
    """The arguments of `add_message`: the arguments of one kind of message, and the common arguments.

    instruction: the request of a user, any JSON value, or an Instruction. All arguments of `Instruction.create` may be
    passed too.
    assistant_response: an answer of the model, as for `AssistantResponse.create`, or an AssistantResponse.
    system: the system message, any JSON value, or a System.
    system_datetime: the time in the system message: True for now (UTC), False for no time, or a text.
    action_function: the function that an action request calls, or its name.
    action_arguments: the arguments of the call, a mapping or the JSON text of an object.
    action_request: an ActionRequest to add. Together with `action_output` or `action_response`, the request to which
    the response belongs; then only the response is added.
    action_output: the output of the function, which creates an ActionResponse to `action_request`, or replaces the
    output of `action_response`.
    action_response: an ActionResponse to add.
    template_context: further variables for the template. They override all other variables.
    metadata: data of your program, merged into `message.metadata["extra"]`.
    """

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
_KIND_ARGUMENTS: Mapping[str, frozenset[str]] = {
    "instruction": INSTRUCTION,
    "assistant_response": frozenset({"assistant_response"}),
    "system": frozenset({"system", "system_datetime"}),
    "action_request": frozenset({"action_function", "action_arguments", "action_request"}),
    "action_response": frozenset({"action_output", "action_response"}),
}

_PARAMETERS = {"action_function": "function", "action_arguments": "arguments"}
"""Argument of `add_message` → argument of the `create_…` method, where they differ."""


def kind_of(arguments: Mapping[str, Any]) -> str:
    """Return the kind of message that the arguments of `add_message` describe, such as "instruction".

    Raises RoleError for an unknown argument, and for arguments of no kind or of two kinds.
    """
    known = frozenset.union(SHARED, *_KIND_ARGUMENTS.values())
    for name in arguments:
        if name not in known:
            raise RoleError(f"add_message() has no argument {name!r}; its arguments are {', '.join(sorted(known))}")
    passed = {name for name, value in arguments.items() if value is not None}
    if arguments.get("system_datetime") is False and "system" not in passed:
        passed.discard("system_datetime")  # False alone does not create a system message
    if "action_output" in arguments and "action_request" in passed:
        passed.add("action_output")  # a function may return None
    kinds = [kind for kind, names in _KIND_ARGUMENTS.items() if names & passed]
    if kinds == ["action_request", "action_response"] and not passed & {"action_function", "action_arguments"}:
        return "action_response"
    if len(kinds) == 1:
        return kinds[0]
    if not kinds:
        raise RoleError(f"add_message() got no message; pass one of {', '.join(_KIND_ARGUMENTS)}, or their arguments")
    raise RoleError(f"add_message() got arguments of {' and '.join(kinds)}; add one message at a time")


@show_arguments
class CreateMethods:
    """The `create_…` methods of MessageManager: each returns a message, without adding it to the manager.

    If a message is passed, the method updates and returns it. All raise RoleError for invalid arguments.
    """

    @staticmethod
    def create_instruction(
        *,
        instruction: Any = None,
        template_context: Mapping[str, Any] | None = None,
        **arguments: Unpack[InstructionArguments],
    ) -> Instruction:
        """Return an instruction. If `instruction` is an Instruction, update and return this object.

        `template_context` is further variables for the template, which override all others.
        """
        context = optional_object("template_context", template_context)
        if isinstance(instruction, Instruction):
            message = instruction
            if arguments:
                message.update(**arguments)
        else:
            message = Instruction.create(instruction, **arguments)
        return _set_template_context(message, context)

    @staticmethod
    def create_assistant_response(
        *,
        assistant_response: Any = None,
        template_context: Mapping[str, Any] | None = None,
        **common: Unpack[CommonArguments],
    ) -> AssistantResponse:
        """Return an answer of the model. If `assistant_response` is an AssistantResponse, update and return this
        object.

        Other values are converted as in `AssistantResponse.create`. `template_context` is further variables for the
        template, which override all others.
        """
        context = optional_object("template_context", template_context)
        if isinstance(assistant_response, AssistantResponse):
            message = assistant_response
            message.update(**common)
        else:
            message = AssistantResponse.create(assistant_response, **common)
        return _set_template_context(message, context)

    @staticmethod
    def create_system(
        *,
        system: Any = None,
        system_datetime: bool | str | None = None,
        template_context: Mapping[str, Any] | None = None,
        **common: Unpack[CommonArguments],
    ) -> System:
        """Return a system message. If `system` is a System, update and return this object.

        `system_datetime` adds a time: True for now (UTC), or a text; False removes it. `template_context` is further
        variables for the template, which override all others.
        """
        context = optional_object("template_context", template_context)
        if isinstance(system, System):
            message = system
            message.update(system_datetime=system_datetime, **common)
        else:
            instructions = {} if system is None else {"system_message": system}
            message = System.create(system_datetime=system_datetime, **instructions, **common)
        return _set_template_context(message, context)

    @staticmethod
    def create_action_request(
        *,
        function: Any = None,
        arguments: Mapping[str, Any] | str | None = None,
        action_request: ActionRequest | None = None,
        template_context: Mapping[str, Any] | None = None,
        **common: Unpack[CommonArguments],
    ) -> ActionRequest:
        """Return an ActionRequest. If `action_request` is passed, update and return this object.

        `function` is a name or a function, and `arguments` a mapping or the JSON text of an object. `template_context`
        is further variables for the template, which override all others. Raises RoleError if a passed request would
        change but already has a response.
        """
        context = optional_object("template_context", template_context)
        if action_request is None:
            return _set_template_context(ActionRequest.create(function, arguments, **common), context)
        check_kind(action_request, ActionRequest)
        if any(value is not None for value in (function, arguments, template_context, *common.values())):
            action_request.update(function, arguments, **common)
        return _set_template_context(action_request, context)

    @staticmethod
    def create_action_response(
        *,
        action_request: ActionRequest | None = None,
        action_output: Any = UNSET,
        action_response: ActionResponse | None = None,
        template_context: Mapping[str, Any] | None = None,
        **common: Unpack[CommonArguments],
    ) -> ActionResponse:
        """Return a new response to `action_request`. If `action_response` is passed, update and return this object.

        `action_output` is the return value of the function. `template_context` is further variables for the template,
        which override all others. Raises RoleError if both messages are missing, and if the request already has another
        response.
        """
        context = optional_object("template_context", template_context)
        if action_response is not None:
            check_kind(action_response, ActionResponse)
            action_response.update(action_request, action_output, **common)
            return _set_template_context(action_response, context)
        if action_request is None:
            raise RoleError("an action response needs its request; pass action_request=")
        return _set_template_context(ActionResponse.create(action_request, action_output, **common), context)

    def make(self, kind: str, arguments: Mapping[str, Any]) -> RoledMessage:
        """Return the message of the kind that `kind_of` returned for these arguments of `add_message`."""
        names = SHARED | _KIND_ARGUMENTS[kind] | ({"action_request"} if kind == "action_response" else set())
        parameters = {_PARAMETERS.get(name, name): value for name, value in arguments.items() if name in names}
        message: RoledMessage = getattr(self, f"create_{kind}")(**parameters)
        return message


def optional_object(name: str, mapping: object) -> dict[str, Any] | None:
    """Return a copy of a mapping as JSON values, and None for None. Raises RoleError for any other value; `name` is the
    argument's name.
    """
    if mapping is None:
        return None
    if not isinstance(mapping, Mapping):
        raise RoleError(f"{name} is {describe_kind(mapping)}; pass a mapping")
    return dict(json_copy(dict(mapping)))


def _set_template_context(message: Kind, context: dict[str, Any] | None) -> Kind:
    """Set the further variables for the template of a message, unless they are None. Return the message."""
    if context is not None:
        message._change({"template_context": context})
    return message
