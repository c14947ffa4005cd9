"""The benchmarks measure what they say: the work, the checks, the goals and the page; nothing here is timed."""

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from benchmarks import answers, compare, environments, goals, profiles, report, results, servers, tables, work
from benchmarks.checks import differs, refused
from benchmarks.contenders import LABELS, MODULES, OWN
from benchmarks.contenders import sabir as sabir_contender
from benchmarks.rows import ROWS
from benchmarks.work import Given


def done(name: str, task: str, given: Given) -> Any:
    """What a contender's task comes to, as evidence; the limit's loops need orjson."""
    pytest.importorskip("orjson")
    contender = import_module(f"benchmarks.contenders.{MODULES[name]}").CONTENDERS[name]
    run = contender.tasks[task](given)
    getattr(run, "renew", lambda: None)()
    return contender.evidence.get(task, lambda given, found: found)(given, run())


@pytest.mark.parametrize("size", [1, 2, 10, 100, 1000, 5000])
def test_a_conversation_has_as_many_messages_as_asked_for(size: int) -> None:
    """One system, then user, call, result, text, and again; texts of 60 to 200 characters."""
    entries = work.conversation(size)

    assert len(entries) == size
    assert [entry["kind"] for entry in entries[:6]] == ["system", "user", "call", "result", "text", "user"][:size]
    assert all(60 <= len(entry["text"]) <= 200 for entry in entries if "text" in entry)
    assert entries == work.conversation(size + 5 - size % 4)[:size]


@pytest.mark.parametrize(("what", "share"), [("image", 10), ("reasoning", 5), ("elsewhere", 25)])
def test_agents_have_more_than_texts_and_calls(what: str, share: int) -> None:
    """Images with every tenth message, reasoning with every fifth; a call and a text of fifty are of other makers."""
    entries = work.conversation(1000, work.AGENTS)

    assert sum(what in entry for entry in entries) == 1000 // share
    assert [{name: entry[name] for name in entry.keys() & {"kind", "text"}} for entry in entries] == [
        {name: entry[name] for name in entry.keys() & {"kind", "text"}} for entry in work.conversation(1000)
    ]


@pytest.mark.parametrize("wire", [wire for wire in work.WIRES if wire != "google.generate_content"])
def test_the_ids_of_other_makers_are_refused_as_they_are(wire: str) -> None:
    """Whoever sends them so is counted, and named on the page; sabir and the limit send others."""
    given = Given(wire, 100, talk=work.AGENTS)
    body = sabir_contender.Afresh(given)()
    ids = [entry["id"] for entry in work.entries_of(given) if "|" in entry.get("id", "")]

    assert len(ids) == 4
    assert refused("render", given, body) == 0
    assert refused("render", given, body.replace(b'"call_000002"', f'"{ids[0]}"'.encode())) == 1


def test_every_call_of_a_conversation_has_its_result() -> None:
    """The one after it, of the same id; a conversation that would end with an open call is refused."""
    entries = work.conversation(1000)
    calls = [number for number, entry in enumerate(entries) if entry["kind"] == "call"]

    assert all(entries[number]["id"] == entries[number + 1]["id"] for number in calls)
    assert len({entries[number]["id"] for number in calls}) == len(calls) == 250
    with pytest.raises(ValueError, match="no result"):
        work.conversation(7)


RENDERED = ("render", "render_warm", "shared", "call", "loop")
WORK = [
    *(Given(wire, 10, talk=talk) for wire in work.WIRES for talk in (work.PLAIN, work.AGENTS)),
    *(Given("google.generate_content", 10, "", 1, talk, work.GEMINI_3) for talk in (work.PLAIN, work.AGENTS)),
]
TASKS = [
    *((task, given) for task in RENDERED for given in WORK if (task, given.wire) != ("loop", "openai.responses")),
    *(("decode", Given(wire)) for wire in work.WIRES),
    ("history", Given("at rest")),
]


@pytest.mark.parametrize(
    ("contender", "task", "given"),
    [(name, *each) for name in ("sabir", "limit") for each in TASKS] + [("sabir", "memory", Given("three dialects"))],
)
def test_the_work_is_done(contender: str, task: str, given: Given) -> None:
    """Requests say what the conversation says, replies hold what the server sent: for every wire, N=10."""
    assert not differs(task, given, done(contender, task, given))


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with servers.running("stub", 50) as found:
        yield found


@pytest.mark.parametrize("wire", work.WIRES)
@pytest.mark.parametrize("task", ["stream", "loopback"])
def test_the_stub_answers_and_streams_on_every_wire(task: str, wire: str, url: str) -> None:
    """What is read from it is what it is said to send: the whole text, the call, every argument."""
    given = Given(wire, 50 if task == "stream" else 10, url)

    assert not differs(task, given, done("sabir", task, given))


@pytest.mark.parametrize("given", WORK)
def test_the_kept_prefix_gives_the_bytes_of_the_whole(given: Given) -> None:
    """Whatever turn it is at."""
    limit = pytest.importorskip("benchmarks.contenders.limit")
    whole, prefix = (limit.CONTENDERS[name].tasks["render_warm"](given) for name in ("limit", "kept"))

    for _ in range(4):
        whole.renew()
        prefix.renew()
        assert json.loads(prefix()) == json.loads(whole())


@pytest.mark.parametrize("wire", work.WIRES)
def test_other_work_is_noticed(wire: str) -> None:
    """A message more, a text changed, a call lost, an image or a signature changed."""
    given = Given(wire, 10)
    seen = Given(wire, 10, talk=work.AGENTS)
    shown = sabir_contender.Afresh(seen)()
    body = json.loads(sabir_contender.Afresh(given)())
    field = next(name for name in ("messages", "input", "contents") if name in body)

    assert not differs("render", given, body)
    assert "number of entries" in differs("render", given, {**body, field: body[field][:-1]})
    assert "entry" in differs("render", given, json.loads(json.dumps(body).replace("umbrella", "parasol")))
    assert differs("decode", given, {"text": answers.reply_text(), "calls": []})
    for entry in work.entries_of(seen):
        for said in (entry.get("image", "")[-40:], entry.get("reasoning", {}).get("seal", "")[:40]):
            assert not said or "entry" in differs("render", seen, shown.replace(said.encode(), b"A" * 40))


def records(**figures: float) -> list[goals.Record]:
    case = {"task": "call", "wire": "openai.chat", "size": 1000, "concurrency": 1}
    return [{**case, "contender": name, "cpu": cpu, "wall": cpu} for name, cpu in figures.items()]


def test_the_worst_case_decides_about_a_goal() -> None:
    """And what was not measured is neither met nor missed."""
    ceiling = goals.at_most(2, "limit", "≤ 2 × the limit", sizes=(1000,))
    floor = goals.faster(50, {"openai.chat": ("openai_sdk", "mirascope")}, "≥ 50 ×")

    assert ceiling.judge(records(limit=1, sabir=1.9)).word == "met"
    assert ceiling.judge([*records(limit=1, sabir=1.9), *records(limit=1, sabir=2.1)]).word == "missed"
    assert floor.judge(records(sabir=1, openai_sdk=100, mirascope=49)).word == "missed"
    assert floor.judge(records(sabir=1, openai_sdk=100, mirascope=51)).word == "met"
    assert ceiling.judge(records(sabir=1)).word == "not measured"
    assert ceiling.judge(records(limit=1, sabir=1), ["sabir (call, openai.responses, 10)"]).word == "not measured"


@pytest.mark.parametrize("name", ROWS)
def test_every_row_has_goals_and_cases(name: str) -> None:
    """And runs under its own name; two show figures about which nothing was promised."""
    row = ROWS[name]

    assert bool(row.goals) == (name not in ("throughput", "actor_memory"))
    assert row.cases
    assert set(row.contenders) & set(OWN)


def test_every_contender_says_what_it_requires() -> None:
    """Read without importing it: its library is not here."""
    assert all(environments.requirements_of(name) for name in [*LABELS, "plots"])


def test_a_row_is_printed_at_eighty_columns() -> None:
    """With each contender's ratio, and whoever is absent by name and reason."""
    both = [{**each, "refused": 20} for each in records(openai_sdk=5e6, sabir=2.5e6)]
    found = {"records": both, "absent": {"llm": "it cannot be installed"}, "seconds": 1.0}

    printed = tables.printed(ROWS["call"], found)

    assert "5.00 (2.00)" in printed
    assert "absent: llm: it cannot be installed" in printed
    assert "ids that the wire refuses go as they came: openai SDK (openai.chat); sabir" in printed
    assert "gate ≥ 18 × faster than the typed calls of OpenAI and Google, N=1000: NOT" in printed
    assert max(map(len, printed.splitlines())) <= 80


def test_stored_results_are_read_as_they_were_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row replaces what was stored of it; a reason loses what is of one machine."""
    monkeypatch.setattr(results, "STORED", tmp_path / "results.json")
    found = {"records": records(limit=1.26, sabir=2), "absent": {"llm": "no /such/file at hand"}, "seconds": 1.0}

    results.store("call", {"records": [], "absent": {}, "seconds": 2.0}, quick=False)
    results.store("call", found, quick=False)
    row = results.load(tmp_path / "results.json")["rows"]["call"]

    assert row["records"] == records(limit=1.3, sabir=2)
    assert row["absent"] == {"llm": "no at hand"}


def test_two_runs_are_compared_by_their_limits() -> None:
    """A machine that is slower as a whole changes nothing; sabir alone does."""
    before, slower, worse = (
        {"rows": {"call": {"records": records(**figures)}}}
        for figures in ({"limit": 1, "sabir": 2}, {"limit": 3, "sabir": 6}, {"limit": 1, "sabir": 3})
    )

    assert compare.compared(before, slower) == []
    assert compare.compared(before, worse) == ["1.50 × call, openai.chat, 1000: 2.00 → 3.00"]


def test_the_page_is_what_the_stored_results_say() -> None:
    """If this fails, run `python -m benchmarks.report`."""
    page = report.PAGE.read_text("utf-8")

    assert page.count(report.BEGIN) == page.count(report.END) == 1
    assert page == report.with_measured(page, results.load(results.STORED))


def test_every_curve_that_was_measured_has_its_plot() -> None:
    """The page shows it."""
    measured = [ROWS[name] for name in results.load(results.STORED)["rows"]]
    plots = [results.FOLDER / f"{row.name}.svg" for row in measured if row.curve]

    assert plots
    assert all(plot.read_text("utf-8").count("<svg") == 1 for plot in plots)


def test_a_profile_names_the_modules_that_take_the_time() -> None:
    """Shares add up to at most all, and core's own modules are among what renders."""
    case = profiles.Case("Render", "render", Given("openai.chat", 100), 2, 100, "message")

    found = profiles.profiled(case)

    assert 0 < sum(share for _, share, _ in found["modules"]) <= 1
    assert "`sabir.rendering.renderer`" in [module for module, _, _ in found["modules"]]
