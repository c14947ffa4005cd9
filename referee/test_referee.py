"""The judge notices what a request loses and what its target refuses; sabir fails no cell; the page shows the results.

Only sabir is called here, in this process. The other libraries need environments of their own: `python -m referee`.
"""

import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from referee import judge, replies, report, results, rules, trial
from referee.contenders import MODELS
from referee.contenders import sabir as sabir_contender
from referee.worker import Referee

Entry = dict[str, Any]
HISTORIES = trial.histories()
REFEREE = Referee(sabir_contender)


class InProcess(trial.Library):
    """sabir in this process, or a function that plays a library."""

    def __init__(self, answer: Callable[[str, Entry], Entry] = REFEREE.request) -> None:
        self.name, self.answer = "sabir", answer
        self.usual = {wire: answer(wire, HISTORIES["plain"])["reports"] for wire in MODELS}

    def request(self, wire: str, history: Entry) -> Entry:
        return self.answer(wire, history)


@pytest.fixture(scope="module")
def sabir() -> InProcess:
    return InProcess()


def changed(body: Entry, pattern: str, replacement: str) -> Entry:
    """The body with each match of a pattern in its JSON replaced; at least one matches."""
    text, count = re.subn(pattern, replacement, json.dumps(body))
    assert count
    other: Entry = json.loads(text)
    return other


def test_histories_fit_the_published_schema_and_each_mark_occurs_once() -> None:
    schema = json.loads((results.FOLDER / "history.schema.json").read_text("utf-8"))
    words = Counter(judge.MARK.findall(json.dumps(list(HISTORIES.values()))))

    for history in HISTORIES.values():
        jsonschema.validate(history, schema)
    assert set(words.values()) == {1}


@pytest.mark.parametrize("wire", MODELS)
def test_sabir_is_never_refused_and_loses_nothing_silently(sabir: InProcess, wire: str) -> None:
    cells = [sabir.cell(wire, name, history) for name, history in HISTORIES.items()]

    assert [cell for cell in cells if cell["verdict"] in (*judge.FAILING, judge.RAISED, judge.UNCLAIMED)] == []


@pytest.mark.parametrize("wire", MODELS)
@pytest.mark.parametrize("name", ["plain", "image", "image_in_result", "seed", "reasoning_of_anthropic"])
def test_judge_notices_each_missing_mark(sabir: InProcess, name: str, wire: str) -> None:
    """Whatever its kind: a text, an argument, a result, an image's bytes, a setting, a signature."""
    history = HISTORIES[name]
    answer = sabir.request(wire, history)
    present = set(judge.marks(history, wire)) - set(judge.missing(history, wire, answer["body"]))

    for mark in present:
        body = changed(answer["body"], re.escape(mark.text), "1" if mark.kind == "setting seed" else "gone")
        assert mark in judge.missing(history, wire, body)
        assert judge.judge(history, wire, {**answer, "body": body, "reports": []}, [])["verdict"] != judge.COMPLETE


@pytest.mark.parametrize("wire", MODELS)
def test_judge_notices_results_that_changed_places(sabir: InProcess, wire: str) -> None:
    history = HISTORIES["parallel_calls"]
    first, second = (part["content"][0]["text"][-8:] for part in history["messages"][2]["content"])
    answer = sabir.request(wire, history)
    body = changed(changed(changed(answer["body"], first, "MARK"), second, first), "MARK(?!\\d)", second)

    assert [mark.kind for mark in judge.mispaired(history, wire, body)] == ["pair", "pair"]
    assert list(judge.mispaired(history, wire, answer["body"])) == []


def test_google_results_belong_to_calls_by_id_and_else_by_order(sabir: InProcess) -> None:
    history, wire = HISTORIES["parallel_calls"], "google.generate_content"
    body = sabir.request(wire, history)["body"]
    calls, results = (
        [part[kind] for content in body["contents"] for part in content["parts"] if kind in part]
        for kind in ("functionCall", "functionResponse")
    )
    first, second = results
    first["response"], second["response"] = second["response"], first["response"]
    assert len(list(judge.mispaired(history, wire, body))) == 2

    for number, (call, result) in enumerate(zip(calls, reversed(results), strict=True)):
        call["id"] = result["id"] = f"id_{number}"
    assert list(judge.mispaired(history, wire, body)) == []


REFUSED = {
    "openai.chat": [
        ("plain", '"tool_call_id": "call_1"', '"tool_call_id": "call_2"', "must be a response to a preceding message"),
        ("plain", '"role": "tool"', '"role": "user"', "must be followed by tool messages"),
        ("plain", "call_1", "c" * 65, "string too long"),
        ("root_union", '"type": "object", "properties"', '"anyOf": [], "properties"', "at the top level"),
        ("array_without_items", '"items": ', '"entries": ', "array schema missing items"),
        ("image", '"role": "assistant"', '"role": "robot"', "not in the SDK's types"),
    ],
    "openai.responses": [
        ("plain", '"type": "function_call_output"', '"role": "user", "content": "x"', "no tool output found"),
        ("plain", '"call_id": "call_1", "output"', '"call_id": "call_2", "output"', "no tool call found"),
        ("plain", "call_1", "c" * 65, "string too long"),
    ],
    "anthropic.messages": [
        ("plain", '"tool_use_id": "call_1"', '"tool_use_id": "call_2"', "without `tool_result` blocks"),
        ("plain", "call_1", "call|1", "should match pattern"),
        ("plain", '"text": "I look[^"]*"', '"text": ""', "must be non-empty"),
        ("white_space", "Umbrella[^\"]*", " ", "must contain non-whitespace text"),
        ("late_system", '"role": "assistant"', '"role": "system"', "role 'system' is not supported"),
        ("property_names", "filter_name_|filter[^\"]*name[^\"]*", "filter[name]", "property keys should match"),
    ],
    "google.generate_content": [
        ("plain", '"functionResponse": {', '"text": "x", "ignored": {', "number of function response parts"),
        ("open_turn", '"thoughtSignature": "[^"]*"', '"thought": false', "missing a thought_signature"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("wire", "name", "pattern", "replacement", "complaint"),
    [(wire, *case) for wire, cases in REFUSED.items() for case in cases],
)
def test_rules_notice_what_a_vendor_refuses(
    sabir: InProcess, wire: str, name: str, pattern: str, replacement: str, complaint: str
) -> None:
    """A body that is accepted, and one that differs in the one thing that the vendor's message names."""
    body = sabir.request(wire, HISTORIES[name])["body"]

    assert rules.complaints(wire, body, set()) == []
    assert complaint in " ".join(rules.complaints(wire, changed(body, pattern, replacement), set()))


def test_signature_of_another_vendor_is_refused_where_the_vendor_checks_it(sabir: InProcess) -> None:
    history = HISTORIES["reasoning_of_anthropic"]
    body = sabir.request("anthropic.messages", history)["body"]
    (signature,) = judge.foreign(history, "openai.chat")

    assert rules.complaints("anthropic.messages", body, set()) == []
    assert rules.complaints("anthropic.messages", body, {signature}) == ["invalid signature: another vendor created it"]


def echoed(reports: Callable[[Entry], list[str]]) -> Callable[[str, Entry], Entry]:
    """A library that sends all texts but the last message's, and reports what a function says."""

    def answer(wire: str, history: Entry) -> Entry:
        texts = [{"role": "user", "content": json.dumps(message)} for message in history["messages"][:-1]]
        body = {"model": "m", "messages": texts, "options": history["options"]}
        return {"body": body, "error": "", "reports": reports(history)}

    return answer


@pytest.mark.parametrize(
    ("reports", "verdict"),
    [
        (lambda history: [], judge.SILENT),
        (lambda history: [] if history is HISTORIES["plain"] else ["warning: models change"], judge.SILENT),
        (lambda history: ["dropped: the last message"] if len(history["messages"]) == 3 else [], judge.REPORTED),
    ],
)
def test_report_counts_only_if_it_is_about_what_was_lost(reports: Callable[[Entry], list[str]], verdict: str) -> None:
    """A report that the library makes without the lost message too says nothing of the message."""
    library = InProcess(echoed(reports))

    assert library.judged("openai.chat", {**HISTORIES["image"], "options": []})[0]["verdict"] == verdict


def test_report_that_the_plain_history_has_too_is_left_out() -> None:
    """Its numbers may differ."""
    library = InProcess(echoed(lambda history: [f"warning: request {len(history['messages'])}"]))

    assert library.judged("openai.chat", HISTORIES["image"])[0]["reports"] == []


def test_failing_history_is_reduced_to_the_messages_that_it_takes() -> None:
    library = InProcess(echoed(lambda history: []))

    cell = library.cell("openai.chat", "stop", {**HISTORIES["stop"], "settings": {}})

    assert cell["smallest"] == HISTORIES["stop"]["messages"][-1:]


@pytest.mark.parametrize("wire", MODELS)
def test_reply_of_each_wire_is_read_back(wire: str) -> None:
    """The bodies with which a vendor's server is played are what sabir's own decoder reads."""
    content = [
        part for part in HISTORIES["reasoning_of_openai"]["messages"][1]["content"] if part["kind"] != "reasoning"
    ]
    REFEREE.server.answer = replies.body(wire, {"content": content})
    messages, ids = sabir_contender.connect(wire, REFEREE.server.url).reply(HISTORIES["plain"])
    REFEREE.server.bodies.clear()

    assert ids == ["call_openai1"]
    assert messages[0].text == content[0]["text"]


def test_page_shows_the_stored_results() -> None:
    """Also that each failing cell has its history and body in the file that the page links to."""
    stored = results.load(results.STORED)
    page = report.PAGE.read_text("utf-8")

    assert "\n\n".join(report.sections(stored)) in page
    for cell in stored["cells"]:
        if cell["verdict"] in judge.FAILING:
            assert cell in json.loads((report.CELLS / f"{cell['history']}.json").read_text("utf-8"))
