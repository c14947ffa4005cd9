"""Anthropic's Claude as a provider for sabir: the Messages API, at Anthropic, Bedrock, Vertex AI and gateways.

It supports thinking, citations, the vendor's own tools and prompt caching. The package exports no names: use it as
`anthropic:model`.
"""
