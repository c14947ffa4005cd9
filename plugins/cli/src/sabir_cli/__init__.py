"""The command `sabir`: chat, chats, import, render, providers, models, config, new-plugin and a demonstration."""
