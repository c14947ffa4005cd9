"""The entry points: Anthropic, the clouds that sell its models, and a hint for another name."""

from sabir_anthropic.cloud_provider import BedrockProvider, VertexProvider
from sabir_anthropic.provider import AnthropicProvider

anthropic = AnthropicProvider()
bedrock = BedrockProvider()
vertex = VertexProvider()
CLAUDE = "Claude's provider is 'anthropic': write 'anthropic:model'"
"""The error text for a caller that asks for a provider of that name."""
