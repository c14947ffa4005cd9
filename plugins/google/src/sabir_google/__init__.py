"""Google's Gemini as a provider for sabir: generateContent, with thought signatures, grounding and media.

You need `http_options` only to create a `genai.Client` that you pass as `client=`, for example for Vertex AI.
`create_cache` stores the beginning of a conversation at Google.
"""

from sabir_google.prompt_cache import CachedPrompt, create_cache, create_cache_sync
from sabir_google.provider import http_options

__all__ = ["CachedPrompt", "create_cache", "create_cache_sync", "http_options"]
