"""Rendering and decoding need no SDK: it is imported at the first send and not before."""

import json
import subprocess
import sys

import pytest

PROGRAM = """
import json, sys
import sabir
chat = []
for number in range(500):
    chat += [sabir.user(f"question {number}"), sabir.assistant(f"answer {number}")]
rendering = sabir.adapter(sys.argv[1]).render([*chat, sabir.user("last")])
sabir.dialect("openai.chat").decode('{"choices": [{"finish_reason": "stop", "message": {"content": "hi"}}]}')
loaded = sorted(name for name in ("openai", "httpx2", "anyio", "vcr", "xllamacpp") if name in sys.modules)
print(json.dumps({"messages": len(chat) + 1, "bytes": len(rendering.body_bytes), "loaded": loaded}))
"""


@pytest.mark.parametrize("model", ["openai:gpt-5", "openai.chat:gpt-5", "groq:any", "local:smollm2"])
def test_rendering_a_thousand_messages_imports_no_sdk(model: str) -> None:
    """Discovery, rendering and decoding stay free of every SDK (design: packages)."""
    ran = subprocess.run([sys.executable, "-c", PROGRAM, model], capture_output=True, text=True, check=True)

    said = json.loads(ran.stdout)
    assert said["messages"] == 1001
    assert said["bytes"] > 20_000
    assert said["loaded"] == []
