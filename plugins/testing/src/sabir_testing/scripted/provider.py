"""A provider whose requests are real and whose answers are scripted.

    messages ─▶ the dialect of the provider that is stood for ─▶ bytes + losses ─▶ script ─▶ reply

So losses, `strict`, vendor settings and the errors of all of these are what they would be with that provider.
"""

from typing import Any, cast

from sabir import ModelInfo
from sabir.authoring import SABIR_API, Access, Dialect, Provider
from sabir.discovery import default_registry

from sabir_testing.scripted.plain import NAME, PLAIN
from sabir_testing.scripted.wire import ScriptedConnection, with_scripted_answers


class PlainProvider:
    """Who is stood for where nobody is."""

    name = NAME
    dialects = ("plain",)
    request_ids = ()

    def dialect(self, short_name: str) -> Dialect:
        """The plain one."""
        return PLAIN

    def endpoint(self, access: Access) -> str:
        """Nowhere."""
        return f"{NAME}:"

    def quirks(self, access: Access) -> frozenset[str]:
        """None."""
        return frozenset()

    def models(self) -> tuple[ModelInfo, ...]:
        """None is known."""
        return ()


class ScriptedProvider:
    """Stands for a provider; its connection is a script, and it needs no key."""

    api_version = SABIR_API
    credentials = ()

    def __init__(self, provider: Provider | PlainProvider, connection: ScriptedConnection) -> None:
        self._provider = provider
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        """The other provider's."""
        return getattr(self._provider, name)

    def dialect(self, short_name: str) -> Dialect:
        """The other provider's, with scripted answers."""
        return with_scripted_answers(self._provider.dialect(short_name))

    def connect(self, access: Access) -> ScriptedConnection:
        """The script."""
        return self._connection


def stand_in(model: str, connection: ScriptedConnection) -> tuple[Provider, Dialect, str]:
    """Provider, dialect and model name of a string such as `provider:model`; raises what `sabir.adapter` raises."""
    provider_name, _, model_name = model.partition(":")
    if provider_name == NAME:
        plain = ScriptedProvider(PlainProvider(), connection)
        return cast("Provider", plain), plain.dialect("plain"), model_name
    name = default_registry.split_model(model)
    provider = ScriptedProvider(default_registry.provider(name.provider), connection)
    return cast("Provider", provider), provider.dialect(name.dialect or provider.dialects[0]), name.model
