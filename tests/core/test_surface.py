"""What a user sees of the library beside its results: errors, help(), pydoc, completion at a prompt."""

import importlib
import inspect
import json
import pydoc
import re
import subprocess
import sys
from collections.abc import Iterator
from types import FunctionType
from typing import Unpack, get_origin
from unittest.mock import create_autospec

import pytest
import sabir
import sabir_session
from sabir.authoring import CallArguments, Frozen, SyncClosing

from tests.architecture.project import PACKAGES

NOTE = "The question is stored without an answer: ask() tries again, drop_last() removes the question."
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
}
"""Programs of one line, each of which ends with one error."""


EACH = """
import asyncio, json, sys, traceback, sabir, sabir_session
tracebacks = {}
for name, line in json.load(sys.stdin).items():
    try:
        exec(compile(line, "user.py", "exec"))
    except Exception:
        tracebacks[name] = traceback.format_exc()
json.dump(tracebacks, sys.stdout)
"""


@pytest.fixture(scope="module")
def tracebacks() -> dict[str, str]:
    """What Python prints for each program's error, in a process where no variable holds a key."""
    program = [sys.executable, "-c", EACH]
    environment = {"PATH": ""}
    process = subprocess.run(
        program, input=json.dumps(PROGRAMS), capture_output=True, text=True, env=environment, check=True
    )
    texts: dict[str, str] = json.loads(process.stdout)
    return texts


@pytest.mark.parametrize("what", PROGRAMS)
def test_a_program_ends_with_one_error_of_the_library(what: str, tracebacks: dict[str, str]) -> None:
    assert tracebacks[what].count("Traceback") == 1, tracebacks[what]
    last = tracebacks[what].rstrip().removesuffix(NOTE).splitlines()[-1]
    assert last.startswith("sabir.errors.")


CALLS = ("render", "complete", "complete_sync", "stream", "stream_sync")


@pytest.mark.parametrize("kind", [sabir.Adapter, sabir.ModelAdapter, sabir.FallbackAdapter])
@pytest.mark.parametrize("name", CALLS)
def test_help_shows_the_arguments_of_a_call(kind: type, name: str) -> None:
    method = getattr(kind, name)
    shown = pydoc.plain(pydoc.render_doc(method))

    signature = inspect.signature(method)
    assert list(signature.parameters) == ["self", "messages", *CallArguments.__annotations__]
    assert "strict: Collection[Literal[" in shown and "settings: Settings | None = None" in shown
    assert "options: the options that the model may call" in shown and "strict: the kinds of loss" in shown
    assert inspect.iscoroutinefunction(method) == (name == "complete")


class Asking(SyncClosing):
    def ask(self, **how: Unpack[CallArguments]) -> str:
        """Ask."""
        return self._ask(how)

    def _ask(self, how: CallArguments) -> str:
        return sabir.adapter("echo:m").complete_sync([sabir.user("hi"), 42], **how).text  # type: ignore[list-item]

    def close(self) -> None:
        """Nothing is open."""


def test_what_a_plugin_lets_a_user_hold_is_described_alike() -> None:
    with Asking() as asking, pytest.raises(sabir.errors.WrongWord):
        asking.ask()

    assert list(inspect.signature(asking.ask).parameters) == list(CallArguments.__annotations__)
    assert "strict: the kinds of loss" in (asking.ask.__doc__ or "")


def functions_with_keywords() -> Iterator[tuple[str, FunctionType]]:
    """Every public function and method, in all packages, that accepts the fields of a TypedDict as keywords."""
    for package in PACKAGES:
        module = importlib.import_module(package.module)
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            members = [each for base in value.__mro__ for each in vars(base).values()] if inspect.isclass(value) else []
            for member in (value, *members):
                function = getattr(member, "__func__", member)
                if isinstance(function, FunctionType):
                    hints = inspect.unwrap(function).__annotations__.values()
                    if any(get_origin(hint) is Unpack for hint in hints):
                        yield f"{module.__name__}.{name}: {function.__qualname__}", function


def test_help_names_every_keyword_argument_in_all_packages() -> None:
    """A function whose signature ends in `**how` hides what it accepts."""
    functions = dict(functions_with_keywords())

    assert len(functions) > 40
    assert [name for name, each in functions.items() if "**" in str(inspect.signature(each))] == []


def test_help_shows_what_sabir_adapter_takes() -> None:
    assert "misnamed" not in str(inspect.signature(sabir.adapter))
    assert "mime: str | None = None" in str(inspect.signature(sabir.image))
    assert "temperature: float | None = None" in str(inspect.signature(sabir.Settings))


WRAPS_SIGNATURES = sys.version_info >= (3, 13)
"""Whether pydoc writes each argument of a long signature on a line of its own."""


def test_help_of_a_conversation_is_short_and_names_its_types() -> None:
    page = pydoc.plain(pydoc.render_doc(sabir_session.Conversation))
    names = {
        "instructions: Instructions",
        "options: Options",
        "*content: Content",
        "Optional[Approve]",
        "Validator[Any]",
    }

    assert len(page.splitlines()) <= (210 if WRAPS_SIGNATURES else 160)
    assert {name for name in names if name not in page} == set()
    assert "Union[" not in page and "Literal[" not in page and "Callable[" not in page
    assert (
        page.index("async ask(") < page.index("stream(") < page.index("Readonly properties") and "__dict__" not in page
    )
    assert {"__init__", "__enter__", "__class_getitem__"} <= set(dir(sabir_session.Conversation))


def test_pydoc_is_the_librarys_own_text() -> None:
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
        assert len(lines) < (160 if WRAPS_SIGNATURES else 150), model  # pydantic's own would be three hundred more
        assert inspect.getdoc(model) and model.__doc__ != sabir.Message.__base__.__doc__


def test_a_class_is_read_with_its_fields() -> None:
    assert str(inspect.signature(sabir.Loss)).startswith("(*, kind: Literal['dropped',")
    assert str(inspect.signature(sabir.ModelInfo)).endswith("facts: Any = {})")
    assert {"text", "parts", "model_copy", "model_dump"} <= set(dir(sabir.Message)) & set(dir(sabir.user("hi")))
    assert create_autospec(sabir.Message).model_dump is not None

    class Own(Frozen):
        other: "NotThere | None" = None  # type: ignore[name-defined]  # noqa: F821

        def __init__(self, number: int) -> None: ...

    class Later(Frozen):
        other: "NotThere | None" = None  # type: ignore[name-defined]  # noqa: F821

    assert str(inspect.signature(Own)) == "(number: int) -> None"
    assert "NotThere" in str(inspect.signature(Later))
