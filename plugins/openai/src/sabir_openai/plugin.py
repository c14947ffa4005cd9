"""The entry points: OpenAI itself, each gateway of the folder gateways by its name, and a hint."""

from sabir_openai.gateways import row_of
from sabir_openai.provider import OPENAI, CompatibleProvider

openai = CompatibleProvider(OPENAI)
AZURE = "for Azure write sabir.adapter('openai.chat:deployment', client=openai.AsyncAzureOpenAI(…))"
"""The error text for a caller that asks for a provider of that name."""


def __getattr__(name: str) -> CompatibleProvider:
    row = row_of(name)
    if row is None:
        raise AttributeError(f"module {__name__!r} has no provider {name!r}")
    return CompatibleProvider(row)
