"""The shape of a stored conversation as plain frozen pydantic models: what one validation of it costs at least."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, defer_build=True)


class _TextPart(_Frozen):
    kind: Literal["text"]
    text: str


class _Parts(_Frozen):
    kind: Literal["parts"]
    parts: tuple[_TextPart, ...]


class _Call(_Frozen):
    kind: Literal["option_call"]
    invocation_id: str
    option_name: str
    arguments: dict[str, Any]


class _Result(_Frozen):
    kind: Literal["option_result"]
    invocation_id: str
    option_name: str
    result: Any


class StoredMessage(_Frozen):
    """One message at rest."""

    schema_number: int = Field(alias="schema")
    id: str
    policy: str
    payload: Annotated[_Parts | _Call | _Result, Field(discriminator="kind")]
