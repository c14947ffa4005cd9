"""The entry points: Anthropic, Bedrock, Vertex AI, each gateway of the folder gateways as an attribute by its name, and
the error text for the wrong provider name `claude`.
"""

from sabir.authoring import Row

from sabir_anthropic.cloud_provider import BedrockProvider, VertexProvider
from sabir_anthropic.provider import ANTHROPIC, AnthropicProvider

anthropic = AnthropicProvider(ANTHROPIC)
bedrock = BedrockProvider()
vertex = VertexProvider()
CLAUDE = "Claude's provider is 'anthropic': write 'anthropic:model'"
"""The error text for a user who asks for a provider `claude`."""


def __getattr__(name: str) -> AnthropicProvider:
    row = Row.load_packaged("sabir_anthropic", name)
    if row is None:
        raise AttributeError(f"module {__name__!r} has no provider {name!r}")
    return AnthropicProvider(row)
