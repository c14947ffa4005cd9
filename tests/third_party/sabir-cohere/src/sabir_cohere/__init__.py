"""Cohere's v2 chat API for sabir: `sabir.adapter("cohere:command-a-03-2025")`."""
