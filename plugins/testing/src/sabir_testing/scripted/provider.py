"""A provider whose requests are real and whose answers are scripted.

    messages ─▶ the dialect of the provider that is stood for ─▶ bytes + losses ─▶ script ─▶ reply

So losses, `strict`, vendor settings and the errors of all of these are what they would be with that provider.
"""

from collections.abc import Mapping, Sequence

from sabir import DecodedHistory, ModelInfo, Target
from sabir.authoring import (
    SABIR_API,
    Access,
    DecodeScope,
    Dialect,
    JSONValue,
    LossLog,
    Provider,
    RequestScope,
    Tables,
    Turn,
    TurnScope,
)
from sabir.discovery.registry import default_registry

from sabir_testing.scripted.plain import NAME, PlainDialect
from sabir_testing.scripted.wire import AnswerHalf, ScriptedConnection


class StandInDialect(AnswerHalf):
    """Another dialect's requests, with scripted answers."""

    def __init__(self, requests: Dialect) -> None:
        self._requests = requests

    @property
    def name(self) -> str:
        """The other dialect's."""
        return self._requests.name

    @property
    def tables(self) -> Tables:
        """The other dialect's."""
        return self._requests.tables

    @property
    def messages_field(self) -> str:
        """The other dialect's."""
        return self._requests.messages_field

    @property
    def streaming_fields(self) -> Mapping[str, JSONValue]:
        """The other dialect's."""
        return self._requests.streaming_fields

    def path(self, target: Target, *, streaming: bool) -> str:
        """The other dialect's."""
        return self._requests.path(target, streaming=streaming)

    def family(self, model: str) -> str:
        """The other dialect's."""
        return self._requests.family(model)

    def encode_turn(self, turn: Turn, scope: TurnScope, losses: LossLog) -> Sequence[JSONValue]:
        """The other dialect's."""
        return self._requests.encode_turn(turn, scope, losses)

    def encode_request(self, scope: RequestScope) -> Mapping[str, JSONValue]:
        """The other dialect's."""
        return self._requests.encode_request(scope)

    def decode_history(self, body: bytes, scope: DecodeScope) -> DecodedHistory:
        """The other dialect's."""
        return self._requests.decode_history(body, scope)


class ScriptedProvider:
    """Stands for a provider, or for none; its connection is a script."""

    api_version = SABIR_API
    key_variables = ()

    def __init__(self, provider: Provider | None, connection: ScriptedConnection) -> None:
        self._provider = provider
        self._connection = connection

    @property
    def name(self) -> str:
        """The other provider's."""
        return self._provider.name if self._provider else NAME

    @property
    def dialects(self) -> tuple[str, ...]:
        """The other provider's."""
        return self._provider.dialects if self._provider else ("plain",)

    def dialect(self, short_name: str) -> StandInDialect | PlainDialect:
        """The other provider's, with scripted answers."""
        return StandInDialect(self._provider.dialect(short_name)) if self._provider else PlainDialect()

    def endpoint(self, access: Access) -> str:
        """The other provider's."""
        return self._provider.endpoint(access) if self._provider else f"{NAME}:"

    def connect(self, access: Access) -> ScriptedConnection:
        """The script."""
        return self._connection

    def quirks(self, access: Access) -> frozenset[str]:
        """The other provider's."""
        return self._provider.quirks(access) if self._provider else frozenset()

    def models(self) -> tuple[ModelInfo, ...]:
        """The other provider's."""
        return self._provider.models() if self._provider else ()


def stand_in(model: str, connection: ScriptedConnection) -> tuple[ScriptedProvider, StandInDialect | PlainDialect, str]:
    """Provider, dialect and model name of a string such as `provider:model`; raises what `sabir.adapter` raises."""
    provider_name, _, model_name = model.partition(":")
    if provider_name == NAME:
        plain = ScriptedProvider(None, connection)
        return plain, plain.dialect("plain"), model_name
    name = default_registry.split_model(model)
    provider = ScriptedProvider(default_registry.provider(name.provider), connection)
    return provider, provider.dialect(name.dialect or provider.dialects[0]), name.model
