"""The smallest provider for sabir: it answers with the text that it was sent."""
