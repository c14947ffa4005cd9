"""Google's Gemini as a provider for sabir: generateContent, with thought signatures, grounding and media.

You need `http_options` only to create a `genai.Client` that you pass as `client=`, for example for Vertex AI.
"""

from sabir_google.provider import http_options

__all__ = ["http_options"]
