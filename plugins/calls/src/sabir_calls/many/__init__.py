"""Many prompts with one adapter.

prompts ── at most `at_once` at a time ──▶ adapter ──▶ Outcome: a reply or an error ──▶ journal, progress, caller
"""
