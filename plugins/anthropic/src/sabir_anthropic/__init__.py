"""Anthropic's Claude as a provider for sabir: the Messages API, with thinking, citations, server tools and prompt
caching.
"""
