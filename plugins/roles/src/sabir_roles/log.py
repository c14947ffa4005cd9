"""Immutable copies of messages, and core messages as JSON."""

import json
from datetime import datetime
from typing import Any

import sabir
from pydantic import Field
from sabir import Message
from sabir.authoring import Frozen, FrozenDict, JSONObjectDocumentField, one_line

from sabir_roles.errors import RoleError


class Log(Frozen):
    """An immutable copy of an editable message at one moment. `RoledMessage.to_log` creates it.

    `id` and `created_at` are the message's id and the message's time of creation. `content` is the result of the
    message's `to_dict`.
    """

    id: str
    created_at: datetime
    content_json: JSONObjectDocumentField = Field(alias="content")

    @property
    def content(self) -> FrozenDict:
        """The result of the message's `to_dict`."""
        content: FrozenDict = self.content_json.view()
        return content


def dump_message(message: Message) -> Any:  # a JSON object
    """Return a core message as a JSON object, which `load_message` reads."""
    return message.model_dump(mode="json")


def load_message(stored: object) -> Message:
    """Return the core message from the result of `dump_message`. Raises RoleError for anything else."""
    try:
        return sabir.loads(json.dumps([stored]))[0]
    except (ValueError, TypeError) as error:
        raise RoleError(one_line(f"the stored message cannot be read: {error}")) from None
