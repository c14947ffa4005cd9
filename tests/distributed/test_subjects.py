"""Subjects: what permissions are given for, and where a worker answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sabir_distributed.subjects import all_of, beats_for, check_inbox, is_inbox, requests_for, requests_of


@pytest.mark.parametrize("reply", ["_INBOX.a.r1.1", "_INBOX.a", "_INBOX.alice.a.r1.1", "replies.alice.a.r1.1"])
def test_an_inbox_begins_with_the_usual_prefix_or_with_ones_own(reply: str) -> None:
    """And so do the beats of who asks from there."""
    assert is_inbox(reply, "replies.alice")


@pytest.mark.parametrize(
    "reply",
    ["", "_INBOX", "_INBOX.", "_INBOXES.a", "sabir.Desk.admin", "$SYS.REQ", "_INBOX.>", "_INBOX.*.x", "_INBOX..x",
     "_INBOX.a b", "replies.bob.a", "replies.alice.a"],
)  # fmt: skip
def test_nothing_else_is_an_inbox(reply: str) -> None:
    """Nor what has its beats elsewhere: those of the last would come to `replies.alive`."""
    assert not is_inbox(reply, "replies.alice")


@pytest.mark.parametrize("prefix", ["", "sabir", "sabir.Desk", "sabir-all", "a b", "a.*", ">", "a.", "$SYS", "x" * 201])
def test_a_prefix_of_inboxes_reaches_no_other_subject(prefix: str) -> None:
    """It is part of a subject, and none under which workers listen."""
    with pytest.raises(
        ValueError, match=r"no prefix of inboxes; expected names with dots between them, as _INBOX\.alice"
    ):
        check_inbox(prefix)


@given(st.text(max_size=30), st.sampled_from(["_INBOX", "replies", "_INBOX.alice", "a.b"]))
def test_no_subject_of_requests_is_an_inbox(name: str, prefix: str) -> None:
    """Whatever a context, a policy or a worker is called."""
    for subject in (requests_of(name, name), requests_for(name, name, name), all_of(name)):
        assert not is_inbox(subject, check_inbox(prefix))
        assert not is_inbox(beats_for(subject), prefix)
