"""Records of a conversation: their model, their order, and the status of their calls."""
