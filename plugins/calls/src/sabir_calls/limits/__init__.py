"""Rate limits that several adapters share.

limited(adapter) ── waits for ──▶ Limit ── decides by ──▶ Admission (first come, first served) ──▶ Window
"""
