"""Once for real: recorded with a model on OpenAI's wire, killed, and resumed on Anthropic's, through the vendors' SDKs.

    process 1   openai.chat:smollm2 ─▶ weather(…)  SIGKILL          trip.db
    process 2   anthropic:smollm2   ◀─ weather again, and the last words

The model is the embedded one, which speaks both wires; no server here is a vendor's own.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from sabir_session import SQLiteStore, get_inner_messages

from tests.recorded import servers
from tests.session.journals import numbers_of, recording

PROGRAM = '''
import json, os, signal, sys
import sabir
from sabir import ToolContext
from sabir_session import Prompt, evaluate_sync
from sabir_session import Session, SQLiteStore

model, resume = sys.argv[1], sys.argv[2] == "resume"
choice = None if resume else "required"

@sabir.option
def weather(city: str) -> str:
    """Current weather in a city."""
    if not ToolContext.current().is_resume:
        os.kill(os.getpid(), signal.SIGKILL)
    return f"18 °C, rain in {city}"

prompt = Prompt(ns="trips", key="weather", system="Be brief.", messages=[sabir.user("What is the weather in Paris?")])
settings = sabir.Settings(temperature=0, max_output_tokens=96, option_choice=choice, parallel_options=False)
with SQLiteStore("trip.db") as store, sabir.adapter(model) as llm:
    session = Session(journal=store.journal("trip"))
    response = evaluate_sync(llm, prompt, session=session, options=[weather], settings=settings, resume=resume)
print(json.dumps([response.reply.finish_reason, response.text]))
'''


def run(folder: Path, server: servers.Server, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The program in a process of its own, whose shell says where the two wires are."""
    environment = {
        **os.environ,
        "OPENAI_BASE_URL": f"{server.address}/v1",
        "OPENAI_API_KEY": server.api_key,
        "ANTHROPIC_BASE_URL": server.address,
        "ANTHROPIC_API_KEY": server.api_key,
    }
    command = [sys.executable, "-c", PROGRAM, *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_a_conversation_recorded_on_one_vendors_wire_is_resumed_on_anothers(tmp_path: Path) -> None:
    """WI-01, WI-02, WI-42, WI-43: a process killed inside of its option leaves a call without a result; another one,
    with another vendor's SDK, runs it and has the last words, in one evaluation."""
    with servers.embedded() as server:
        killed = run(tmp_path, server, "openai.chat:smollm2", "begin")
        assert (killed.returncode, killed.stderr) == (-signal.SIGKILL, "")
        resumed = run(tmp_path, server, "anthropic:smollm2", "resume")
    assert (resumed.returncode, resumed.stderr) == (0, "")
    reason, text = json.loads(resumed.stdout)
    with SQLiteStore(tmp_path / "trip.db") as store:
        session = recording(store.journal("trip"))
    records = get_inner_messages(session)

    assert numbers_of(session) == [
        ("system", 0, 0), ("user", 1, 0), ("assistant", 2, 1), ("tool", 3, 1), ("assistant", 4, 2),
    ]  # fmt: skip
    assert (records[3].tool_name, records[3].content[:5]) == ("weather", "18 °C")
    assert [record.messages[0].origin.provider for record in (records[2], records[4]) if record.messages[0].origin] == [
        "openai", "anthropic",
    ]  # fmt: skip
    assert (records[4].content, reason) == (text, "stop")
    assert text
