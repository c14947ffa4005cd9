"""The waiting surface works in a notebook, whose cells run inside an event loop."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

CELLS = (
    """
import asyncio
import sabir
print("running", asyncio.get_running_loop().is_running())

@sabir.option
def weather(city: str) -> str:
    "Current weather in a city."
    return f"18 °C in {city}"

llm = sabir.adapter("MODEL", settings=sabir.Settings(max_output_tokens=200))
chat = [sabir.user("QUESTION")]
""",
    """
reply = llm.complete_sync(chat, options=[weather])
chat += reply.messages
chat += sabir.answer_sync(reply, [weather])
print("kinds", [message.kind for message in chat])
""",
    """
with llm.stream_sync(chat) as stream:
    text = "".join(stream.text)
    reply = stream.reply()
assert reply.text == text
print("answer", bool(text.strip()))
""",
    """
async with llm.stream(chat) as stream:
    awaited = "".join([text async for text in stream.text])
print("awaited", bool(awaited.strip()))
await llm.aclose()
""",
)


def executed(model: str, question: str, folder: Path) -> str:
    """What the cells print, run one after another in a kernel of their own; a cell that raises fails."""
    cells = [cell.replace("MODEL", model).replace("QUESTION", question) for cell in CELLS]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell.strip()) for cell in cells])
    client = NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}})
    client.execute()
    outputs = [output for cell in notebook.cells for output in cell.outputs]
    return "".join(output.text for output in outputs if output.output_type == "stream" and output.name == "stdout")


@pytest.fixture(autouse=True)
def kernel_of_this_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the user's own Jupyter settings is read or written."""
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name))


def test_cells_complete_stream_and_answer_without_awaiting(tmp_path: Path) -> None:
    """complete_sync, answer_sync and stream_sync run while the kernel's loop does; await works beside them."""
    printed = executed("echo:small", 'call weather {\\"city\\": \\"Rome\\"}', tmp_path)

    assert printed.splitlines() == [
        "running True",
        "kinds ['parts', 'option_call', 'option_result']",
        "answer True",
        "awaited True",
    ]
