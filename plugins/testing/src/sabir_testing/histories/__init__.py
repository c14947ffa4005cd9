"""Histories for the test cases, random and recorded, and invented APIs to hand them over to."""
