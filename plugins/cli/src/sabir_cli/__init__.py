"""The sabir command: chat, render, providers, models and a demonstration."""
