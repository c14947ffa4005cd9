"""The entry point of Google's Gemini, and the error text for the wrong provider names `gemini` and `vertex`."""

from sabir_google.provider import GoogleProvider

google = GoogleProvider()
GEMINI = (
    "for Gemini write 'google:model'; on Vertex AI also pass "
    "client=google.genai.Client(vertexai=True, http_options=sabir_google.http_options(), …)"
)
"""The error text for a user who asks for a provider `gemini` or `vertex`."""
