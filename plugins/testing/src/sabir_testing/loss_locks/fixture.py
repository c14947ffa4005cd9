"""The pytest fixture `loss_lock`, a plugin of pytest: checks that models lose no more of a conversation than before.

def test_support_agent_at_anthropic(loss_lock):
    loss_lock.check(history, "anthropic:claude-sonnet-5")

pytest --sabir-update-losses      write the losses of the tests that run into losses.lock
sabir_loss_lock = "losses.lock"   ini option: one file for all tests; by default, next to each test's file
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # tests that do not use sabir must not import it
    import sabir
    from sabir.authoring import Messages, OptionLike

INI = "sabir_loss_lock"
FLAG = "--sabir-update-losses"
LOCK_FILE = "losses.lock"
STALE_PROPERTY = "sabir_stale_losses"
"""The user property of a test's report with lines of the lock file that are out of date."""


class LossLock:
    """The type of the pytest fixture `loss_lock`, for annotations of tests."""

    def __init__(self, file: Path, test: str, *, is_update: bool) -> None:
        self.file = file
        self._test = test
        self._is_update = is_update
        self._places: set[tuple[str, str]] = set()
        self.stale_lines: list[str] = []
        """Lines of the lock file that are out of date without failing the test."""

    def check(
        self,
        history: "Messages",
        target: "str | sabir.Adapter",
        *,
        options: "Iterable[OptionLike]" = (),
        settings: "sabir.Settings | None" = None,
        name: str = "",
    ) -> None:
        """Fail the test if the target loses something of the conversation that the lock file does not list.

        `history`, `options` and `settings` are those of a call. Nothing is sent. `target` is `provider:model` or an
        adapter. The lock file lists the losses under the test's name, or under the test's name and `name`, for several
        conversations in one test. With --sabir-update-losses, the losses are written into the lock file instead.

        Raises SettingsInvalid if the lock file is missing or lacks this conversation and target, and the errors of
        `sabir.adapter` and `render`, except RenderingRefused, which is a line of the lock file.
        """
        __tracebackhide__ = True
        import sabir
        from sabir.authoring import as_messages
        from sabir.errors import SettingsInvalid

        from sabir_testing.loss_locks.locks import check_entry, find_entry, read_lock, write_lock

        adapter = sabir.adapter(target) if isinstance(target, str) else target
        place = (f"{self._test} {name}".rstrip(), target if isinstance(target, str) else adapter.target.full_name)
        if place in self._places:
            raise SettingsInvalid(f"{place[0]} at {place[1]} is checked twice; pass another name= to each check")
        self._places.add(place)
        now = find_entry(adapter, as_messages(history), options, settings)
        update = f"run pytest with {FLAG}"
        if self._is_update:
            contents = read_lock(self.file, update) if self.file.exists() else {}
            contents.setdefault(place[0], {})[place[1]] = now
            write_lock(self.file, contents)
            return
        changes = check_entry(read_lock(self.file, update), self.file, *place, now, update)
        self.stale_lines += changes.stale_lines()
        if lines := changes.new_lines():
            advice = f"not in {self.file}; change the conversation, or {update} to accept"
            pytest.fail("\n".join([*lines, advice]), pytrace=False)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flag and the ini option."""
    parser.getgroup("sabir").addoption(
        FLAG, action="store_true", help="write the losses that the fixture loss_lock checks into the lock files"
    )
    parser.addini(INI, f"the lock file of losses for all tests; by default {LOCK_FILE} next to each test's file")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to update in several processes, which would overwrite the files of each other."""
    if config.getoption("sabir_update_losses", False) and getattr(config.option, "numprocesses", None):
        raise pytest.UsageError(f"{FLAG} cannot run in several processes; add -n0")


@pytest.fixture
def loss_lock(request: pytest.FixtureRequest) -> Iterator[LossLock]:
    """Provide an object whose method `check` compares the losses of a conversation with a lock file."""
    config, written = request.config, request.config.getini(INI)
    file = config.rootpath / written if written else request.path.parent / LOCK_FILE
    test = request.node.nodeid.partition("::")[2]
    if written:
        test = request.node.nodeid
    fixture = LossLock(file, test, is_update=bool(config.getoption("sabir_update_losses")))
    yield fixture
    request.node.user_properties += [(STALE_PROPERTY, line) for line in fixture.stale_lines]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the lines of lock files that are out of date."""
    reports = [report for group in terminalreporter.stats.values() for report in group]
    properties = [each for report in reports for each in getattr(report, "user_properties", ())]
    lines = dict.fromkeys(line for name, line in properties if name == STALE_PROPERTY)
    if lines:
        terminalreporter.section("sabir losses")
        for line in [*lines, f"to bring the lock files up to date, run pytest with {FLAG}"]:
            terminalreporter.write_line(line)
