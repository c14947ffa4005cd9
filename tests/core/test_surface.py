"""What a user sees of the library beside its results: tracebacks, help(), pydoc, completion at a prompt."""

import importlib
import inspect
import json
import pydoc
import re
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any, Unpack
from unittest.mock import create_autospec

import pytest
import sabir
from sabir.authoring import CallArguments, Frozen, SyncClosing
from sabir.base.surface import surface

OURS = re.compile(r'^  File "[^"]*/sabir(?:_\w+)?/', re.MULTILINE)
FEW = 3
"""The most frames of ours in a traceback."""
NOTE = "The question is kept: ask() tries again, drop_last() takes it back."
"""What a conversation adds to an error."""
PROGRAMS = {
    "a key that is missing": "sabir.adapter('openai:gpt-5').complete_sync('hi')",
    "a key that is missing in a loop": "asyncio.run(sabir.adapter('anthropic:claude-sonnet-4-5').complete('hi'))",
    "a key that is missing while streaming": "list(sabir.adapter('openai:gpt-5').stream_sync('hi').text)",
    "a key that is missing at the end of a stream": "sabir.adapter('google:gemini-3').stream_sync('hi').reply()",
    "a key that a stream misses in a loop": "asyncio.run(sabir.adapter('openai:gpt-5').stream('hi').reply())",
    "a key that every member misses": "sabir.fallback('openai:gpt-5', 'anthropic:claude').complete_sync('hi')",
    "a key that a conversation misses": "sabir_session.Conversation('openai:gpt-5').ask_sync('hi')",
    "a key that a conversation misses in a loop": "asyncio.run(sabir_session.Conversation('openai:gpt-5').ask('hi'))",
    "a plugin that a conversation misses": "sabir_session.Conversation('nobody:x')",
    "a plugin that is missing": "sabir.adapter('nobody:x')",
    "a dialect that is unknown": "sabir.adapter('openai.talk:gpt-5')",
    "a pure dialect that is unknown": "sabir.dialect('openai.talk')",
    "no message": "sabir.adapter('echo:m').complete_sync(42)",
    "no message among messages": "sabir.adapter('echo:m').render([sabir.user('hi'), {'role': 'user'}])",
    "no content": "sabir.user(42)",
    "half a character": "sabir.user(chr(0xd800))",
    "no file": "sabir.image('missing.png')",
    "no option": "sabir.adapter('echo:m').complete_sync('hi', options=[3])",
    "no history": "sabir.loads('[{}]')",
    "a loss that is refused": (
        "sabir.adapter('openai:gpt-5', strict=True).complete_sync("
        "sabir.user(sabir.video('https://host/a.mp4'), 'What is it?'))"
    ),
    "a setting of a wrong name": "sabir.Settings(temprature=1)",
    "a setting of a wrong type": "sabir.Settings(temperature='hot')",
    "a vendor's setting of a wrong name": (
        "sabir.adapter('openai:gpt-5').render('hi', settings=sabir.Settings(vendor={'openai': {'nothing': 1}}))"
    ),
    "another library's argument": "sabir.adapter('echo:m').complete_sync('hi', tools=[])",
    "a name that is unknown": "sabir.Mesage",
}
"""Programs of one line, each of which ends with one error."""


EACH = """
import asyncio, json, sys, traceback, sabir, sabir_session
told = {}
for name, line in json.load(sys.stdin).items():
    try:
        exec(compile(line, "user.py", "exec"))
    except Exception:
        told[name] = traceback.format_exc()
json.dump(told, sys.stdout)
"""


def run(*program: str, **given: Any) -> subprocess.CompletedProcess[str]:
    """A program in a process of its own, where no variable holds a key."""
    given |= {"capture_output": True, "text": True, "env": {"PATH": ""}}
    return subprocess.run([sys.executable, *program], check=False, **given)


@pytest.fixture(scope="module")
def told() -> dict[str, str]:
    """What Python prints of each program's error."""
    found: dict[str, str] = json.loads(run("-c", EACH, input=json.dumps(PROGRAMS)).stdout)
    return found


@pytest.mark.parametrize("what", PROGRAMS)
def test_a_traceback_has_few_frames_of_ours(what: str, told: dict[str, str]) -> None:
    """It ends with one error of ours, and no other was raised before it."""
    assert 1 <= len(OURS.findall(told[what])) <= FEW, told[what]
    assert told[what].count("Traceback") == 1, told[what]
    last = told[what].rstrip().removesuffix(NOTE).splitlines()[-1]
    assert last.startswith(("sabir.errors.", "AttributeError: module 'sabir'"))


def test_a_program_that_a_user_runs_ends_so(tmp_path: Path) -> None:
    """The line of the program, the method that it called, the line that raised."""
    (tmp_path / "program.py").write_text("import sabir\n\nsabir.adapter('openai:gpt-5').complete_sync('hi')\n")
    ran = run("program.py", cwd=tmp_path)

    places = re.findall(r'File "[^"]*?([\w.]+)", line \d+, in (.*)', ran.stderr)
    assert places[0] == ("program.py", "<module>")
    assert places[1] == ("adapter.py", "complete_sync")
    assert len(places) == 3 and "raise CredentialsMissing" in ran.stderr.splitlines()[-2]


def functions_of(error: BaseException) -> list[str]:
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def test_frames_that_are_not_ours_stay() -> None:
    """A function of the user's that raises one of our errors in the depth of a call, and another error's whole way."""

    def no_key() -> str:
        raise sabir.CredentialsMissing("the vault is closed")

    def broken() -> str:
        raise ZeroDivisionError

    with pytest.raises(sabir.CredentialsMissing) as closed:
        sabir.adapter("openai:m", api_key=no_key).complete_sync("hi")
    with pytest.raises(ZeroDivisionError) as other:
        sabir.adapter("openai:m", api_key=broken).complete_sync("hi")

    assert functions_of(closed.value)[1:] == ["complete_sync", "no_key"]
    assert functions_of(other.value)[-1] == "broken" and len(functions_of(other.value)) > 2 * FEW


def test_the_log_has_the_whole_way(caplog: pytest.LogCaptureFixture) -> None:
    """At the level DEBUG; without the words of what caused it, in which a vendor may repeat a key."""
    caplog.set_level("DEBUG", "sabir")
    with pytest.raises(sabir.SettingsInvalid):
        sabir.adapter("openai:m").render("hi", settings=sabir.Settings(vendor={"openai": {"nothing": 1}}))

    assert len(OURS.findall(caplog.text)) > FEW and "SettingsInvalid: vendor['openai']" in caplog.text


def test_pytest_shows_the_test_and_the_error(pytester: pytest.Pytester) -> None:
    """No source of ours: the error's one line says what to do."""
    pytester.makepyfile("""
        import sabir
        def test_call(): sabir.adapter("echo:m").complete_sync(42)
        def test_settings(): sabir.Settings(temprature=1)
    """)
    shown = pytester.runpytest("-p", "no:cacheprovider", "-p", "no:asyncio").stdout.str()

    assert shown.count("E   sabir.errors.") == 2
    assert "adapter.py" not in shown and "raise " not in shown


CALLS = ("render", "complete", "complete_sync", "stream", "stream_sync")


@pytest.mark.parametrize("kind", [sabir.Adapter, sabir.ModelAdapter, sabir.FallbackAdapter])
@pytest.mark.parametrize("name", CALLS)
def test_help_shows_the_arguments_of_a_call(kind: type, name: str) -> None:
    """By their names, with their types, and what each means."""
    method = getattr(kind, name)
    shown = pydoc.plain(pydoc.render_doc(method))

    signature = inspect.signature(method)
    assert list(signature.parameters) == ["self", "messages", *CallArguments.__annotations__]
    assert (
        "strict: collections.abc.Collection[" in shown
        and "settings: sabir.vocabulary.settings.Settings | None" in shown
    )
    assert "`options` are offered to the model" in shown and "`strict` names the kinds of loss" in shown
    assert inspect.iscoroutinefunction(method) == (name == "complete")


class Asking(SyncClosing):
    """As a plugin writes an adapter around another."""

    def ask(self, **how: Unpack[CallArguments]) -> str:
        """Ask."""
        return self._ask(how)

    def _ask(self, how: CallArguments) -> str:
        return sabir.adapter("echo:m").complete_sync([sabir.user("hi"), 42], **how).text  # type: ignore[list-item]

    def close(self) -> None:
        """Nothing is open."""


def test_what_a_plugin_lets_a_user_hold_is_described_alike() -> None:
    """What a block closes: nothing is written above its methods."""
    with Asking() as asking, pytest.raises(sabir.errors.WrongWord) as caught:
        asking.ask()

    assert list(inspect.signature(asking.ask).parameters) == list(CallArguments.__annotations__)
    assert "`strict` names the kinds of loss" in (asking.ask.__doc__ or "")
    assert functions_of(caught.value)[1:] == ["ask", "_ask", "check_messages"]  # this file is not the library's


def test_help_shows_what_sabir_adapter_takes() -> None:
    """Without what stands there for other libraries' names alone; what a medium and settings take is shown as well."""
    assert "misnamed" not in str(inspect.signature(sabir.adapter))
    assert "mime: str | None = None" in str(inspect.signature(sabir.image))
    assert "temperature: float | None = None" in str(inspect.signature(sabir.Settings))


def test_pydoc_is_the_librarys_own_text() -> None:
    """Each public name with its own words; of pydantic neither the methods nor their texts."""
    page = pydoc.plain(pydoc.render_doc(sabir))
    models = [found for name in sabir.__all__ if isinstance(found := getattr(sabir, name), type(sabir.Message))]

    assert "inherited from pydantic" not in page and "!!!" not in page and "__getattr__" not in page
    for name in sabir.__all__:
        assert re.search(rf"^    (class |async )?{name}\b", page, re.MULTILINE), name
        if inspect.isroutine(found := getattr(sabir, name)) or inspect.isclass(found):
            assert found.__doc__, name
    assert len(models) > 30
    for model in models:
        lines = pydoc.render_doc(model).splitlines()
        assert len(lines) < 150, model  # pydantic's own would be three hundred more
        assert inspect.getdoc(model) and model.__doc__ != sabir.Message.__base__.__doc__


def test_a_class_is_read_with_its_fields() -> None:
    """By the names under which they are given; a model can still do all that pydantic's can."""
    assert str(inspect.signature(sabir.Loss)).startswith("(*, kind: Literal['dropped',")
    assert str(inspect.signature(sabir.ModelInfo)).endswith("facts: Any = {})")
    assert {"text", "parts", "model_copy", "model_dump"} <= set(dir(sabir.Message)) & set(dir(sabir.user("hi")))
    assert create_autospec(sabir.Message).model_dump is not None

    class Own(Frozen):
        """With a constructor of its own, and a class that is not there yet."""

        other: "NotThere | None" = None  # type: ignore[name-defined]  # noqa: F821

        def __init__(self, number: int) -> None: ...

    class Later(Frozen):
        """With a class that is not there yet."""

        other: "NotThere | None" = None  # type: ignore[name-defined]  # noqa: F821

    assert str(inspect.signature(Own)) == "(number: int) -> None"
    assert "NotThere" in str(inspect.signature(Later))


def test_frames_of_a_plugin_of_another_author_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever writes one wants to see where it failed."""
    plugin = "import sabir\ndef ring(): inner()\ndef inner(): sabir.user(7)\n"
    (tmp_path / "sabir_ringing.py").write_text(plugin, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    @surface
    def outer() -> None:
        importlib.import_module("sabir_ringing").ring()

    with pytest.raises(sabir.SabirError) as met:
        outer()
    names = [frame.name for frame in traceback.extract_tb(met.value.__traceback__)]
    assert {"ring", "inner"} <= set(names)


def test_a_prompt_completes_public_names() -> None:
    """And no others; a name that is unknown is told with one that is near."""
    listed = {name for name in dir(sabir) if not name.startswith("__")}

    assert listed == {*sabir.__all__, "authoring", "errors"}
    with pytest.raises(AttributeError, match=r"module 'sabir' has no attribute 'Mesage'$"):
        sabir.Mesage  # type: ignore[attr-defined]  # noqa: B018
