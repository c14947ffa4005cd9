"""Reads bytes and JSON values of any wire."""
