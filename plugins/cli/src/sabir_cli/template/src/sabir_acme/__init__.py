"""Acme for sabir: the provider `acme`."""
