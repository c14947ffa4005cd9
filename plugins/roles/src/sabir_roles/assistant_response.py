"""AssistantResponse: what a model said, with the raw data that it came in (LA-39 … LA-44)."""

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from jinja2 import Template
from pydantic import BaseModel
from sabir.base.errors import one_line
from sabir.base.values import encode_json
from sabir.vocabulary.reply import Reply

from sabir_roles.base import MessageRole, SenderRecipient
from sabir_roles.content import plain
from sabir_roles.errors import RoleError
from sabir_roles.message import RoledMessage


class AssistantResponse(RoledMessage):
    """What a model said. `response` is its text, `model_response` the raw data, {} where there is none."""

    keys: ClassVar = ("assistant_response",)
    payload_kind: ClassVar = "parts"
    own_template: ClassVar = "assistant_response.jinja2"

    @property
    def response(self) -> str:
        """The text; "" where there is none."""
        return self.content.get("assistant_response") or ""

    @response.setter
    def response(self, text: str) -> None:
        self.content["assistant_response"] = str(text) if text else ""

    @property
    def model_response(self) -> Any:  # an object, or an array of them
        """The raw data that the answer came in; {} where there is none."""
        return self.metadata.get("model_response", {})

    @classmethod
    def create(
        cls,
        assistant_response: object,
        sender: SenderRecipient | None = None,
        recipient: SenderRecipient | None = None,
        template: Template | str | None = None,
        *,
        dialect: str | None = None,
        **content: Any,
    ) -> "AssistantResponse":
        """An answer from a text, a Reply, a model, a mapping, a list of those, or anything else by its `str`.

        Data that no dialect is named for is kept as it is, and its JSON is the text: no vendor's shape is guessed
        (D-58). With `dialect`, for example that of `adapter.target`, its plugin decodes a whole response,
        which may be the text of its body too.
        """
        text, raw, reply = _read(assistant_response, dialect)
        said = [each for each in reply.messages if each.kind == "parts"] if reply else []
        speaker = said[0].policy if said else MessageRole.ASSISTANT
        made = cls(
            content={"assistant_response": text, **content},
            role=MessageRole.ASSISTANT,
            sender=speaker if sender is None else sender,
            recipient=MessageRole.USER if recipient is None else recipient,
            template=cls.own_template if template is None else template,
            metadata={} if raw is None else {"model_response": raw},
        )
        if len(said) == 1:
            made._source = said[0].model_copy(update={"id": made.id})
        return made

    def update(  # type: ignore[override]
        self,
        assistant_response: object = None,
        sender: SenderRecipient | None = None,
        recipient: SenderRecipient | None = None,
        template: Template | str | None = None,
        *,
        dialect: str | None = None,
        **content: Any,
    ) -> None:
        """Change what is given; a new answer replaces the text and the raw data (D-57)."""
        if assistant_response is None:
            self._change(content, sender, recipient, template)
            return
        text, raw, reply = _read(assistant_response, dialect)
        said = [each for each in reply.messages if each.kind == "parts"] if reply else []
        speaker = said[0].policy if said and sender is None else sender
        self._change({"assistant_response": text, **content}, speaker, recipient, template)
        if len(said) == 1:
            self._source = said[0]
        self.metadata = {
            **{name: value for name, value in self.metadata.items() if name != "model_response"},
            **({} if raw is None else {"model_response": raw}),
        }


def _read(given: object, dialect: str | None) -> tuple[str, Any, Reply | None]:
    """The text of an answer, its raw data, and the reply that it is."""
    if dialect is not None and not isinstance(given, Reply):
        import sabir

        body = given if isinstance(given, str | bytes) else encode_json(plain(given))
        reply = sabir.dialect(dialect).decode(body)
        return reply.text, json.loads(body), reply
    if isinstance(given, Reply):
        return given.text, given.model_dump(mode="json"), given
    if isinstance(given, str) or not given:
        return given if isinstance(given, str) else "", None, None
    if isinstance(given, Mapping | BaseModel | list):
        raw = plain(given)
        return encode_json(raw)[:], raw, None
    try:
        return str(given), None, None
    except Exception as error:
        reason = one_line(f"{type(error).__name__}: {error}", 120)
        raise RoleError(f"the answer, of type {type(given).__name__}, has no text: {reason}; give its text") from None
