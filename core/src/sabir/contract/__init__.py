"""What a provider's plugin implements, and what it is told: Protocols, tables, turns and scopes, framing."""
