"""Editable messages with roles and templates, and a manager that sends them to a model.

manager = MessageManager(system=System.create())
manager.add_message(instruction="How to deploy a python app?")
reply = manager.complete_sync(sabir.adapter("provider:model"))
"""

from sabir_roles.actions import ActionRequest, ActionResponse
from sabir_roles.assistant_response import AssistantResponse
from sabir_roles.errors import RoleError, TemplateFailed
from sabir_roles.instruction import Instruction
from sabir_roles.log import Log
from sabir_roles.manager import MessageManager
from sabir_roles.message import RoledMessage
from sabir_roles.roles import (
    MESSAGE_FIELDS,
    UNSET,
    MessageField,
    MessageFlag,
    MessageRole,
    SenderRecipient,
    validate_sender_recipient,
)
from sabir_roles.system import System
from sabir_roles.templates import environment

__all__ = [
    "MESSAGE_FIELDS",
    "UNSET",
    "ActionRequest",
    "ActionResponse",
    "AssistantResponse",
    "Instruction",
    "Log",
    "MessageField",
    "MessageFlag",
    "MessageManager",
    "MessageRole",
    "RoleError",
    "RoledMessage",
    "SenderRecipient",
    "System",
    "TemplateFailed",
    "environment",
    "validate_sender_recipient",
]
