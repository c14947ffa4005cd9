"""OpenAI, and every endpoint compatible with it, for sabir."""

from sabir.authoring import Row, RowEntry

from sabir_openai.provider import CompatibleProvider

__all__ = ["CompatibleProvider", "Row", "RowEntry"]
