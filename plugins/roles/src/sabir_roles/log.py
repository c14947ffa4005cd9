"""Stored messages: an immutable log of a message at one moment, and core messages as JSON."""

import json
from datetime import datetime
from typing import Any

import sabir
from pydantic import Field
from sabir import Message
from sabir.authoring import Frozen, FrozenDict, JSONObjectDocumentField, one_line

from sabir_roles.errors import RoleError


class Log(Frozen):
    """A message at one moment, immutable: `content` equals its `to_dict()`."""

    id: str
    created_at: datetime
    content_json: JSONObjectDocumentField = Field(alias="content")

    @property
    def content(self) -> FrozenDict:
        """All fields of the message."""
        content: FrozenDict = self.content_json.view()
        return content


def dump_message(message: Message) -> Any:  # a JSON object
    """A core message as JSON, including a newer writer's fields."""
    return message.model_dump(mode="json")


def load_message(stored: object) -> Message:
    """The stored message; raises RoleError for anything else."""
    try:
        return sabir.loads(json.dumps([stored]))[0]
    except (ValueError, TypeError) as error:
        raise RoleError(one_line(f"the stored message is none: {error}")) from None
