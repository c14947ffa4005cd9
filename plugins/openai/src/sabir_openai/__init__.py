"""OpenAI, Azure OpenAI and gateways with a compatible API, as providers for sabir.

`CompatibleProvider(Row(…))` is a provider for a further endpoint with an OpenAI-compatible API.
"""

from sabir.authoring import Row, RowEntry

from sabir_openai.provider import CompatibleProvider

__all__ = ["CompatibleProvider", "Row", "RowEntry"]
