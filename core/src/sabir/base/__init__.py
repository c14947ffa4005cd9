"""The base of all other modules: errors, JSON values, immutable models (law 11), losses."""
