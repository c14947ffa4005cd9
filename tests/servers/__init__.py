"""Servers that tests start for themselves: private, on loopback, gone with the test run."""
