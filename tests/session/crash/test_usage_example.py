"""The usage example of the specification of inner messages, as it is written, in two processes.

process 1   setup · observer · evaluate ──▶ checkpoint.json     killed inside of its second option
process 2   from_json · rollback · evaluate(resume=True)        finishes the run, and is inspected
"""

import json
import signal
import subprocess
import sys
from pathlib import Path

SETUP = """
from pathlib import Path
import json, os, signal
import sabir
from sabir import ToolContext
from sabir_session import (
    InnerMessage, InProcessEventBus, Session, Snapshot, get_inner_messages, get_latest_evaluation_id,
    Prompt, evaluate_sync, inner_message_append,
)
from sabir_testing.scripted import ScriptedAdapter, calls

def search(query: str) -> str:
    "Search."
    Path("ran.txt").open("a").write(f"search {ToolContext.current().is_resume}\\n")
    return f"found {query}"

def store(text: str) -> str:
    "Store."
    Path("ran.txt").open("a").write(f"store {ToolContext.current().is_resume}\\n")
    if not ToolContext.current().is_resume:
        os.kill(os.getpid(), signal.SIGKILL)
    return "stored"

prompt = Prompt(ns="notes", key="keep", system="Be brief.", messages=[sabir.user("Keep what you find.")])
options = [search, store]
"""

BASIC_RESUME = """
# Setup session with recording
session = Session(bus=InProcessEventBus())
session.mutate(InnerMessage).register(
    InnerMessage,
    inner_message_append,
)

# Save checkpoint after each message
def save_on_change(old, new):
    if len(new) > len(old):
        Path("checkpoint.json").write_text(session.snapshot().to_json())

session.observe(InnerMessage, save_on_change)

# Run evaluation
adapter = ScriptedAdapter(calls(search={"query": "boats"}, store={"text": "boats"}))
response = evaluate_sync(adapter, prompt, session=session, options=options)
"""

RESUME_FROM_CHECKPOINT = """
# Load checkpoint
snapshot = Snapshot.from_json(Path("checkpoint.json").read_text())

session = Session(bus=InProcessEventBus())
session.mutate(InnerMessage).register(
    InnerMessage,
    inner_message_append,
)
session.mutate().rollback(snapshot)

# Resume - will detect pending tools and continue
adapter = ScriptedAdapter("Kept.")
response = evaluate_sync(adapter, prompt, session=session, options=options, resume=True)

# Get all messages
messages = session.select_all(InnerMessage)

eval_id = get_latest_evaluation_id(session)
conversation = get_inner_messages(session, eval_id)

print(json.dumps({
    "text": response.text,
    "asked": len(adapter.sent),
    "results": [result.result for result in adapter.last.results],
    "shown": [f"[{msg.sequence}] {msg.role}: {msg.content[:50]}" for msg in conversation],
    "all": len(messages),
}))
"""


def run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own."""
    command = [sys.executable, "-c", SETUP + program]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def test_a_checkpoint_that_an_observer_writes_finishes_the_run_in_a_new_process(tmp_path: Path) -> None:
    """WI-51: the first process dies in its second option; the file that it left is enough, and the first option does
    not run again (WI-49 leaves the second to know that it does)."""
    killed = run(BASIC_RESUME, tmp_path)
    assert (killed.returncode, killed.stderr) == (-signal.SIGKILL, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint.json", "ran.txt"]

    resumed = run(RESUME_FROM_CHECKPOINT, tmp_path)
    assert (resumed.returncode, resumed.stderr) == (0, "")
    assert json.loads(resumed.stdout) == {
        "text": "Kept.",
        "asked": 1,
        "results": ["found boats", "stored"],
        "shown": [
            "[0] system: Be brief.", "[1] user: Keep what you find.", "[2] assistant: ", "[3] tool: found boats",
            "[4] tool: stored", "[5] assistant: Kept.",
        ],
        "all": 6,
    }  # fmt: skip
    assert (tmp_path / "ran.txt").read_text().split("\n") == ["search False", "store False", "store True", ""]
