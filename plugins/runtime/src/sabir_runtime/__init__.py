"""Policies, contexts and runners for sabir, and evaluations that resume.

response = await evaluate(llm, prompt, session=session, options=[search])           # resume=True goes on with it

ctx = Assistant(InMemoryRunner())
messages = await ctx.llm(observations=history, options=["search"])
"""

from sabir_runtime.approval import DENIED, HUMAN, Approve, Decision
from sabir_runtime.bound import BoundCall, BoundPolicy
from sabir_runtime.budgets import Budget
from sabir_runtime.contexts import BaseContext
from sabir_runtime.errors import CallsTooDeep, LoopLimit, PolicyInvalid, ReplayMismatch, RuntimeFault, UnknownOption
from sabir_runtime.evaluate import EvaluateArguments, evaluate, evaluate_sync
from sabir_runtime.evaluations import follow_up, unfinished_evaluations
from sabir_runtime.failures import PolicyFailed
from sabir_runtime.human import Question, human_policy
from sabir_runtime.llm import LLMPolicy, llm_policy
from sabir_runtime.loops import loop_policy
from sabir_runtime.main_loop import MainLoop
from sabir_runtime.outcomes import (
    ApprovalPending,
    BudgetExhausted,
    ConversationNotFound,
    OutsideEvaluation,
    PromptMismatch,
)
from sabir_runtime.paths import branch
from sabir_runtime.policies import Batch, Policy
from sabir_runtime.progress import (
    CallEnded,
    CallProgress,
    CallStarted,
    Event,
    ReplyArrived,
    RequestStarted,
    TextArrived,
    Watch,
)
from sabir_runtime.prompt import Prompt
from sabir_runtime.response import PromptResponse
from sabir_runtime.runners import BaseRunner, InMemoryRunner, Runner
from sabir_runtime.tool_context import ToolContext
from sabir_runtime.within import within

__all__ = [
    "DENIED",
    "HUMAN",
    "ApprovalPending",
    "Approve",
    "BaseContext",
    "BaseRunner",
    "Batch",
    "BoundCall",
    "BoundPolicy",
    "Budget",
    "BudgetExhausted",
    "CallEnded",
    "CallProgress",
    "CallStarted",
    "CallsTooDeep",
    "ConversationNotFound",
    "Decision",
    "EvaluateArguments",
    "Event",
    "InMemoryRunner",
    "LLMPolicy",
    "LoopLimit",
    "MainLoop",
    "OutsideEvaluation",
    "Policy",
    "PolicyFailed",
    "PolicyInvalid",
    "Prompt",
    "PromptMismatch",
    "PromptResponse",
    "Question",
    "ReplayMismatch",
    "ReplyArrived",
    "RequestStarted",
    "Runner",
    "RuntimeFault",
    "TextArrived",
    "ToolContext",
    "UnknownOption",
    "Watch",
    "branch",
    "evaluate",
    "evaluate_sync",
    "follow_up",
    "human_policy",
    "llm_policy",
    "loop_policy",
    "unfinished_evaluations",
    "within",
]
