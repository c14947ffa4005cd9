"""Lantern for sabir: the provider `lantern`."""
