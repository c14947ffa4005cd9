"""OpenAI, and every endpoint compatible with it, for sabir."""
