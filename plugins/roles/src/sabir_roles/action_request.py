"""ActionRequest: a call of a function, and whether it was answered (LA-45 … LA-49, LA-55)."""

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from jinja2 import Template
from sabir.vocabulary.constructors import name_kind

from sabir_roles.base import MessageRole, SenderRecipient
from sabir_roles.content import plain
from sabir_roles.errors import RoleError
from sabir_roles.message import RoledMessage

if TYPE_CHECKING:
    from sabir_roles.action_response import ActionResponse


class ActionRequest(RoledMessage):
    """A call: the name of a function, its arguments, and the id of the response once there is one.

    It is an option call of the vocabulary; `invocation_id` is what pairs it with its result there.
    """

    keys: ClassVar = ("function", "arguments", "output", "action_request", "action_response_id", "invocation_id")
    payload_kind: ClassVar = "option_call"
    own_template: ClassVar = "action_request.jinja2"

    @property
    def request(self) -> dict[str, Any]:
        """A copy of function and arguments."""
        return _object(plain(self.content.get("action_request")))

    @property
    def function(self) -> str:
        """The name of the function; "" where none is said."""
        return self.request.get("function") or ""

    @property
    def arguments(self) -> dict[str, Any]:
        """A copy of the arguments."""
        return _object(self.request.get("arguments"))

    @property
    def invocation_id(self) -> str:
        """What pairs the call with its result: the id that its maker gave, else this message's."""
        return self.content.get("invocation_id") or self.id

    @property
    def action_response_id(self) -> str | None:
        """The id of the response, or None."""
        return self.content.get("action_response_id")

    @action_response_id.setter
    def action_response_id(self, value: str | None) -> None:
        if value is None:
            self.content.pop("action_response_id", None)
        else:
            self.content["action_response_id"] = value

    def is_responded(self) -> bool:
        """Whether a response is linked."""
        return self.action_response_id is not None

    @classmethod
    def create(
        cls,
        function: str | Callable[..., Any] | None = None,
        arguments: Mapping[str, Any] | str | None = None,
        sender: SenderRecipient | None = None,
        recipient: SenderRecipient | None = None,
        template: Template | str | None = None,
        **content: Any,
    ) -> "ActionRequest":
        """A call of a function, by its name or itself; RoleError for arguments that are no object (D-54)."""
        request = {"function": _named(function), "arguments": _object(arguments)}
        return cls(
            content={**content, "action_request": request},
            role=MessageRole.ACTION,
            sender=MessageRole.ASSISTANT if sender is None else sender,
            recipient=MessageRole.ACTION if recipient is None else recipient,
            template=cls.own_template if template is None else template,
        )

    def update(  # type: ignore[override]
        self,
        function: str | Callable[..., Any] | None = None,
        arguments: Mapping[str, Any] | str | None = None,
        sender: SenderRecipient | None = None,
        recipient: SenderRecipient | None = None,
        action_response: "ActionResponse | None" = None,
        template: Template | str | None = None,
        **content: Any,
    ) -> None:
        """Change what is given, or link the response; RoleError where one is linked already."""
        if self.is_responded():
            raise RoleError(f"the request of {self.function!r} is answered; create another to call it again")
        _check_response(action_response)
        request = self.request
        if function is not None:
            request["function"] = _named(function)
        if arguments is not None:
            request["arguments"] = _object(arguments)
        changed = {"action_request": request} if request != self.request else {}
        self._change({**changed, **content}, sender, recipient, template)
        if action_response is not None:
            action_response.update(action_request=self)

    def _said(self) -> dict[str, Any]:
        return {**super()._said(), "function": self.function, "arguments": self.arguments}


def _check_response(response: object) -> None:
    from sabir_roles.action_response import ActionResponse

    if not isinstance(response, ActionResponse | None):
        raise RoleError(f"{name_kind(response)} is no ActionResponse; give the one that answers the request")


def _named(function: str | Callable[..., Any] | None) -> str:
    name: object = function
    if callable(function):
        name = getattr(function, "name", None) or getattr(function, "__name__", None)
    if isinstance(name, str) and name:
        return name
    given = "an empty text" if function == "" else name_kind(function)
    raise RoleError(f"{given} names no function; give its name, or a function that has one")


def _object(arguments: Mapping[str, Any] | str | None) -> dict[str, Any]:
    found: object = {} if arguments is None else arguments
    if isinstance(found, str):
        try:
            found = json.loads(found)
        except (ValueError, RecursionError):
            found = arguments
    if isinstance(found, Mapping):
        made: dict[str, Any] = plain(dict(found))
        return made
    raise RoleError(f"arguments are {name_kind(arguments)}; give a mapping, or the JSON text of an object")
