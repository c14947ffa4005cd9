"""The data: messages and their parts, settings, replies and targets. Nothing here makes calls."""
