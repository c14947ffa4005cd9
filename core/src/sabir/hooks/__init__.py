"""Hook plugins: called by the builders that were given them while these build messages, and told of every call."""
