"""Batches: many prompts that a vendor answers within hours, at half price, while no process waits.

prompts ── rendered, strict ──▶ BatchOrder ──submit──▶ ticket ── any process, days later ──▶ BatchOutcome, by key
"""
