"""Typed slices, changed by reducers alone, watched by observers, kept in a journal."""
