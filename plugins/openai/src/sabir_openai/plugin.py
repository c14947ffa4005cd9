"""The entry points: OpenAI itself, Azure, and each gateway of the folder gateways as an attribute by its name."""

from sabir.authoring import Row

from sabir_openai.azure_provider import AzureProvider
from sabir_openai.provider import OPENAI, CompatibleProvider

openai = CompatibleProvider(OPENAI)
azure = AzureProvider()


def __getattr__(name: str) -> CompatibleProvider:
    row = Row.load_packaged("sabir_openai", name)
    if row is None:
        raise AttributeError(f"module {__name__!r} has no provider {name!r}")
    return CompatibleProvider(row)
