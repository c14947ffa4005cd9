"""ActionRequest, a model's call of a function, and ActionResponse, the result of the call. Each has the other's id.

ActionRequest ──action_response_id──▶ ActionResponse        one response for each request
              ◀──action_request_id──
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from jinja2 import Template
from sabir import Message, OptionResultPayload, TextPart
from sabir.authoring import describe_kind

from sabir_roles.content import json_copy, watch
from sabir_roles.core_messages import CallContent
from sabir_roles.errors import RoleError
from sabir_roles.message import RoledMessage, check_kind
from sabir_roles.roles import UNSET, MessageRole, SenderRecipient, Unset


class ActionRequest(RoledMessage):
    """A model's call of a function: the name, the arguments, and the id of the response, if there is a response.

    Its core message is an option call.

    >>> import sabir_roles
    >>> request = sabir_roles.ActionRequest.create("weather", {"city": "Oslo"})
    >>> response = sabir_roles.ActionResponse.create(request, output="rain")
    >>> request.is_responded(), response.to_message().result.result
    (True, 'rain')
    """

    keys: ClassVar = ("function", "arguments", "output", "action_request", "action_response_id", "invocation_id")
    payload_kind: ClassVar = "option_call"
    side: ClassVar = "assistant"
    stored_as: ClassVar = "ActionRequest"
    own_template: ClassVar = "action_request.jinja2"
    own_people: ClassVar = (MessageRole.ACTION, MessageRole.ASSISTANT, MessageRole.ACTION)

    @property
    def request(self) -> dict[str, Any]:
        """A copy of the call: {"function": …, "arguments": …}; {} if the content has none.

        Raises RoleError if `action_request` in the content is not an object.
        """
        return _parse_object(json_copy(self.content.get("action_request")))

    @property
    def function(self) -> str:
        """The name of the function; "" if the content has none."""
        return self.request.get("function") or ""

    @property
    def arguments(self) -> dict[str, Any]:
        """A copy of the arguments; {} if the content has none. Raises RoleError if they are not a JSON object."""
        return _parse_object(self.request.get("arguments"))

    @property
    def invocation_id(self) -> str:
        """The id of the call, which the result has too. The id of this message, unless the content has another."""
        return self.content.get("invocation_id") or self.id

    @property
    def action_response_id(self) -> str | None:
        """The id of the ActionResponse, or None without a response. ActionResponse sets it; to change it yourself,
        assign an id or None.
        """
        return self.content.get("action_response_id")

    @action_response_id.setter
    def action_response_id(self, value: str | None) -> None:
        if value is None:
            self.content.pop("action_response_id", None)
        else:
            self.content["action_response_id"] = value

    def is_responded(self) -> bool:
        """Return whether the request has a response."""
        return self.action_response_id is not None

    @classmethod
    def _read_content(cls, message: Message) -> dict[str, Any]:
        call = message.call
        assert call is not None
        request = {"function": call.option_name, "arguments": json_copy(call.arguments)}
        return {"action_request": request, "invocation_id": call.invocation_id}

    def _core_content(self) -> CallContent:
        return CallContent(self.invocation_id, self.function, self.arguments)

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
        """Return an ActionRequest.

        `function` is a name, or a function whose name is used; it is required. `arguments` is a mapping or the JSON
        text of an object; None means {}. The sender is "assistant" and the recipient "action" by default. `content` is
        further content, for the template. Raises RoleError for an invalid argument.
        """
        request = {"function": _function_name(function), "arguments": _parse_object(arguments)}
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
        """Change the fields that are passed. None means not passed. `action_response` becomes the response to this
        request.

        Raises RoleError if the request already has a response, even if this is `action_response`, and for an invalid
        argument.
        """
        if self.is_responded():
            raise RoleError(
                f"the request of {self.function!r} already has a response; create another request to call again"
            )
        if action_response is not None:
            check_kind(action_response, ActionResponse)
        request = self.request
        if function is not None:
            request["function"] = _function_name(function)
        if arguments is not None:
            request["arguments"] = _parse_object(arguments)
        changed = {"action_request": request} if request != self.request else {}
        self._change({**changed, **content}, sender, recipient, template)
        if action_response is not None:
            action_response.update(action_request=self)

    def _content_variables(self) -> dict[str, Any]:
        return {**super()._content_variables(), "function": self.function, "arguments": self.arguments}


class ActionResponse(RoledMessage):
    """The result of an ActionRequest: the function, the arguments, the output, and the id of the request.

    Its core message is an option result. The output may be any JSON value, also None, 0 or "".
    """

    keys: ClassVar = ("function", "arguments", "output", "action_response", "action_request_id", "invocation_id")
    payload_kind: ClassVar = "option_result"
    side: ClassVar = "results"
    stored_as: ClassVar = "ActionResponse"
    own_template: ClassVar = "action_response.jinja2"
    own_people: ClassVar = (MessageRole.ACTION, MessageRole.ACTION, MessageRole.ASSISTANT)

    _request: ActionRequest | None = None
    """The request, if it is known as an object. If the response moves to another request, its `action_response_id` is
    removed.
    """

    @property
    def response(self) -> dict[str, Any]:
        """A copy of the result: {"function": …, "arguments": …, "output": …}; {} if the content has none.

        Raises RoleError if `action_response` in the content is not an object.
        """
        response: dict[str, Any] | None = json_copy(self.content.get("action_response"))
        if response is None or isinstance(response, dict):
            return response or {}
        raise RoleError(f"action_response in content is {ascii(response)[:60]}; expected an object with the output")

    @property
    def function(self) -> str:
        """The name of the function; "" if the content has none."""
        return self.response.get("function") or ""

    @property
    def arguments(self) -> dict[str, Any]:
        """A copy of the arguments; {} if the content has none."""
        return self.response.get("arguments") or {}

    @property
    def output(self) -> Any:  # any JSON value
        """The return value of the function as JSON, or {"error": {…}} if the core message reports an error. None if the
        content has none.
        """
        return self.response.get("output")

    @property
    def action_request_id(self) -> str | None:
        """The id of the ActionRequest; None if it is not known."""
        return self.content.get("action_request_id")

    @property
    def invocation_id(self) -> str:
        """The id of the call: the `invocation_id` of the request. If the content has none, the id of the request, else
        the id of this message.
        """
        return self.content.get("invocation_id") or self.action_request_id or self.id

    @classmethod
    def _read_content(cls, message: Message) -> dict[str, Any]:
        result = message.result
        assert result is not None
        response = {"function": result.option_name, "arguments": {}, "output": _result_output(result)}
        return {"action_response": response, "invocation_id": result.invocation_id}

    def _core_content(self) -> CallContent:
        return CallContent(self.invocation_id, self.function, self.output, is_result=True)

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
        """Return the response to a request, and set the request's `action_response_id`.

        `output` is the return value of the function, which is converted to JSON. `response_model` is an object whose
        attribute `output` replaces the argument `output`. Sender and recipient are by default the recipient and sender
        of the request.

        Raises RoleError if the request is not an ActionRequest or already has a response, if `response_model` has no
        `output`, or if JSON cannot represent the output.
        """
        _check_unanswered(action_request)
        response = cls._new(
            {"action_response": _response_fields(action_request, _choose_output(output, response_model))},
            action_request.recipient if sender is None else sender,
            action_request.sender if recipient is None else recipient,
            template,
        )
        response._link(action_request)
        return response

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
        """Change the fields that are passed. `output` may be None; its default UNSET means not passed.

        With another `action_request`, the response moves to that request and takes its function and arguments. The
        earlier request has no response again, except if this response is a copy, or was loaded without its manager.
        Raises RoleError if that request already has another response, and for the reasons named at `create`.
        """
        if action_request is not None:
            _check_unanswered(action_request, self.id)
        answer = self.response
        if action_request is not None:
            answer |= _response_fields(action_request, answer.get("output"))
        if response_model is not None or not isinstance(output, Unset):
            answer["output"] = _choose_output(output, response_model)
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
        """Link this response with a request that has the same `invocation_id`: each gets the other's id, and the
        response gets the request's arguments. Unlike other changes of content, this does not build the core messages
        again.
        """
        self._request = request
        response = {**self.response, "arguments": request.arguments}
        dict.update(self.content, watch({"action_response": response, "action_request_id": request.id}, self._touch))
        dict.__setitem__(request.content, "action_response_id", self.id)
        self._text = request._text = None

    def _content_variables(self) -> dict[str, Any]:
        return {**super()._content_variables(), **self.response}


def _function_name(function: str | Callable[..., Any] | None) -> str:
    name: object = function
    if callable(function):
        name = getattr(function, "name", None) or getattr(function, "__name__", None)
    if isinstance(name, str) and name:
        return name
    description = "an empty text" if function == "" else describe_kind(function)
    raise RoleError(f"function is {description}; pass the name of a function, or a function with a name")


def _parse_object(arguments: Mapping[str, Any] | str | None) -> dict[str, Any]:
    parsed: object = {} if arguments is None else arguments
    if isinstance(parsed, str):
        try:
            parsed = json.loads(parsed)
        except (ValueError, RecursionError):
            parsed = arguments
    if isinstance(parsed, Mapping):
        return dict(json_copy(dict(parsed)))
    raise RoleError(f"arguments are {describe_kind(arguments)}; pass a mapping, or the JSON text of an object")


def _check_unanswered(request: ActionRequest, response_id: str | None = None) -> None:
    check_kind(request, ActionRequest)
    if request.action_response_id not in (None, response_id):
        raise RoleError(f"the request of {request.function!r} already has a response; update that response instead")


def _response_fields(request: ActionRequest, output: object) -> dict[str, Any]:
    return {"function": request.function, "arguments": request.arguments, "output": json_copy(output)}


def _choose_output(output: object, response_model: object) -> object:
    if response_model is None:
        return None if isinstance(output, Unset) else output
    if hasattr(response_model, "output"):
        return response_model.output
    kind = type(response_model).__name__
    remedy = "pass output= instead of response_model="
    raise RoleError(f"response_model, of type {kind}, has no attribute `output`; {remedy}")


def _result_output(result: OptionResultPayload) -> Any:  # any JSON value
    """Return the output of a result: {"error": {…}} for an error, the text of a single text part, other parts as JSON,
    or else the result's value.
    """
    if result.is_error:
        error = {"type": result.error_type, "message": result.error_message, "retryable": result.retryable}
        return {"error": {name: value for name, value in error.items() if value is not None}}
    if len(result.parts) == 1 and isinstance(result.parts[0], TextPart):
        return result.parts[0].text
    return [part.model_dump(mode="json") for part in result.parts] or json_copy(result.result)
