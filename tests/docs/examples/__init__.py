"""Whole programs on a conversation, as users write them; `test_programs.py` runs them."""
