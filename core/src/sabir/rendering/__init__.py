"""Rendering: messages to the bytes of a request, and its losses, without I/O (laws 1, 2, 4, 5, 6)."""
