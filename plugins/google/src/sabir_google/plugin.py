"""The entry point of Google's Gemini, and a hint for other names."""

from sabir_google.provider import GoogleProvider

google = GoogleProvider()
GEMINI = "for Gemini write 'google:model', on Vertex AI with client=google.genai.Client(vertexai=True, …)"
"""The error text for a caller that asks for a provider `gemini` or `vertex`."""
