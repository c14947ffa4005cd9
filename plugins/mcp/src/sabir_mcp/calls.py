"""One call of a tool, without the SDK's validation of its result.

The SDK's `call_tool` validates structured values against the tool's output schema, in the event loop, by Python's `re`:
a server whose schema has the pattern `^(a+)+$` stops the whole process, signals included. So the request is sent by
`send_request`, which only checks the types of the protocol.

    tools/call ──▶ result
              └──▶ input required ──▶ the client's own callbacks ──▶ tools/call again, with their return values
"""

import asyncio
from functools import cache
from typing import Any

from mcp import ClientSession, MCPError
from mcp.client import ClientRequestContext
from mcp_types import (
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    ErrorData,
    InputRequiredResult,
    InputResponse,
)
from pydantic import TypeAdapter

MOST_ROUNDS = 10
"""How often one call is sent at most, if the server requires input or a repetition. The SDK has the same number."""
PAUSE = 0.1
"""How many seconds to wait before a call is repeated for which the server required no input."""


async def call_tool(session: ClientSession, name: str, arguments: dict[str, Any]) -> CallToolResult:
    """Call a tool and return its result.

    Raises MCPError if the server, or a callback of the client, refuses the call. Raises RuntimeError if the server
    requires input too often.
    """
    responses: dict[str, InputResponse] | None = None
    state: str | None = None
    for _ in range(MOST_ROUNDS):
        params = CallToolRequestParams(name=name, arguments=arguments, input_responses=responses, request_state=state)
        result = await session.send_request(CallToolRequest(params=params), _result_adapter())
        if isinstance(result, CallToolResult):
            return result
        responses, state = await _collect_input(session, result), result.request_state
    raise RuntimeError(f"the server asked for input {MOST_ROUNDS} times in one call, which is the maximum")


async def _collect_input(session: ClientSession, required: InputRequiredResult) -> dict[str, InputResponse] | None:
    if not required.input_requests:
        await asyncio.sleep(PAUSE)
        return None
    responses: dict[str, InputResponse] = {}
    for key, request in required.input_requests.items():
        meta = request.params.meta if request.params else None
        context = ClientRequestContext(session=session, request_id=key, meta=meta)
        response = await session.dispatch_input_request(context, request)
        if isinstance(response, ErrorData):
            raise MCPError.from_error_data(response)
        responses[key] = response
    return responses


@cache
def _result_adapter() -> TypeAdapter[CallToolResult | InputRequiredResult]:
    return TypeAdapter(CallToolResult | InputRequiredResult)
