"""The examples in public docstrings run, offline, and print what they show."""

import doctest
import importlib
import inspect
from collections.abc import Iterator
from operator import attrgetter
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
MET_FIRST = {
    sabir: (
        "Adapter Loss Message Option Rendering Reply ReplyStream RetryPolicy Settings adapter answer assistant dialect "
        "fallback image load models option providers save system user ModelAdapter.complete ModelAdapter.stream "
        "ModelAdapter.render ModelAdapter.send Reply.parse"
    ),
    sabir_session: (
        "Answer AnswerStream Budget Conversation Prompt Session Store SyncAnswerStream evaluate evaluate_sync "
        "with_budget Conversation.ask Conversation.ask_sync Conversation.stream Conversation.preview Conversation.fork"
    ),
    sabir_roles: ("ActionRequest AssistantResponse Instruction MessageManager RoledMessage System environment"),
    sabir_runtime: ("BaseContext InMemoryRunner LLMPolicy Policy PolicyFailed Runner branch human_policy loop_policy"),
    sabir_runtime.durable: "DurableRunner Runs",
    sabir_runtime.distributed: "Access CallSettings DistributedRunner Worker WorkerSettings",
    sabir_actors: ("Actor ActorSystem Chain Message RestartPolicy ThreadClient serialize_message validate_message"),
}
"""The names that a user meets first, by module."""


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


@pytest.mark.parametrize("module", MET_FIRST, ids=lambda module: module.__name__)
def test_the_names_that_a_user_meets_first_have_an_example(module: ModuleType) -> None:
    docs = {name: inspect.getdoc(attrgetter(name)(module)) or "" for name in MET_FIRST[module].split()}

    assert [name for name, doc in docs.items() if ">>> " not in doc] == []
