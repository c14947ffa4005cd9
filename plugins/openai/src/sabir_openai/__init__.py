"""OpenAI, and every endpoint compatible with it, for sabir."""

from sabir_openai.provider import CompatibleProvider, Row

__all__ = ["CompatibleProvider", "Row"]
