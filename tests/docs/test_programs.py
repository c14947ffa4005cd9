"""Four programs as users write them: short, with few names of ours, and doing what they say.

test_examples has type checkers read them, beside the programs of the pages.
"""

import ast
import asyncio
import sys
from decimal import Decimal
from pathlib import Path

import pytest
import sabir
from sabir_session import SQLiteStore
from sabir_testing.scripted import ScriptedAdapter, always, calls

from tests.docs.examples import research_assistant, router, support_agent, two_servers
from tests.docs.running import JPEG

HERE = Path(__file__).parent / "examples"
LIMITS = {"research_assistant": (90, 8), "support_agent": (60, 8), "router": (50, 8), "two_servers": (30, 8)}
"""Program → the most lines, and the most names of ours."""


def names_of_ours(source: str) -> set[str]:
    """The names that a program takes from sabir's packages."""
    tree = ast.parse(source)
    imported = {
        name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("sabir")
        for name in node.names
    }
    return imported | {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "sabir"
    }


def test_the_programs_are_short() -> None:
    assert {path.stem for path in HERE.glob("[!_]*.py")} == set(LIMITS)
    for name, (lines, names) in LIMITS.items():
        source = (HERE / f"{name}.py").read_text("utf-8")
        assert source.count("\n") <= lines, name
        assert len(names_of_ours(source)) <= names, names_of_ours(source)


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_research_assistant_does_all_that_it_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "po.md").write_text("The Po is 652 km long.", "utf-8")
    (tmp_path / "sky.jpg").write_bytes(JPEG)
    llm = ScriptedAdapter(
        calls(search={"words": "po"}), calls(read={"name": "po.md"}), "652 km.", "Grey.",
        '{"title": "Rivers", "findings": ["The Po is 652 km long."]}', model="openai:gpt-5",
    )  # fmt: skip
    lines = [
        "How long is the Po?",
        "/image no.jpg",
        "/image sky.jpg",
        "And this?",
        "/undo",
        "/report",
        "/what",
        "/quit",
    ]
    research_assistant.main(llm, lines)
    said = capsys.readouterr().out

    assert llm.sent[2].results[0].result == "The Po is 652 km long."
    assert [part.kind for part in llm.sent[3].messages[-1].parts] == ["text", "media"]
    for text in (
        "652 km.",
        "error: ",
        "no.jpg",
        "Grey.",
        "took back 2 messages",
        "Rivers\n- The Po is 652 km",
        "/undo",
    ):
        assert text in said
    research_assistant.main(llm, ["/model echo:small", 'call search {"words": "po"}'])
    again = capsys.readouterr().out
    assert "9 messages so far" in again
    assert "['po.md']" in again or '["po.md"]' in again


def test_the_support_agent_answers_in_the_shops_type(tmp_path: Path) -> None:
    """Its options are the customer's, a refund beyond what was paid is refused, and it remembers."""
    shop = support_agent.Shop("Ada", {7: ("a kettle", Decimal(30))})
    llm = ScriptedAdapter(
        calls(find_order={"number": 7}), '{"advice": "Here.", "refund": "99"}', '{"advice": "Here.", "refund": "30"}',
        '{"advice": "You are welcome."}',
    )  # fmt: skip
    with SQLiteStore(tmp_path / "support.db") as store:
        first = asyncio.run(support_agent.answer(llm, shop, "My kettle broke.", store))
        second = asyncio.run(support_agent.answer(llm, shop, "Thanks.", store))

    assert (first.refund, second.refund, second.advice) == (Decimal(30), None, "You are welcome.")
    assert "more than the 30 paid" in llm.sent[2].user_text
    assert llm.last.messages[1].text == "My kettle broke."


def test_the_router_answers_fifty_prompts(capsys: pytest.CaptureFixture[str]) -> None:
    sorts: list[router.Sort] = ["code", "facts", "talk"]
    sorter = ScriptedAdapter(always(lambda sent: f'{{"value": "{sorts[len(sent.user_text) % 3]}"}}'))
    busy = ScriptedAdapter(always(sabir.errors.Overloaded("busy")), settings=sabir.Settings(retries=0))
    made = router.Router(
        sorter, {"code": [busy, "echo:code"], "facts": ["echo:facts", busy], "talk": ["echo:talk", busy]}
    )
    prompts = ["?" * length for length in range(1, 51)]
    answers = asyncio.run(made.answer_all(prompts))

    assert [answer.text for answer in answers] == prompts
    assert {answer.reply.origin.model for answer in answers} == {"code", "facts", "talk"}
    said = capsys.readouterr().out
    assert "{'facts': 17, 'talk': 17, 'code': 16}" in said
    assert "16 calls went to another model" in said


SERVER = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("{name}", log_level="ERROR")

@server.tool()
def {name}(city: str) -> str:
    "Tell it."
    return "{name} of " + city

server.run()
"""


def test_the_agent_has_the_options_of_two_servers(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A call reaches the server that has it."""
    servers = []
    for name in ("weather", "news"):
        (tmp_path / f"{name}.py").write_text(SERVER.format(name=name), "utf-8")
        servers.append([sys.executable, str(tmp_path / f"{name}.py")])
    llm = ScriptedAdapter(calls(weather={"city": "Rome"}, news={"city": "Bern"}), "Rain, and nothing new.")

    assert asyncio.run(two_servers.main(llm, *servers, "What is up?")) == "Rain, and nothing new."
    assert set(llm.sent[0].option_names) == {"weather", "news"}
    assert [result.result for result in llm.last.results] == [{"result": "weather of Rome"}, {"result": "news of Bern"}]
    assert set(capfd.readouterr().out.splitlines()) == {"weather {'city': 'Rome'}", "news {'city': 'Bern'}"}
