"""Google's Gemini as a provider for sabir: generateContent, with thought signatures, grounding and media.

`http_options` is needed only to pass a client of your own as `client=`.
"""

from sabir_google.provider import http_options

__all__ = ["http_options"]
