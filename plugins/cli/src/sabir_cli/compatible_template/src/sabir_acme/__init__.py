"""Acme for sabir: an endpoint that speaks OpenAI's Chat Completions."""
