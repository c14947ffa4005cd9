"""Adapters that are broken in one way each, by the family of the case that they fail."""
