"""The examples of the protocol's document, as it writes them: each request with its response."""

from sabir_actors import ErrorResponse, Message, Response

ANSWERED = "original_message_id"
ID = {"thread_id": "thread789"}
ACTOR = {"actor_id": "action_phase_actor_123"}
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


def _pair(request: Message, response_type: str, **data: object) -> tuple[Message, Response]:
    return request, Response(type=response_type, data=data, message_id=ANSWERED)


PAIRS = (
    _pair(
        Message(
            type="CREATE_THREAD",
            data={
                "user_id": "user123",
                "initial_input": "Hello, world!",
                "metadata": {"source": "web", "session_id": "session456"},
            },
        ),
        "THREAD_CREATED",
        **ID,
        status="created",
    ),
    _pair(
        Message(type="START_THREAD", data=ID),
        "THREAD_STARTED",
        **ID,
        status="processing",
        started_at="2023-07-15T10:30:00Z",
    ),
    _pair(
        Message(type="PAUSE_THREAD", data=ID),
        "THREAD_PAUSED",
        **ID,
        status="paused",
        paused_at="2023-07-15T10:35:00Z",
        current_phase="experience",
    ),
    _pair(
        Message(type="RESUME_THREAD", data=ID),
        "THREAD_RESUMED",
        **ID,
        status="processing",
        resumed_at="2023-07-15T10:40:00Z",
        current_phase="experience",
    ),
    _pair(
        Message(type="TERMINATE_THREAD", data={**ID, "reason": "user_request"}),
        "THREAD_TERMINATED",
        **ID,
        status="terminated",
        terminated_at="2023-07-15T10:45:00Z",
        reason="user_request",
    ),
    _pair(
        Message(type="GET_THREAD_STATUS", data=ID),
        "THREAD_STATUS",
        **ID,
        status="processing",
        current_phase="intention",
        created_at="2023-07-15T10:30:00Z",
        updated_at="2023-07-15T10:42:00Z",
        phases_completed=["action", "experience"],
        phases_remaining=["intention", "observation", "understanding", "yield"],
    ),
    _pair(
        Message(
            type="PROCESS_PHASE",
            data={
                **ID,
                "phase_type": "action",
                "input": "Hello, world!",
                "context": {"conversation_history": [], "user_id": "user123"},
            },
        ),
        "PHASE_PROCESSED",
        **ID,
        phase_type="action",
        output=OUTPUT,
        processing_time=0.75,
    ),
    _pair(
        Message(type="INITIALIZE_PHASE", data={"phase_type": "action", "config": CONFIG}),
        "PHASE_INITIALIZED",
        phase_type="action",
        status="ready",
        agent_id="action_agent_123",
    ),
    _pair(
        Message(
            type="PREPARE_CONTEXT",
            data={
                **ID,
                "phase_type": "experience",
                "previous_phase_output": OUTPUT,
                "conversation_history": SAID,
            },
        ),
        "CONTEXT_PREPARED",
        **ID,
        phase_type="experience",
        context={
            "messages": [{"role": "system", "content": "You are the experience phase..."}, *SAID],
            "tools": ["memory_retrieval", "knowledge_base"],
            "metadata": {"user_id": "user123", "session_id": "session456"},
        },
    ),
    _pair(
        Message(
            type="INVOKE_AGENT",
            data={"agent_id": "action_agent_123", "input": "Hello, world!", "context": CONTEXT, "stream": False},
        ),
        "AGENT_INVOKED",
        agent_id="action_agent_123",
        result=RESULT,
        processing_time=0.75,
    ),
    _pair(
        Message(type="PROCESS_WITH_AGENT", data={"input": "What is the capital of France?", "context": CONTEXT}),
        "AGENT_RESPONSE",
        result={"response": "The capital of France is Paris.", "confidence": 0.99, "tool_calls": []},
        processing_time=0.5,
    ),
    _pair(
        Message(type="UPDATE_AGENT_CONFIG", data={"agent_id": "action_agent_123", "config": CHANGE}),
        "AGENT_CONFIG_UPDATED",
        agent_id="action_agent_123",
        status="updated",
    ),
    _pair(Message(type="HEARTBEAT", data={}), "HEARTBEAT_RESPONSE", status="alive", uptime=3600, load=0.5),
    _pair(Message(type="SUPERVISE", data=ACTOR), "SUPERVISION_STARTED", **ACTOR, status="supervised"),
    _pair(
        Message(type="RESTART", data={**ACTOR, "reason": "error_recovery"}),
        "RESTART_COMPLETE",
        **ACTOR,
        status="restarted",
        restarted_at="2023-07-15T11:30:00Z",
    ),
    _pair(
        Message(type="STOP", data={**ACTOR, "reason": "shutdown"}),
        "STOP_COMPLETE",
        **ACTOR,
        status="stopped",
        stopped_at="2023-07-15T12:00:00Z",
    ),
    _pair(
        Message(
            type="ERROR_NOTIFICATION",
            data={
                **ACTOR,
                "error_message": "Failed to process phase",
                "error_code": "PHASE_PROCESSING_ERROR",
                "details": "API rate limit exceeded",
            },
        ),
        "ERROR_ACKNOWLEDGED",
        **ACTOR,
        action_taken="restart",
        error_logged=True,
    ),
)
RETRY = Message(type="RETRY", data={"original_message_id": "failed_message_id", "attempt": 2, "max_attempts": 3})
ERROR = ErrorResponse(
    error_message="Failed to process phase",
    error_code="PHASE_PROCESSING_ERROR",
    message_id=ANSWERED,
    data={"thread_id": "thread789", "phase_type": "action", "details": "API rate limit exceeded"},
)
REQUESTS = (*(request for request, _ in PAIRS), RETRY, Message(type="ERROR", data=ERROR.data))
MESSAGES = (*REQUESTS, *(response for _, response in PAIRS), ERROR)
"""Every message that the document shows, and its ERROR as a request."""
