"""Convert the bytes of an answer to events and a reply, or to one of sabir's errors (laws 8, 10)."""
