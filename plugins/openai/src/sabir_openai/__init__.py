"""OpenAI, Azure OpenAI and gateways with a compatible API, as providers for sabir.

For another endpoint with an OpenAI-compatible API, create `CompatibleProvider(Row(…))`.
"""

from sabir.authoring import Row, RowEntry

from sabir_openai.provider import CompatibleProvider

__all__ = ["CompatibleProvider", "Row", "RowEntry"]
