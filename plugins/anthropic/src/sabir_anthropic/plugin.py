"""The entry points: Anthropic, the clouds that sell its models, each gateway of the folder gateways, and a hint."""

from sabir.authoring import Row

from sabir_anthropic.cloud_provider import BedrockProvider, VertexProvider
from sabir_anthropic.provider import ANTHROPIC, AnthropicProvider

anthropic = AnthropicProvider(ANTHROPIC)
bedrock = BedrockProvider()
vertex = VertexProvider()
CLAUDE = "Claude's provider is 'anthropic': write 'anthropic:model'"
"""The error text for a caller that asks for a provider of that name."""


def __getattr__(name: str) -> AnthropicProvider:
    row = Row.load_packaged("sabir_anthropic", name)
    if row is None:
        raise AttributeError(f"module {__name__!r} has no provider {name!r}")
    return AnthropicProvider(row)
