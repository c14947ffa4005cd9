"""A lock file lists what is lost; more than that is new, and messages may move."""

from pathlib import Path

import pytest
import sabir
from hypothesis import given, settings
from hypothesis import strategies as st
from sabir.errors import SettingsInvalid
from sabir_testing.histories.random_histories import histories_of, speakers_for
from sabir_testing.loss_locks.locks import (
    REFUSED,
    LockedLoss,
    LockEntry,
    LossChanges,
    check_entry,
    find_entry,
    lock_text,
    read_lock,
    write_lock,
)

TARGETS = ("anthropic:claude-sonnet-5", "google:gemini-2.5-pro", "openai.chat:gpt-4.1", "echo:m")
ADAPTERS = {target: sabir.adapter(target) for target in TARGETS}
AUDIO = LockedLoss(2, "parts[1]", "downgraded", "no audio")
SEED = LockedLoss(0, "settings.seed", "dropped", "no such field")


@settings(max_examples=30)
@given(st.sampled_from(TARGETS).flatmap(lambda name: st.tuples(st.just(name), histories(name))))
def test_a_check_directly_after_an_update_passes(
    tmp_path_factory: pytest.TempPathFactory, drawn: tuple[str, list[sabir.Message]]
) -> None:
    """Of any history, also of one that cannot be sent, and through the file."""
    target, history = drawn
    file = tmp_path_factory.mktemp("locks") / "losses.lock"
    write_lock(file, {"h": {target: find_entry(ADAPTERS[target], history)}})

    now = find_entry(ADAPTERS[target], history)
    changes = check_entry(read_lock(file, "update"), file, "h", target, now, "update")

    assert (changes.new, changes.gone, changes.moved) == ((), (), ())
    assert changes.unchanged == len(now.losses)


def histories(target: str) -> st.SearchStrategy[list[sabir.Message]]:
    return histories_of(speakers_for(ADAPTERS[target].target))


@pytest.mark.parametrize(
    ("before", "now", "new", "stale"),
    [
        ([AUDIO], [AUDIO, SEED], ["new loss at t: h, settings.seed: dropped: no such field"], []),
        ([AUDIO, SEED], [AUDIO], [], ["no longer lost at t: h, settings.seed: dropped: no such field"]),
        ([AUDIO], [AUDIO._replace(message=4)], [], ["moved at t: h, message 2 is now message 4"]),
        (
            [AUDIO], [AUDIO._replace(kind="dropped")],
            ["new loss at t: h, message 2, parts[1]: dropped: no audio (was downgraded: no audio)"], [],
        ),
        (
            [AUDIO], [AUDIO, AUDIO._replace(message=4)],
            ["new loss at t: h, message 4, parts[1]: downgraded: no audio"], [],
        ),
        ([AUDIO], [AUDIO, AUDIO], ["new loss at t: h, message 2, parts[1]: downgraded: no audio"], []),
    ],
    ids=["one more", "one less", "moved", "a worse kind", "the same at another message", "the same twice"],
)  # fmt: skip
def test_each_change_is_named_in_one_line(
    before: list[LockedLoss], now: list[LockedLoss], new: list[str], stale: list[str]
) -> None:
    changes = LossChanges.between("h", "t", LockEntry(tuple(before)), LockEntry(tuple(now)))

    assert (changes.new_lines(), changes.stale_lines()) == (new, stale)


def test_each_loss_is_one_line_of_the_file_and_names_are_sorted() -> None:
    """So that `git diff` shows a change of one loss as one line."""
    lock = {"b": {"t": LockEntry((SEED, AUDIO))}, "a": {"u": LockEntry(()), "t": LockEntry((AUDIO,))}}
    lines = lock_text(lock).splitlines()

    assert lock_text(dict(reversed(lock.items()))) == lock_text(lock)
    assert sum('"reason"' in line for line in lines) == 3
    assert [line.strip() for line in lines if line.startswith('    "')] == ['"a": {', '"b": {']


def test_a_conversation_that_cannot_be_sent_is_locked_as_refused() -> None:
    assert find_entry(ADAPTERS["echo:m"], []).losses == (
        LockedLoss(0, "", REFUSED, "nothing of the conversation can be sent"),
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "is not JSON"),
        ("[]", "is not a lock file of losses; restore it, or delete it and update"),
        (
            '{"sabir-losses": 1, "histories": {"h": {"t": {"losses": [{"kind": 1, "reason": ""}]}}}}',
            "is not a lock file of losses",
        ),
        ('{"sabir-losses": 2}', "has the format 2, not 1; upgrade sabir-testing"),
    ],
)
def test_a_damaged_lock_file_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "losses.lock"
    file.write_text(text)

    with pytest.raises(SettingsInvalid, match=reason):
        read_lock(file, "update")
