"""Former names that published plugins still use. Each former name still works and means the object with the new name.

RENAMED   a name of `sabir.authoring` ──▶ its new name          METHODS   class ──▶ a method's name ──▶ its new name
"""

from collections.abc import Mapping
from typing import TypeVar

Class = TypeVar("Class", bound=type)

RENAMED: Mapping[str, str] = {
    "fields": "object_or_empty", "first_count": "first_whole_number", "left_over": "unknown_fields",
    "text": "text_or_empty", "without": "without_fields",
}  # fmt: skip
METHODS: Mapping[str, Mapping[str, str]] = {
    "DataURL": {"sniffed": "with_sniffed_type"},
    "History": {
        "answer": "add_result", "choose": "set_option_choice", "hold_to": "set_response_format", "listed": "list_at",
        "lose": "add_loss", "lose_unknown": "add_losses_of_unknown_fields", "put_extra": "set_extra_body",
        "say": "add_message",
    },
    "MediaPart": {"read": "from_wire"},
    "RequestScope": {"take": "setting"},
    "SDKProvider": {"given": "connect_user_client", "own": "connect_own_clients"},
}  # fmt: skip


def callable_by_old_names(cls: Class) -> Class:
    """Decorate a class so that its methods in METHODS can also be called by their old names."""
    for old, new in METHODS[cls.__name__].items():
        setattr(cls, old, vars(cls)[new])
    return cls


def defined_by_old_names(cls: type, base: type) -> None:
    """Let a subclass of `base` override renamed methods by their old names: copy each to its new name."""
    for old, new in METHODS[base.__name__].items():
        if old in vars(cls):
            setattr(cls, new, vars(cls)[old])
