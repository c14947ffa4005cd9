"""The smallest provider for sabir: it returns the text of the last message. Useful in tests and as an example."""
