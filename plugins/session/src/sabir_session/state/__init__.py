"""Typed slices, changed only by reducers, watched by observers, kept in a journal."""
