"""Answers of Messages that the tests of this folder share."""

import json
from typing import Any

from sabir.contract.scope import DecodeScope
from sabir.vocabulary.reply import Reply
from sabir.vocabulary.settings import Target
from sabir_anthropic.dialect import MESSAGES

SCOPE = DecodeScope(
    target=Target(provider="anthropic", dialect="anthropic.messages", model="claude-opus-5-5"),
    option_names={"my_weather": "my weather"},
)
THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "sig"}
USE = {"type": "tool_use", "id": "toolu_1", "name": "my_weather", "input": {"city": "Rome"}}
SERVER = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}


def message(*content: Any, **fields: Any) -> dict[str, Any]:
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5-5", "stop_sequence": None}
    return {**head, "stop_reason": "end_turn", "usage": {}, **fields, "content": list(content)}


def decode(*content: Any, **fields: Any) -> Reply:
    return MESSAGES.decode(json.dumps(message(*content, **fields)).encode(), SCOPE)
