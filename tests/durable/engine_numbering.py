"""Do branches of several steps each find their own results after a crash, where the engine numbers the steps?

    uv run python -m tests.durable.engine_numbering          five runs, each killed and resumed in a new process

Three branches run four steps each at once; a step takes a random moment and returns its own name. What a resumed run
gives is printed: a branch that got another's result shows another's letter. No test: see docs/explanation/decisions/
0017-bound-calls-have-a-ledger.md, and tests/durable for what sabir does instead.
"""

import asyncio
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from dbos import DBOS, SetWorkflowID

BRANCHES, STEPS, RUNS = "abc", 4, 5


async def step(name: str) -> str:
    """One step."""
    await asyncio.sleep(random.random() * 0.05)
    return name


async def branch(letter: str) -> list[str]:
    """Four steps after one another; where asked to, the process dies in the midst of the second branch."""
    found = []
    for number in range(STEPS):
        found.append(await DBOS.run_step_async({"name": "policy"}, step, f"{letter}{number}"))
        if "die" in sys.argv and letter == "b" and number == 2:
            os._exit(9)
    return found


async def run(folder: str) -> None:
    """The workflow, begun or resumed."""

    @DBOS.workflow(name="branches")
    async def branches() -> list[list[str]]:
        return await asyncio.gather(*map(branch, BRANCHES))

    url = f"sqlite:///{folder}/engine.db"
    config = {"name": "numbering", "system_database_url": url, "application_version": "1", "log_level": "CRITICAL"}
    DBOS(config={**config, "run_admin_server": False})  # type: ignore[typeddict-item]
    DBOS.launch()
    if "die" in sys.argv:
        with SetWorkflowID("run"):
            handle = await DBOS.start_workflow_async(branches)
    else:
        handle = await DBOS.retrieve_workflow_async("run")
    for found in await handle.get_result():
        print(" ".join(found), end="   ")
    print()
    DBOS.destroy()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(run(sys.argv[1]))
    else:
        for _ in range(RUNS):
            with tempfile.TemporaryDirectory() as place:
                again = [sys.executable, "-m", "tests.durable.engine_numbering", place]
                subprocess.run([*again, "die"], stderr=subprocess.DEVNULL, check=False)
                subprocess.run(again, stderr=subprocess.DEVNULL, check=True)
        print(f"{Path(__file__).name}: {RUNS} runs")
