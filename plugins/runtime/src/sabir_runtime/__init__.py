"""Policies (functions that return messages), contexts that bind them, and runners that perform the policies' calls.

ctx = Assistant(InMemoryRunner())
messages = await ctx.llm(observations=history, options=["search"])
"""

from sabir_runtime.contexts import BaseContext, BaseRunner, BoundCall, BoundPolicy, InMemoryRunner, Runner
from sabir_runtime.extras import ExtraMissing
from sabir_runtime.failures import LoopLimit, PolicyFailed, PolicyInvalid, ReplayMismatch, RuntimeFault, UnknownOption
from sabir_runtime.paths import branch
from sabir_runtime.policies import Batch, Policy
from sabir_runtime.ready_policies import LLMPolicy, Question, human_policy, llm_policy, loop_policy

__all__ = [
    "BaseContext",
    "BaseRunner",
    "Batch",
    "BoundCall",
    "BoundPolicy",
    "ExtraMissing",
    "InMemoryRunner",
    "LLMPolicy",
    "LoopLimit",
    "Policy",
    "PolicyFailed",
    "PolicyInvalid",
    "Question",
    "ReplayMismatch",
    "Runner",
    "RuntimeFault",
    "UnknownOption",
    "branch",
    "human_policy",
    "llm_policy",
    "loop_policy",
]
