"""A server of the protocol's version 2025-06-18, written without the SDK: it says what the SDK's server would refuse.

Each option answers with what its name says, or changes what is listed from then on: other options, pages in a circle,
parameters that are an array.
"""

import json
import sys
from typing import Any

OFFERED = ["hologram", "textless", "nothing", "again", "circle", "array"]
SCHEMAS: dict[str, Any] = {
    "again": {"properties": {"text": {"enum": 5}, "more": {"required": 3, "properties": 3}}},
    "nothing": {"properties": {"self": {"$ref": "#"}, "far": {"$ref": "http://127.0.0.1:9/schema.json"}}},
    "circle": {"properties": {"text": {"type": "string", "pattern": "^(a+)+$"}}},
}
"""Input schemas that are malformed, refer to themselves and to another host, or have a pattern that never ends."""
ANSWERS: dict[str, Any] = {
    "hologram": {"content": [{"type": "hologram", "data": "…"}]},
    "textless": {"content": [{"type": "text"}]},
    "nothing": {"content": []},
    "again": {"content": [{"type": "text", "text": "changed"}]},
    "circle": {"content": []},
    "array": {"content": []},
}


def listed(called: list[str]) -> dict[str, Any]:
    kind = "array" if "array" in called else "object"
    found = {"tools": [{"name": name, "inputSchema": {"type": kind, **SCHEMAS.get(name, {})}} for name in OFFERED]}
    return {**found, "nextCursor": "round"} if "circle" in called else found


def answer(request: dict[str, Any], called: list[str]) -> dict[str, Any]:
    method = request["method"]
    if method == "initialize":
        server = {"name": "plain", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": server}
    elif method == "tools/list":
        result = listed(called)
    elif method == "tools/call":
        name = request["params"]["name"]
        called.append(name)
        if name == "again":
            OFFERED[:] = ["again", "new"]
        if name not in ANSWERS:
            return {"error": {"code": -32000, "message": f"no {name} today"}}
        result = ANSWERS[name]
    else:
        return {"error": {"code": -32601, "message": f"no such method: {method}"}}
    return {"result": result}


def main() -> None:
    called: list[str] = []
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            reply = {"jsonrpc": "2.0", "id": request["id"], **answer(request, called)}
            print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
