"""Adapters and streams: the objects that send conversations to models."""
