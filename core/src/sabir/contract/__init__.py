"""What a provider's plugin implements, and what its functions are given: Protocols, tables, turns, scopes, framing."""
