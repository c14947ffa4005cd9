"""Bytes in any chunks → events → a reply: any bytes end in a reply or one of the library's own errors (laws 8, 10)."""
