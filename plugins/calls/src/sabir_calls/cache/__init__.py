"""A cache of complete replies.

cached_responses(adapter, store) ── key of the rendered request ──▶ ResponseStore ── reply, or a request and a new entry
"""
