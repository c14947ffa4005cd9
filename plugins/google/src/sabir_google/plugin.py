"""The entry point, Google's Gemini, and a hint."""

from sabir_google.provider import GoogleProvider

google = GoogleProvider()
GEMINI = "for Gemini write 'google:model', on Vertex AI with client=google.genai.Client(vertexai=True, …)"
"""What is told to whoever asks for a provider `gemini` or `vertex`."""
