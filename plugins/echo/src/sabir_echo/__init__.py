"""The smallest provider for sabir: it answers with what it was asked."""
