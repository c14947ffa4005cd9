"""A message at one moment: what `to_log` gives, which later edits do not reach."""

from datetime import datetime

from pydantic import Field
from sabir.models import Frozen
from sabir.values import FrozenDict, JSONObjectDocumentField, object_view


class Log(Frozen):
    """A message at one moment, immutable: `content` equals its `to_dict()` (D-52)."""

    id: str
    created_at: datetime
    content_json: JSONObjectDocumentField = Field(alias="content")

    @property
    def content(self) -> FrozenDict:
        """All fields of the message."""
        return object_view(self.content_json)
