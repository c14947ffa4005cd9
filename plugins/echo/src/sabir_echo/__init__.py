"""The smallest provider for sabir: its model repeats the text of the last message. For tests and as an example."""
