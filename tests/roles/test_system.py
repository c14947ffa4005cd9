"""System: its text, the time that it tells, and its old name for the text."""

import warnings
from datetime import UTC, datetime, timedelta

import pytest
from sabir_roles import System

from tests.roles.checks import refuses, through_json

DEFAULT = "You are a helpful AI assistant. Let's think step by step."


def test_what_a_system_message_is_where_nothing_is_given() -> None:
    """LA-19: the text of the document."""
    for system in (System.create(), System.create(None, system=None)):
        assert (system.system_message, system.rendered) == (DEFAULT, DEFAULT)
        assert system.content == {"system_message": DEFAULT}
    made = System.create().to_message()
    assert made is not None
    assert (made.policy, made.text) == ("system", DEFAULT)


def test_the_time_of_now_is_read_once() -> None:
    """LA-20: at create; it is content from then on, and comes back from JSON."""
    system = System.create("x", system_datetime=True)
    told = system.system_datetime
    assert told is not None
    assert timedelta(0) <= datetime.now(UTC) - datetime.fromisoformat(told) < timedelta(minutes=2)
    assert system.rendered == f"x\n\n## Time\n{told}" == through_json(system).rendered


def test_the_old_name_of_the_text_works_and_warns() -> None:
    """LA-22: created and updated; the warning is of the line that uses it; the new name warns of nothing."""
    with pytest.warns(DeprecationWarning, match="system_message=") as caught:
        assert System.create(system="x").rendered == "x"
    assert caught[0].filename == __file__
    system = System.create("x")
    with pytest.warns(DeprecationWarning, match="system_message="):
        system.update(system="")
    assert (system.system_message, "system" in system.content) == ("", False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert System.create(system_message="x", system=None).rendered == "x"


@pytest.mark.parametrize("texts", [("x", "y"), ("x", "x"), ("", "")])
def test_both_names_of_the_text_at_once_are_refused(texts: tuple[str, str]) -> None:
    """LA-22: also where they say the same."""
    with refuses("system", "system_message"):
        System.create(texts[0], system=texts[1])


def test_an_update_changes_what_is_given() -> None:
    """LA-24: the time alone too; False takes it away; None is not given."""
    system = System.create("x")
    system.update(system_datetime="now")
    assert (system.system_message, system.system_datetime) == ("x", "now")
    system.update("y", tone="calm")
    assert (system.content, system.sender) == (
        {"system_message": "y", "system_datetime": "now", "tone": "calm"},
        "system",
    )
    system.update(None, "me", "you", None, "{{ system_message }}!")
    assert (system.sender, system.recipient, system.rendered, system.system_datetime) == ("me", "you", "y!", "now")
    system.update(system_datetime=False)
    assert system.system_datetime is None
    system.update(system_datetime=True)
    assert system.system_datetime is not None
    system.update("")
    assert system.system_message == ""
