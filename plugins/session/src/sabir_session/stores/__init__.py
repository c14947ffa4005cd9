"""Stores: databases of named journals. The logic is shared, and each database has an engine."""
