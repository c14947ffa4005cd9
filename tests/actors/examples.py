"""The examples of the protocol's document, as it writes them: each request with its response."""

from collections.abc import Mapping
from typing import Any

from sabir_actors import ErrorResponse, Message, Response

ANSWERED = "original_message_id"
ID = {"thread_id": "thread789"}
ACTOR = {"actor_id": "action_phase_actor_123"}
AGENT = {"agent_id": "action_agent_123"}
ACTION = {**ID, "phase_type": "action"}
REASON = {"reason": "user_request"}
FAILURE = {"error_message": "Failed to process phase", "error_code": "PHASE_PROCESSING_ERROR"}
CONTEXT = {"user_id": "user123", "metadata": {"session_id": "session456"}}
SAID = [{"role": "user", "content": "Hello, world!"}, {"role": "assistant", "content": "I'll help you with that."}]
OUTPUT = {"response": "I'll help you with that.", "next_phase": "experience", "confidence": 0.95}
RESULT = {"response": "I'll help you with that.", "confidence": 0.95, "tool_calls": []}
CONFIG = {"model": "openai:gpt-4o", "temperature": 0.7, "max_tokens": 1000, "tools": ["web_search", "calculator"]}
CHANGE = {
    "system_prompt": "You are a helpful assistant...",
    "model": "openai:gpt-4o",
    "temperature": 0.5,
    "tools": ["web_search", "calculator"],
}


def _pair(request: str, data: Mapping[str, Any], response: str, answer: Mapping[str, Any]) -> tuple[Message, Response]:
    return Message(type=request, data=data), Response(type=response, data=answer, message_id=ANSWERED)


def _control(name: str, past: str, status: str, time: str, told: Mapping[str, Any], **said: Any) -> Any:
    answer = {**ID, "status": status, f"{past.lower()}_at": f"2023-07-15T{time}:00Z", **told}
    return _pair(f"{name}_THREAD", {**ID, **said}, f"THREAD_{past}", answer)


SIX = ["action", "experience", "intention", "observation", "understanding", "yield"]
PAIRS = (
    _pair("CREATE_THREAD",
          {"user_id": "user123", "initial_input": "Hello, world!",
           "metadata": {"source": "web", "session_id": "session456"}},
          "THREAD_CREATED", {**ID, "status": "created"}),
    _control("START", "STARTED", "processing", "10:30", {}),
    _control("PAUSE", "PAUSED", "paused", "10:35", {"current_phase": "experience"}),
    _control("RESUME", "RESUMED", "processing", "10:40", {"current_phase": "experience"}),
    _control("TERMINATE", "TERMINATED", "terminated", "10:45", REASON, **REASON),
    _pair("GET_THREAD_STATUS", ID,
          "THREAD_STATUS",
          {**ID, "status": "processing", "current_phase": "intention", "created_at": "2023-07-15T10:30:00Z",
           "updated_at": "2023-07-15T10:42:00Z", "phases_completed": SIX[:2], "phases_remaining": SIX[2:]}),
    _pair("PROCESS_PHASE",
          {**ACTION, "input": "Hello, world!", "context": {"conversation_history": [], "user_id": "user123"}},
          "PHASE_PROCESSED", {**ACTION, "output": OUTPUT, "processing_time": 0.75}),
    _pair("INITIALIZE_PHASE", {"phase_type": "action", "config": CONFIG},
          "PHASE_INITIALIZED", {"phase_type": "action", "status": "ready", **AGENT}),
    _pair("PREPARE_CONTEXT",
          {**ID, "phase_type": "experience", "previous_phase_output": OUTPUT, "conversation_history": SAID},
          "CONTEXT_PREPARED",
          {**ID, "phase_type": "experience",
           "context": {"messages": [{"role": "system", "content": "You are the experience phase..."}, *SAID],
                       "tools": ["memory_retrieval", "knowledge_base"],
                       "metadata": {"user_id": "user123", "session_id": "session456"}}}),
    _pair("INVOKE_AGENT", {**AGENT, "input": "Hello, world!", "context": CONTEXT, "stream": False},
          "AGENT_INVOKED", {**AGENT, "result": RESULT, "processing_time": 0.75}),
    _pair("PROCESS_WITH_AGENT", {"input": "What is the capital of France?", "context": CONTEXT},
          "AGENT_RESPONSE",
          {"result": {"response": "The capital of France is Paris.", "confidence": 0.99, "tool_calls": []},
           "processing_time": 0.5}),
    _pair("UPDATE_AGENT_CONFIG", {**AGENT, "config": CHANGE}, "AGENT_CONFIG_UPDATED", {**AGENT, "status": "updated"}),
    _pair("HEARTBEAT", {}, "HEARTBEAT_RESPONSE", {"status": "alive", "uptime": 3600, "load": 0.5}),
    _pair("SUPERVISE", ACTOR, "SUPERVISION_STARTED", {**ACTOR, "status": "supervised"}),
    _pair("RESTART", {**ACTOR, "reason": "error_recovery"},
          "RESTART_COMPLETE", {**ACTOR, "status": "restarted", "restarted_at": "2023-07-15T11:30:00Z"}),
    _pair("STOP", {**ACTOR, "reason": "shutdown"},
          "STOP_COMPLETE", {**ACTOR, "status": "stopped", "stopped_at": "2023-07-15T12:00:00Z"}),
    _pair("ERROR_NOTIFICATION", {**ACTOR, **FAILURE, "details": "API rate limit exceeded"},
          "ERROR_ACKNOWLEDGED", {**ACTOR, "action_taken": "restart", "error_logged": True}),
)  # fmt: skip
RETRY = Message(type="RETRY", data={"original_message_id": "failed_message_id", "attempt": 2, "max_attempts": 3})
ERROR = ErrorResponse(**FAILURE, message_id=ANSWERED, data={**ACTION, "details": "API rate limit exceeded"})
REQUESTS = (*(request for request, _ in PAIRS), RETRY, Message(type="ERROR", data=ERROR.data))
MESSAGES = (*REQUESTS, *(response for _, response in PAIRS), ERROR)
"""Every message that the document shows, and its ERROR as a request."""
