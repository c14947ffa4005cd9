"""Acme for sabir: an endpoint with an API that is compatible with OpenAI's Chat Completions."""
