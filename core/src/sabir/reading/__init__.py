"""Bytes in any chunks → events → a reply: any bytes end in a reply or in an error of ours (laws 8, 10)."""
