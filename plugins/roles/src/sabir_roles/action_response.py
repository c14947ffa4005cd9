"""ActionResponse: what a function gave back, linked with the request that it answers (LA-50 … LA-54, LA-57)."""

from typing import Any, ClassVar

from jinja2 import Template

from sabir_roles.action_request import ActionRequest
from sabir_roles.base import UNSET, MessageRole, SenderRecipient, Unset
from sabir_roles.content import hold, plain
from sabir_roles.errors import RoleError
from sabir_roles.message import RoledMessage


class ActionResponse(RoledMessage):
    """What a function gave back: its name, the arguments, the output, and the id of the request.

    It is an option result of the vocabulary. `output` may be any JSON value, falsy ones included.
    """

    keys: ClassVar = ("function", "arguments", "output", "action_response", "action_request_id", "invocation_id")
    payload_kind: ClassVar = "option_result"
    own_template: ClassVar = "action_response.jinja2"

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
        """What the function gave back."""
        return self.response.get("output")

    @property
    def action_request_id(self) -> str | None:
        """The id of the request; None where no request is known."""
        return self.content.get("action_request_id")

    @property
    def invocation_id(self) -> str:
        """What pairs the result with its call."""
        return self.content.get("invocation_id") or self.action_request_id or self.id

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
        """The response to a request, which is linked both ways; `response_model.output` wins over `output` (D-32).

        RoleError where the request is none, or answered already.
        """
        _check(action_request)
        made = cls(
            content={"action_response": _answer(action_request, _output(output, response_model))},
            role=MessageRole.ACTION,
            sender=action_request.recipient if sender is None else sender,
            recipient=action_request.sender if recipient is None else recipient,
            template=cls.own_template if template is None else template,
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
        """Change what is given; moved to another request, the earlier one is unanswered again (D-55)."""
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
        """Link with a request of the same invocation id; nothing that a message of the vocabulary holds changes."""
        self._request = request
        response = {**self.response, "arguments": request.arguments}
        dict.update(self.content, hold({"action_response": response, "action_request_id": request.id}, self._touch))
        dict.__setitem__(request.content, "action_response_id", self.id)
        self._text = request._text = None

    def _said(self) -> dict[str, Any]:
        return {**super()._said(), **self.response}


def _check(request: object, response_id: str | None = None) -> None:
    if not isinstance(request, ActionRequest):
        raise RoleError(f"a value of type {type(request).__name__} is no ActionRequest; give the one that is answered")
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
