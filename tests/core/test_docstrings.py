"""The examples in public docstrings run, offline, and print what they show."""

import doctest
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import sabir
import sabir.authoring
import sabir.errors
import sabir_actors
import sabir_roles
import sabir_runtime.distributed
import sabir_runtime.durable
import sabir_session

from tests.architecture.project import PACKAGES

PACKAGE_MODULES = [importlib.import_module(package.module) for package in PACKAGES]
MODULES: list[ModuleType] = [sabir.errors, sabir.authoring, *PACKAGE_MODULES]
MODULES += [sabir_runtime.durable, sabir_runtime.distributed]
ADVANCED_WITH_AN_EXAMPLE = {
    sabir_runtime: (
        "BaseContext", "InMemoryRunner", "LLMPolicy", "Policy", "PolicyFailed", "Runner", "branch", "human_policy",
        "loop_policy",
    ),
    sabir_runtime.durable: ("DurableRunner", "Runs"),
    sabir_runtime.distributed: ("Access", "CallSettings", "DistributedRunner", "Worker", "WorkerSettings"),
    sabir_actors: (
        "Actor", "ActorSystem", "Chain", "Message", "RestartPolicy", "ThreadClient", "serialize_message",
        "validate_message",
    ),
}  # fmt: skip
"""Names of the runtime and of the actors that a user meets first, by module."""
WITH_AN_EXAMPLE = (
    "Adapter", "Loss", "Message", "Option", "Rendering", "Reply", "ReplyStream", "RetryPolicy", "Settings",
    "adapter", "answer", "assistant", "dialect", "fallback", "image", "load", "models", "option", "providers", "save",
    "system", "user",
)  # fmt: skip
"""Names of sabir that a user meets first."""
OTHERS_WITH_AN_EXAMPLE = (
    sabir_session.Answer, sabir_session.AnswerStream, sabir_session.Budget, sabir_session.Conversation,
    sabir_session.Prompt, sabir_session.Session, sabir_session.Store, sabir_session.SyncAnswerStream,
    sabir_session.evaluate, sabir_session.evaluate_sync, sabir_session.with_budget, sabir_roles.ActionRequest,
    sabir_roles.AssistantResponse, sabir_roles.Instruction, sabir_roles.MessageManager, sabir_roles.RoledMessage,
    sabir_roles.System, sabir_roles.environment,
)  # fmt: skip
"""The same of conversations and messages with roles."""
METHODS_WITH_AN_EXAMPLE = (
    sabir.ModelAdapter.complete, sabir.ModelAdapter.stream, sabir.ModelAdapter.render, sabir.ModelAdapter.send,
    sabir.Reply.parse, sabir_session.Conversation.ask, sabir_session.Conversation.ask_sync,
    sabir_session.Conversation.stream, sabir_session.Conversation.preview, sabir_session.Conversation.fork,
)  # fmt: skip


def examples() -> Iterator[doctest.DocTest]:
    finder = doctest.DocTestFinder(exclude_empty=True)
    seen = set()
    for module in MODULES:
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isroutine(value):
                for each in finder.find(value, f"{module.__name__}.{name}", module=False, globs={}):
                    if each.examples and each.docstring not in seen:
                        seen.add(each.docstring)
                        yield each


@pytest.mark.parametrize("example", list(examples()), ids=lambda example: example.name)
def test_an_example_prints_what_it_shows(
    example: doctest.DocTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    report: list[str] = []

    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE, verbose=False)
    runner.run(example, out=report.append)

    assert not runner.failures, "".join(report)


@pytest.mark.parametrize("name", WITH_AN_EXAMPLE)
def test_the_names_that_a_user_meets_first_have_an_example(name: str) -> None:
    assert ">>> " in (inspect.getdoc(getattr(sabir, name)) or "")


@pytest.mark.parametrize("value", OTHERS_WITH_AN_EXAMPLE, ids=lambda value: value.__name__)
def test_what_a_user_of_conversations_and_roles_meets_first_has_an_example(value: object) -> None:
    assert ">>> " in (inspect.getdoc(value) or "")


@pytest.mark.parametrize("method", METHODS_WITH_AN_EXAMPLE, ids=lambda method: method.__name__)
def test_the_main_methods_have_an_example(method: object) -> None:
    assert ">>> " in (inspect.getdoc(method) or "")


@pytest.mark.parametrize("module", ADVANCED_WITH_AN_EXAMPLE, ids=lambda module: module.__name__)
def test_the_names_of_runtime_and_actors_that_a_user_meets_first_have_an_example(module: ModuleType) -> None:
    without = [
        name for name in ADVANCED_WITH_AN_EXAMPLE[module] if ">>> " not in (inspect.getdoc(getattr(module, name)) or "")
    ]

    assert without == []
