"""Subjects: what permissions are given for. URLs: what cannot be read is not repeated, what is secret never shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sabir_runtime.distributed import AccessInvalid, DistributedRunner, Worker
from sabir_runtime.distributed.access import read_addresses, without_secrets
from sabir_runtime.distributed.subjects import all_of, beats_for, check_inbox, is_inbox, requests_for, requests_of

from tests.distributed.contexts import Desk


@pytest.mark.parametrize("reply", ["_INBOX.a.r1.1", "_INBOX.a", "_INBOX.alice.a.r1.1", "replies.alice.a.r1.1"])
def test_an_inbox_begins_with_the_usual_prefix_or_with_ones_own(reply: str) -> None:
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
    with pytest.raises(
        ValueError, match=r"not a valid inbox prefix; expected names with dots between them, like _INBOX\.alice"
    ):
        check_inbox(prefix)


@given(st.text(max_size=30), st.sampled_from(["_INBOX", "replies", "_INBOX.alice", "a.b"]))
def test_no_subject_of_requests_is_an_inbox(name: str, prefix: str) -> None:
    for subject in (requests_of(name, name), requests_for(name, name, name), all_of(name)):
        assert not is_inbox(subject, check_inbox(prefix))
        assert not is_inbox(beats_for(subject), prefix)


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (
            "nats://one?token=sesame",
            "NATS URL 1 of 1 cannot be read: the host is followed by something that is not a port",
        ),
        ("nats://one/sesame", "the host is followed by something"),
        ("nats://one#sesame", "the host is followed by something"),
        ("nats://ada:sesame@", "its host is missing"),
        ("nats://", "its host is missing"),
        ("nats://:4222", "its host is missing"),
        ("", "its host is missing"),
        ("nats://one,,nats://two", "NATS URL 2 of 3 cannot be read: its host is missing"),
        ("nats://one:sesame", "its port is not a number"),
        ("nats://one:65536", "its port is not a number"),
        ("nats://one:0", "the host is followed by something that is not a port"),
        ("nats://ada:12/sesame@one", "the host is followed by something"),
        ("nats://ada:se[same@one", "its port is not a number, or its host is invalid"),
        ("nats://ada:sesame/@one", "its port is not a number"),
        (
            "nats://ada:12,sesame@one",
            "NATS URL 2 of 2 cannot be read: it has a user but no scheme, or a password contains a comma",
        ),
        ("http://ada:sesame@one", "its scheme is not one of nats, ws, tls, wss"),
        ("ws://ada:12/?sesame@one", "the host is followed by something"),
        ("nats://one\nsesame", "or invalid"),
    ],
)
def test_a_url_that_cannot_be_read_is_refused_and_not_repeated(target: str, reason: str) -> None:
    for make in (lambda: Worker(Desk, target), lambda: DistributedRunner(target)):
        with pytest.raises(AccessInvalid, match=reason) as told:
            make()
        assert "sesame" not in str(told.value)
        assert "ada" not in str(told.value)
        assert told.value.__suppress_context__


@given(st.text("ab1:/@,?#[]%. \\\n", max_size=12))
def test_whatever_stands_for_a_password_is_never_shown(password: str) -> None:
    try:
        read = ",".join(each.display_url for each in read_addresses(f"nats://user:ZQ{password}ZQ@host.example:4222"))
    except AccessInvalid as error:
        read = str(error)

    assert "ZQ" not in read


def test_what_others_say_of_a_connection_is_shown_without_the_secrets() -> None:
    """A library's error may quote the whole URL, as it was given or as it is meant."""
    addresses = read_addresses("nats://ada:open%2Fsesame@one,ws://token-1@two?key=k-2")
    said = "cannot log in at nats://ada:open%2Fsesame@one or with open/sesame, token-1, key=k-2"

    assert without_secrets(said, addresses) == "cannot log in at nats://ada:***@one or with ***, ***, ***"
