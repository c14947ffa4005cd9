"""ActionRequest, a call of a function, and ActionResponse, its result: linked both ways while both live.

ActionRequest ──action_response_id──▶ ActionResponse        one response a request
              ◀──action_request_id──
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from jinja2 import Template
from sabir import Message, OptionResultPayload, TextPart
from sabir.authoring import describe_kind

from sabir_roles.base import UNSET, MessageRole, SenderRecipient, Unset
from sabir_roles.content import hold, plain
from sabir_roles.errors import RoleError
from sabir_roles.message import RoledMessage, check_kind
from sabir_roles.vocabulary import Called


class ActionRequest(RoledMessage):
    """A call: the name of a function, its arguments, and the id of the response once there is one.

    It stands for a core option call; `invocation_id` pairs it with its result.
    """

    keys: ClassVar = ("function", "arguments", "output", "action_request", "action_response_id", "invocation_id")
    payload_kind: ClassVar = "option_call"
    side: ClassVar = "assistant"
    stored_as: ClassVar = "ActionRequest"
    own_template: ClassVar = "action_request.jinja2"
    own_people: ClassVar = (MessageRole.ACTION, MessageRole.ASSISTANT, MessageRole.ACTION)

    @property
    def request(self) -> dict[str, Any]:
        """A copy of function and arguments."""
        return _object(plain(self.content.get("action_request")))

    @property
    def function(self) -> str:
        """The name of the function; "" if there is none."""
        return self.request.get("function") or ""

    @property
    def arguments(self) -> dict[str, Any]:
        """A copy of the arguments."""
        return _object(self.request.get("arguments"))

    @property
    def invocation_id(self) -> str:
        """The id that pairs the call with its result: the given one, else this message's id."""
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
    def _read(cls, message: Message) -> dict[str, Any]:
        call = message.call
        assert call is not None
        request = {"function": call.option_name, "arguments": plain(call.arguments)}
        return {"action_request": request, "invocation_id": call.invocation_id}

    def _stated(self) -> Called:
        return Called(self.invocation_id, self.function, self.arguments)

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
        """A call of a function, given by name or as a callable.

        Raises RoleError for arguments that are not an object.
        """
        request = {"function": _named(function), "arguments": _object(arguments)}
        return cls._new({**content, "action_request": request}, sender, recipient, template)

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
        """Change the given fields, or link the response; raises RoleError if one is already linked."""
        if self.is_responded():
            raise RoleError(f"the request of {self.function!r} is answered; create another to call it again")
        if action_response is not None:
            check_kind(action_response, ActionResponse)
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


class ActionResponse(RoledMessage):
    """The result of a function: its name, the arguments, the output, and the id of the request.

    It stands for a core option result. `output` may be any JSON value, falsy ones included.
    """

    keys: ClassVar = ("function", "arguments", "output", "action_response", "action_request_id", "invocation_id")
    payload_kind: ClassVar = "option_result"
    side: ClassVar = "results"
    stored_as: ClassVar = "ActionResponse"
    own_template: ClassVar = "action_response.jinja2"
    own_people: ClassVar = (MessageRole.ACTION, MessageRole.ACTION, MessageRole.ASSISTANT)

    _request: ActionRequest | None = None
    """The request, while both live in one process; its link is kept in step."""

    @property
    def response(self) -> dict[str, Any]:
        """A copy of function, arguments and output."""
        found: dict[str, Any] | None = plain(self.content.get("action_response"))
        if found is None or isinstance(found, dict):
            return found or {}
        raise RoleError(f"content has {ascii(found)[:60]} for action_response; set an object with the output")

    @property
    def function(self) -> str:
        """The name of the function."""
        return self.response.get("function") or ""

    @property
    def arguments(self) -> dict[str, Any]:
        """A copy of the arguments."""
        return self.response.get("arguments") or {}

    @property
    def output(self) -> Any:  # any JSON value
        """The function's return value."""
        return self.response.get("output")

    @property
    def action_request_id(self) -> str | None:
        """The id of the request; None if it is not known."""
        return self.content.get("action_request_id")

    @property
    def invocation_id(self) -> str:
        """The id that pairs the result with its call."""
        return self.content.get("invocation_id") or self.action_request_id or self.id

    @classmethod
    def _read(cls, message: Message) -> dict[str, Any]:
        result = message.result
        assert result is not None
        response = {"function": result.option_name, "arguments": {}, "output": _shown(result)}
        return {"action_response": response, "invocation_id": result.invocation_id}

    def _stated(self) -> Called:
        return Called(self.invocation_id, self.function, self.output, is_result=True)

    @classmethod
    def create(
        cls,
        action_request: ActionRequest,
        output: Any = None,  # any JSON value
        response_model: Any = None,  # anything with an `output`
        sender: SenderRecipient | None = None,
        recipient: SenderRecipient | None = None,
        template: Template | str | None = None,
    ) -> "ActionResponse":
        """The response to a request, which is linked both ways; `response_model.output` overrides `output`.

        Raises RoleError if the request is invalid or already answered.
        """
        _check(action_request)
        made = cls._new(
            {"action_response": _answer(action_request, _output(output, response_model))},
            action_request.recipient if sender is None else sender,
            action_request.sender if recipient is None else recipient,
            template,
        )
        made._link(action_request)
        return made

    def update(  # type: ignore[override]
        self,
        action_request: ActionRequest | None = None,
        output: Any = UNSET,
        response_model: Any = None,
        sender: SenderRecipient | None = None,
        recipient: SenderRecipient | None = None,
        template: Template | str | None = None,
        **content: Any,
    ) -> None:
        """Change the given fields; if the response moves to another request, the earlier one is unanswered again."""
        if action_request is not None:
            _check(action_request, self.id)
        answer = self.response
        if action_request is not None:
            answer |= _answer(action_request, answer.get("output"))
        if response_model is not None or not isinstance(output, Unset):
            answer["output"] = _output(output, response_model)
        changed = {"action_response": answer} if answer != self.response else {}
        self._change({**changed, **content}, sender, recipient, template)
        if action_request is not None:
            self._link(action_request)

    def _link(self, request: ActionRequest) -> None:
        if self._request is not None and self._request is not request:
            self._request.action_response_id = None
        self._request = request
        if self.action_request_id != request.id or self.invocation_id != request.invocation_id:
            self.content.update(action_request_id=request.id, invocation_id=request.invocation_id)
        if request.action_response_id != self.id:
            request.action_response_id = self.id

    def answers(self, request: ActionRequest) -> None:
        """Link with a request of the same invocation id; this does not change the core message."""
        self._request = request
        response = {**self.response, "arguments": request.arguments}
        dict.update(self.content, hold({"action_response": response, "action_request_id": request.id}, self._touch))
        dict.__setitem__(request.content, "action_response_id", self.id)
        self._text = request._text = None

    def _said(self) -> dict[str, Any]:
        return {**super()._said(), **self.response}


def _named(function: str | Callable[..., Any] | None) -> str:
    name: object = function
    if callable(function):
        name = getattr(function, "name", None) or getattr(function, "__name__", None)
    if isinstance(name, str) and name:
        return name
    given = "an empty text" if function == "" else describe_kind(function)
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
    raise RoleError(f"arguments are {describe_kind(arguments)}; give a mapping, or the JSON text of an object")


def _check(request: ActionRequest, response_id: str | None = None) -> None:
    check_kind(request, ActionRequest)
    if request.action_response_id not in (None, response_id):
        raise RoleError(f"the request of {request.function!r} is answered; update its response instead")


def _answer(request: ActionRequest, output: object) -> dict[str, Any]:
    return {"function": request.function, "arguments": request.arguments, "output": plain(output)}


def _output(output: object, response_model: object) -> object:
    if response_model is None:
        return None if isinstance(output, Unset) else output
    if hasattr(response_model, "output"):
        return response_model.output
    raise RoleError(f"response_model, of type {type(response_model).__name__}, has no `output`; give output= instead")


def _shown(result: OptionResultPayload) -> Any:  # any JSON value
    """The output for a result: its value, its text, its parts as JSON, or its error as an object."""
    if result.is_error:
        said = {"type": result.error_type, "message": result.error_message, "retryable": result.retryable}
        return {"error": {name: value for name, value in said.items() if value is not None}}
    if len(result.parts) == 1 and isinstance(result.parts[0], TextPart):
        return result.parts[0].text
    return [part.model_dump(mode="json") for part in result.parts] or plain(result.result)
