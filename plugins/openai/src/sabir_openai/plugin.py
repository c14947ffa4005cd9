"""The entry points: OpenAI itself, each gateway of gateways.toml by its name, and a hint."""

from sabir_openai.provider import OPENAI, CompatibleProvider, gateways

openai = CompatibleProvider(OPENAI)
AZURE = "for Azure write sabir.adapter('openai.chat:deployment', client=openai.AsyncAzureOpenAI(…))"
"""The error text for a caller that asks for a provider of that name."""


def __getattr__(name: str) -> CompatibleProvider:
    if name not in gateways():
        raise AttributeError(f"module {__name__!r} has no provider {name!r}")
    return CompatibleProvider(gateways()[name])
