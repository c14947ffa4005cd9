"""AssistantResponse: a model's answer, with the raw data of the response."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import sabir
from jinja2 import Template
from pydantic import BaseModel
from sabir import Adapter, Message, Reply
from sabir.authoring import encode_json, one_line

from sabir_roles.content import json_copy
from sabir_roles.errors import RoleError
from sabir_roles.message import RoledMessage
from sabir_roles.roles import MessageRole, SenderRecipient


class AssistantResponse(RoledMessage):
    """A model's answer: its text is `response`, and the data from which it was created is `model_response`.

    >>> import sabir_roles
    >>> sabir_roles.AssistantResponse.create("Good morning!").to_message().text
    'Good morning!'
    """

    keys: ClassVar = ("assistant_response",)
    payload_kind: ClassVar = "parts"
    side: ClassVar = "assistant"
    stored_as: ClassVar = "AssistantResponse"
    own_template: ClassVar = "assistant_response.jinja2"
    own_people: ClassVar = (MessageRole.ASSISTANT, MessageRole.ASSISTANT, MessageRole.USER)

    @property
    def response(self) -> str:
        """The text of the answer; "" if there is none. A value that is set is converted to a string; None and empty
        values become "".
        """
        return self.content.get("assistant_response") or ""

    @response.setter
    def response(self, text: str) -> None:
        self.content["assistant_response"] = str(text) if text else ""

    @property
    def model_response(self) -> Any:  # an object, or an array of them
        """The data from which the answer was created, as JSON: a vendor's response, a reply, a model, a mapping or a
        list. {} for any other answer. An answer that MessageManager adds with a reply has the reply without its
        messages, if it is the first answer of the reply.
        """
        return self.metadata.get("model_response", {})

    @classmethod
    def _read_content(cls, message: Message) -> dict[str, Any]:
        return {"assistant_response": message.text}

    @classmethod
    def create(
        cls,
        assistant_response: object,
        sender: SenderRecipient | None = None,
        recipient: SenderRecipient | None = None,
        template: Template | str | None = None,
        *,
        adapter: str | Adapter | None = None,
        dialect: str | None = None,
        **content: Any,
    ) -> "AssistantResponse":
        """Return an answer from a text, a `sabir.Reply`, a pydantic model, a mapping, a list, or another object.

        The text of the answer is the JSON of a mapping, model or list, and `str()` of another object. An empty value is
        the text "". To decode a complete response of a vendor (a mapping, an object of the vendor's SDK, or the body as
        text or bytes), pass `adapter`, an adapter or a model string such as "openai:gpt-5", or `dialect`, a full name
        such as "openai.chat". Without `sender`, the sender of a reply or decoded response is the policy of its
        first message with parts.

        Raises RoleError if both `adapter` and `dialect` are passed, if JSON cannot represent the object, or if `str()`
        fails. Raises ResponseInvalid for a response that the dialect cannot decode, the CallError that a response
        reports, and the errors of `sabir.adapter` for a model string and of `sabir.dialect` for a dialect.
        """
        answer = _decode_answer(assistant_response, _choose_dialect(adapter, dialect))
        values, speaker = {"assistant_response": answer.text, **content}, answer.speaker if sender is None else sender
        message = cls._new(values, speaker, recipient, template, metadata=answer.metadata)
        if answer.source is not None:
            message._source = answer.source.model_copy(update={"id": message.id})
        return message

    def update(  # type: ignore[override]
        self,
        assistant_response: object = None,
        sender: SenderRecipient | None = None,
        recipient: SenderRecipient | None = None,
        template: Template | str | None = None,
        *,
        adapter: str | Adapter | None = None,
        dialect: str | None = None,
        **content: Any,
    ) -> None:
        """Change the fields that are passed. None means not passed. A new answer replaces the text and
        `model_response`.

        The arguments and exceptions are otherwise the same as in `create`.
        """
        if assistant_response is None:
            self._change(content, sender, recipient, template)
            return
        answer = _decode_answer(assistant_response, _choose_dialect(adapter, dialect))
        values, speaker = {"assistant_response": answer.text, **content}, answer.speaker if sender is None else sender
        self._change(values, speaker, recipient, template)
        self._source = answer.source or self._source
        others = {name: value for name, value in self.metadata.items() if name != "model_response"}
        self.metadata = {**others, **answer.metadata}


class _DecodedAnswer(NamedTuple):
    """The text of an answer, its metadata (with `model_response`), and the messages of a reply that have parts."""

    text: str
    metadata: dict[str, Any]
    messages: Sequence[Message] = ()

    @property
    def speaker(self) -> str | None:
        """The policy of the reply's first message; None if the answer is not from a reply."""
        return self.messages[0].policy if self.messages else None

    @property
    def source(self) -> Message | None:
        """The core message of the answer, if the reply has exactly one message with parts; otherwise None."""
        return self.messages[0] if len(self.messages) == 1 else None


def _choose_dialect(adapter: str | Adapter | None, dialect: str | None) -> str | None:
    """Return the full name of the dialect that decodes an answer, or None if no dialect was named."""
    if adapter is None:
        return dialect
    if dialect is not None:
        raise RoleError("both adapter= and dialect= name a dialect; pass one of them")
    return (sabir.adapter(adapter) if isinstance(adapter, str) else adapter).target.dialect


def _decode_answer(answer: object, dialect: str | None) -> _DecodedAnswer:
    """Return the text, the metadata and the messages for an answer of any type. `dialect` decodes a vendor's
    response.
    """
    if isinstance(answer, Reply):
        return _answer_from_reply(answer, answer.model_dump(mode="json"))
    if dialect is not None:
        body = answer if isinstance(answer, str | bytes) else encode_json(json_copy(answer))
        return _answer_from_reply(sabir.dialect(dialect).decode(body), json.loads(body))
    if isinstance(answer, str) or not answer:
        return _DecodedAnswer(answer if isinstance(answer, str) else "", {})
    if isinstance(answer, Mapping | BaseModel | list):
        raw = json_copy(answer)
        return _DecodedAnswer(encode_json(raw)[:], {"model_response": raw})
    try:
        return _DecodedAnswer(str(answer), {})
    except Exception as error:
        reason = one_line(f"{type(error).__name__}: {error}", 120)
        raise RoleError(f"the answer, of type {type(answer).__name__}, has no text: {reason}; pass the text") from None


def _answer_from_reply(reply: Reply, raw: Any) -> _DecodedAnswer:
    messages = [each for each in reply.messages if each.kind == "parts"]
    return _DecodedAnswer(reply.text, {} if raw is None else {"model_response": raw}, messages)
