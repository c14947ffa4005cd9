"""Calls beyond one: rate limits, a cache of replies, many prompts at once, and batches.

llm = limited(cached_responses(sabir.adapter("provider:model"), "replies.db"), at_once=8, requests=500)
outcomes = await complete_many(llm, prompts, resume="labels.jsonl")
ticket = await batch("provider:model").submit({"a": "Hello!"})                   # answered within hours, at half price
"""

from sabir.authoring import BatchStatus

from sabir_calls.batches.batch import Batch, batch
from sabir_calls.batches.batched import BatchedAdapter, batched
from sabir_calls.batches.outcomes import BatchError, BatchOutcome
from sabir_calls.cache.cached import CachedAdapter, cached_responses
from sabir_calls.cache.stores import CacheError, MemoryResponses, ResponseStore, SQLiteResponses
from sabir_calls.limits.estimates import Estimate, estimate_tokens
from sabir_calls.limits.limit import Limit, LimitStatus, Period, Slot
from sabir_calls.limits.limited import LimitedAdapter, limited
from sabir_calls.many.journal import JournalError
from sabir_calls.many.many import complete_many, complete_many_sync, each_completed, each_completed_sync
from sabir_calls.many.outcomes import Outcome, Progress

__all__ = [
    "Batch",
    "BatchError",
    "BatchOutcome",
    "BatchStatus",
    "BatchedAdapter",
    "CacheError",
    "CachedAdapter",
    "Estimate",
    "JournalError",
    "Limit",
    "LimitStatus",
    "LimitedAdapter",
    "MemoryResponses",
    "Outcome",
    "Period",
    "Progress",
    "ResponseStore",
    "SQLiteResponses",
    "Slot",
    "batch",
    "batched",
    "cached_responses",
    "complete_many",
    "complete_many_sync",
    "each_completed",
    "each_completed_sync",
    "estimate_tokens",
    "limited",
]
