"""The packages here are strangers: their tests run in an environment of their own, never with the workspace's."""

collect_ignore = ["sabir-cohere", "sabir-lantern"]
