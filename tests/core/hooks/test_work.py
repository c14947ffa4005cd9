"""A work is announced when it begins and when it ends, in the context in which it runs."""

import asyncio
from collections.abc import Mapping
from contextvars import ContextVar

import pytest
from sabir.authoring import AgentWork, announce_work, continue_work, work_headers
from sabir.hooks.plugins import Hooks
from sabir.hooks.specs import hookimpl

current: ContextVar[str] = ContextVar("tests.current", default="nothing")


class Watcher:
    """A telemetry plugin whose current work is a context variable."""

    def __init__(self) -> None:
        self.ends: list[tuple[str, BaseException | None]] = []
        self.headers: dict[str, Mapping[str, str] | None] = {}

    @hookimpl
    def sabir_work_started(self, work: AgentWork) -> None:
        self.headers[work.name] = work.headers
        current.set(work.name)

    @hookimpl
    def sabir_work_ended(self, work: AgentWork, error: BaseException | None) -> None:
        self.ends.append((work.name, error))
        current.set("nothing")

    @hookimpl
    def sabir_work_requested(self, headers: dict[str, str]) -> None:
        headers["work"] = current.get()


class Failing:
    @hookimpl
    def sabir_work_started(self, work: AgentWork) -> None:
        raise RuntimeError("no exporter")

    @hookimpl
    def sabir_work_ended(self, work: AgentWork) -> None:
        raise RuntimeError("no exporter")


def install(monkeypatch: pytest.MonkeyPatch, *plugins: object) -> None:
    hooks = Hooks(plugins)
    monkeypatch.setattr("sabir.hooks.announcing.installed_hooks", lambda: hooks)


@pytest.fixture
def watcher(monkeypatch: pytest.MonkeyPatch) -> Watcher:
    install(monkeypatch, plugin := Watcher())
    return plugin


@pytest.mark.parametrize("error", [None, LookupError("x"), asyncio.CancelledError(), KeyboardInterrupt()])
def test_the_end_of_a_work_has_the_exception_that_ended_it(watcher: Watcher, error: BaseException | None) -> None:
    try:
        with announce_work(AgentWork("agent", "assistant")):
            assert current.get() == "assistant"
            if error is not None:
                raise error
    except BaseException as raised:
        assert raised is error

    assert watcher.ends == [("assistant", error)]
    assert current.get() == "nothing"


def test_headers_connect_a_work_with_the_process_that_requested_it(watcher: Watcher) -> None:
    """Only the outermost works of the block, whose requester is elsewhere."""
    with announce_work(AgentWork("agent", "caller")):
        headers = work_headers()
    with (
        continue_work(headers),
        announce_work(AgentWork("agent", "worker")),
        announce_work(AgentWork("option", "search")),
    ):
        pass
    with continue_work({}), announce_work(AgentWork("agent", "unrequested")):
        pass

    assert watcher.headers == {"caller": None, "worker": {"work": "caller"}, "search": None, "unrequested": {}}


def test_a_plugin_that_fails_is_logged_and_stops_no_work(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    watcher = Watcher()
    install(monkeypatch, Failing(), watcher)
    with announce_work(AgentWork("agent", "assistant")):
        assert work_headers() == {"work": "assistant"}

    assert watcher.ends == [("assistant", None)]
    assert [line.partition(" failed in ")[2] for line in caplog.messages] == [
        "sabir_work_started and was skipped: RuntimeError: no exporter",
        "sabir_work_ended and was skipped: RuntimeError: no exporter",
    ]


def test_without_a_plugin_a_work_has_no_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    with announce_work(AgentWork("agent", "assistant")):
        assert work_headers() == {}
