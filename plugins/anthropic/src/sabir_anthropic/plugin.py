"""The entry point: Anthropic, and its models at cloud platforms by the user's own client; and hints."""

from sabir_anthropic.provider import AnthropicProvider

anthropic = AnthropicProvider()
CLAUDE = "Claude's provider is 'anthropic': write 'anthropic:model'"
BEDROCK = "for Claude on Bedrock write sabir.adapter('anthropic:model', client=anthropic.AsyncAnthropicBedrock(…))"
VERTEX = "for Claude on Vertex AI write sabir.adapter('anthropic:model', client=anthropic.AsyncAnthropicVertex(…))"
"""What is told to whoever asks for providers of these names."""
