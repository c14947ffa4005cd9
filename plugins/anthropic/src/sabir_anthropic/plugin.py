"""The entry point: Anthropic (its models at cloud platforms by the user's own client), and hints for other names."""

from sabir_anthropic.provider import AnthropicProvider

anthropic = AnthropicProvider()
CLAUDE = "Claude's provider is 'anthropic': write 'anthropic:model'"
BEDROCK = "for Claude on Bedrock write sabir.adapter('anthropic:model', client=anthropic.AsyncAnthropicBedrock(…))"
VERTEX = "for Claude on Vertex AI write sabir.adapter('anthropic:model', client=anthropic.AsyncAnthropicVertex(…))"
"""The error text for a caller that asks for one of these provider names."""
