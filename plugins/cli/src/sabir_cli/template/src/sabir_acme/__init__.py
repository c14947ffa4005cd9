"""Acme for sabir."""
