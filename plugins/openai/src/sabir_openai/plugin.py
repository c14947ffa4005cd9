"""The entry points: OpenAI itself, Azure, and each gateway of gateways.toml by its name."""

from sabir_openai.azure_provider import AzureProvider
from sabir_openai.provider import OPENAI, CompatibleProvider, gateways

openai = CompatibleProvider(OPENAI)
azure = AzureProvider()


def __getattr__(name: str) -> CompatibleProvider:
    if name not in gateways():
        raise AttributeError(f"module {__name__!r} has no provider {name!r}")
    return CompatibleProvider(gateways()[name])
