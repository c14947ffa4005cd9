"""Plugins that are asked: while messages are built, by builders that were given them, and told of every call."""
