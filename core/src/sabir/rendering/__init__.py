"""Messages → request bytes and losses: pure, and a closed prefix never changes (laws 1, 2, 4, 5, 6)."""
