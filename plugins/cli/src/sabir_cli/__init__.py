"""The command `sabir`: chat, import, render, providers, models, config, new-plugin and a demonstration."""
