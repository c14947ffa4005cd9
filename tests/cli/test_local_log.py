"""A plugin's log is shown to the person who waits, and to no program."""

import logging
from collections.abc import Sequence

import pytest
from sabir_cli.local_log import printing_local_log
from sabir_cli.output import Output


@pytest.mark.parametrize(
    ("tokens", "shown"), [((), "loading a␛model\n"), (("chat", "--json"), "")], ids=["person", "program"]
)
def test_what_is_loaded_is_shown_while_a_command_runs(
    capsys: pytest.CaptureFixture[str], tokens: Sequence[str], shown: str
) -> None:
    """A line on standard error, which no control character of it can leave; the log is as before afterwards."""
    log = logging.getLogger("sabir.local")
    before = (log.level, list(log.handlers))
    with printing_local_log(Output(), tokens):
        log.info("loading %s", "a\x1bmodel")
        log.debug("threads: 1")
    log.info("afterwards")

    assert capsys.readouterr() == ("", shown)
    assert (log.level, log.handlers) == before
