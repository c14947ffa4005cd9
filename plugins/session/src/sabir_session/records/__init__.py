"""Records of a conversation: what one is, how they are kept in their order, and what they say of calls."""
