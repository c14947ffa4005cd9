"""Cassettes are recorded through real clients from a real server, replay to the same bytes, and say what is wrong."""

import json
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest
import sabir_testing.cassettes.files
from sabir_testing.cassettes import (
    PROVENANCE_FIELDS,
    Allowed,
    CassetteFailed,
    Leaking,
    NotPlayed,
    NotRecorded,
    check_cassette,
    check_provenance,
    exchanges,
    provenance_of,
    recording,
    replaying,
)
from sabir_testing.loopback import Server, head, whole

from tests.rules import check_each
from tests.testing.planted import NOWHERE, PROVENANCE, post

CASSETTES = Path(__file__).parents[3] / "cassettes"
QUESTION = b'{"model":"small","messages":[{"role":"user","content":"Where do owls sleep?"}]}'
ANSWER = b'{"text":"In hollow trees."}'
STREAM = b'data: {"text":"In hollow "}\n\ndata: {"text":"trees."}\n\ndata: [DONE]\n\n'

Headers = Mapping[str, str]
Client = Callable[[str, bytes, Headers], bytes]


def by_httpx2(url: str, body: bytes, headers: Headers) -> bytes:
    return post(url, body, headers).content


def by_urllib(url: str, body: bytes, headers: Headers) -> bytes:
    asked = urllib.request.Request(url, body, dict(headers))
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked, timeout=20) as answer:
        read: bytes = answer.read()
        return read


CLIENTS: Mapping[str, Client] = {"httpx2": by_httpx2, "urllib": by_urllib}
JSON = {"content-type": "application/json"}


def ask(url: str, body: bytes = QUESTION, headers: Headers = JSON, client: Client = by_httpx2) -> bytes:
    return client(f"{url}/v1/answers", body, headers)


def record(path: Path, answer: bytes, *, stream_end: str = "", allowed: tuple[Allowed, ...] = ()) -> bytes:
    """One exchange with a server that gives that answer; what the client was given."""
    with Server([answer]) as server, recording(path, PROVENANCE, stream_end=stream_end, allowed=allowed):
        return ask(server.url)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "owls" / "text.yaml"


@pytest.fixture
def recorded(path: Path) -> Path:
    """A cassette with one exchange."""
    record(path, whole(ANSWER))
    return path


# Recording and replaying


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("answer", [whole(ANSWER), whole(STREAM, kind="text/event-stream")], ids=["whole", "streamed"])
def test_what_a_client_was_told_is_told_again_without_the_server(path: Path, name: str, answer: bytes) -> None:
    """CD-10: through clients of two kinds, a third in test_scrubbing; nothing listens while it is replayed."""
    with Server([answer]) as server, recording(path, PROVENANCE):
        told = ask(server.url, client=CLIENTS[name])
    with replaying(path):
        assert ask(NOWHERE, client=CLIENTS[name]) == told

    assert told == answer.partition(b"\r\n\r\n")[2]


async def test_an_async_client_is_recorded_and_replayed_too(path: Path) -> None:
    """CD-10: the patches hold for a client's async half."""

    async def ask_async(url: str) -> bytes:
        async with httpx2.AsyncClient(trust_env=False, verify=False) as client:
            return (await client.post(url, content=QUESTION)).content

    with Server([whole(ANSWER)]) as server, recording(path, PROVENANCE):
        told = await ask_async(server.url)
    with replaying(path):
        assert await ask_async(NOWHERE) == told == ANSWER


def test_equal_requests_are_answered_in_the_order_of_the_recording(path: Path) -> None:
    """A question that is asked twice has two answers."""
    with Server(script := [whole(b'{"text":"one"}')]) as server, recording(path, PROVENANCE):
        ask(server.url)
        script[:] = [whole(b'{"text":"two"}')]
        ask(server.url)
    with replaying(path):
        assert [ask(NOWHERE), ask(NOWHERE)] == [b'{"text":"one"}', b'{"text":"two"}']


# What is not recorded


def test_another_body_is_not_answered_and_the_difference_is_named(recorded: Path) -> None:
    """CD-11: the message says which case, where the body differs by its path, and what to do."""
    other = json.loads(QUESTION) | {"seed": 7, "stream": True}
    other["messages"][0]["content"] = "Where do bats sleep?"

    with pytest.raises(NotRecorded) as caught, replaying(recorded):
        ask(NOWHERE, json.dumps(other).encode())

    assert str(caught.value).splitlines() == [
        f"the request POST /v1/answers is not in the cassette {recorded}; "
        "its body differs from the most similar recorded one:",
        "  messages[0].content: recorded 'Where do owls sleep?', sent 'Where do bats sleep?'",
        "  seed: not recorded, sent 7",
        "  stream: not recorded, sent true",
        "if the request is right, record it again with `pytest --sabir-record`",
    ]


def test_another_path_or_a_second_time_is_not_answered(recorded: Path) -> None:
    """It says what the cassette holds instead; a client that retries is not told the same again."""
    with pytest.raises(NotRecorded, match=r"POST /v2/answers is not .*, which contains POST /v1/answers; if the"):
        with replaying(recorded):
            by_httpx2(f"{NOWHERE}/v2/answers", QUESTION, JSON)
    with pytest.raises(NotRecorded, match=r"it is recorded 1× and was sent more often"), replaying(recorded):
        ask(NOWHERE)
        ask(NOWHERE)


@pytest.mark.parametrize("then", [None, RuntimeError("the connection broke"), AssertionError("no text")], ids=repr)
def test_a_failure_that_the_client_swallowed_is_raised_on_leaving(recorded: Path, then: Exception | None) -> None:
    """CD-11: SDKs take any exception of their client for a broken connection. A failing test's own failure is seen."""
    with pytest.raises(ValueError, match="of its own"), replaying(recorded):
        raise ValueError("of its own")
    with pytest.raises(NotRecorded) as caught, replaying(recorded):
        with suppress(AssertionError):
            ask(NOWHERE, b"{}")
        if then is not None:
            raise then

    assert caught.value.__cause__ is then


def test_what_nothing_asked_for_is_a_failure(path: Path) -> None:
    """CD-10: a cassette that is longer than what is asked for fails, and says which exchanges were left."""
    with Server([whole(ANSWER)]) as server, recording(path, PROVENANCE):
        ask(server.url)
        ask(server.url, b'{"model":"other"}')

    with pytest.raises(
        NotPlayed, match=r"1 of 2 recorded exchanges were not requested \(numbers, counted from 0: 0\);"
    ):
        with replaying(path):
            ask(NOWHERE, b'{"model":"other"}')


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "the cassette .*odd.yaml does not exist; record it with `pytest --sabir-record`"),
        ("version: 1\ninteractions: []\n", r"odd\.yaml contains no exchanges; record it"),
        *((text, r"odd\.yaml is not a valid vcrpy cassette") for text in ("", "[]", "a: 1", "{", "interactions: [{}]")),
    ],
)
def test_a_file_that_is_no_cassette_or_is_empty_is_named(tmp_path: Path, text: str | None, says: str) -> None:
    """CD-10: with or without exchanges to play, nothing was proved."""
    path = tmp_path / "odd.yaml"
    if text is not None:
        path.write_text(text, "utf-8")

    with pytest.raises(CassetteFailed, match=says), replaying(path):
        pass
    with pytest.raises(CassetteFailed, match=says):
        check_cassette(path)


def test_a_binary_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "odd.yaml"
    path.write_bytes(b"\x89PNG")

    with pytest.raises(CassetteFailed, match=r"odd\.yaml is not a vcrpy cassette: byte 0 is not UTF-8 text"):
        check_cassette(path)


def test_an_empty_body_is_a_failure_when_it_is_replayed_too(recorded: Path) -> None:
    """CD-10: a recording by other means may hold one."""
    text = recorded.read_text("utf-8")
    recorded.write_text(text.replace("""string: '{"text":"In hollow trees."}'""", "string: ''"), "utf-8")

    with pytest.raises(CassetteFailed, match="the response body of exchange 0 is empty"), replaying(recorded):
        assert ask(NOWHERE) == b""


# What is not written


FAULTS: Mapping[str, tuple[bytes, str]] = {
    "empty": (whole(b""), "is empty"),
    "json": (whole(ANSWER[:-2]), "is incomplete JSON"),
    "a list": (whole(b'[{"text":"In"},\r\n{"text":"trees"}\r\n'), "is incomplete JSON"),
    "in an event": (whole(STREAM[:-20], kind="text/event-stream"), "ends within an event"),
    "after an event": (whole(STREAM[:27], kind="text/event-stream"), "last event has no blank line after it"),
    "in a line": (whole(b'{"text":"In"}\n{"te', kind="application/x-ndjson"), "ends within an event"),
    "another end": (
        whole(STREAM.removesuffix(b"data: [DONE]\n\n"), kind="text/event-stream"),
        r"a stream without its end marker: '\[DONE\]' is not in the last event",
    ),
    "unknown compression": (whole(b"\x28\xb5\x2f\xfd", content_encoding="zz"), "has content-encoding 'zz' and cannot"),
}


@pytest.mark.parametrize(("answer", "words"), FAULTS.values(), ids=FAULTS)
def test_a_recording_that_is_not_whole_is_not_written(path: Path, answer: bytes, words: str) -> None:
    """CD-10: no empty body and no cut stream passes."""
    with pytest.raises(CassetteFailed, match=f"text.yaml: the response body of exchange 0 .*{words}"):
        record(path, answer, stream_end="[DONE]")

    assert not path.exists()


ENDS = (b'data: {"t":"data:{"}', b"data: [DONE]", b": over", b"event: end\ndata:")
WHOLE = [
    (whole(STREAM, kind="text/event-stream"), "[DONE]"),
    (b"HTTP/1.1 204 said\r\nconnection: close\r\n\r\n", ""),
    *((whole(b'data: {"t":1}\n\n' + end + b"\n\n", kind="text/event-stream"), "") for end in ENDS),
]


@pytest.mark.parametrize(("answer", "stream_end"), WHOLE)
def test_what_is_whole_is_written(path: Path, answer: bytes, stream_end: str) -> None:
    """`[DONE]` is no JSON, a text may have `data:` in it, and an answer without content needs no body."""
    told = record(path, answer, stream_end=stream_end)
    check_cassette(path, stream_end=stream_end)

    with replaying(path):
        assert ask(NOWHERE) == told


def test_a_recording_in_which_nothing_was_asked_fails(path: Path) -> None:
    """A client that vcrpy does not patch would look the same."""
    with pytest.raises(NotPlayed, match=r"recording\('.*text\.yaml'\) sent no request"):
        with recording(path, PROVENANCE):
            pass

    assert not path.exists()


def test_a_recording_takes_the_place_of_an_older_one_if_its_block_ends_well(recorded: Path) -> None:
    """Nothing of the old one is kept, though it was asked the same."""
    before = recorded.read_bytes()
    with pytest.raises(ValueError, match="of its own"), Server([whole(b'{"text":"other"}')]) as server:
        with recording(recorded, PROVENANCE):
            ask(server.url)
            raise ValueError("of its own")
    assert recorded.read_bytes() == before

    record(recorded, whole(b'{"text":"In barns."}'))
    assert [each.response_body for each in exchanges(recorded)] == [b'{"text":"In barns."}']


LEAKING = b'{"error":"Your key sk-7hTq29LmZx41PwRv83Yd is not known."}'


def test_a_recording_that_leaks_fails_and_nothing_of_it_is_kept(recorded: Path) -> None:
    """CD-11: the finding names place and kind, and does not hold the secret; the older recording stays.

    vcrpy leaves its patches in place where saving raises, so nothing raises before they are gone.
    """
    before, patched = recorded.read_bytes(), httpx2.HTTPTransport.handle_request

    with pytest.raises(Leaking) as caught:
        record(recorded, whole(LEAKING))

    (leak,) = caught.value.leaks
    assert (leak.place, leak.kind) == ("interactions[0].response.body.string ▸ error", "API key")
    assert "sk-7hTq29" not in str(caught.value)
    assert "add them to Scrubbing(fields=…, secrets=…), or to Allowed(pattern, reason)" in str(caught.value)
    assert (recorded.read_bytes(), httpx2.HTTPTransport.handle_request) == (before, patched)
    assert [each.name for each in recorded.parent.iterdir()] == [recorded.name]


def test_what_is_allowed_with_a_reason_is_written(path: Path) -> None:
    allowed = (Allowed(r"sk-7hTq\w+", "made up for this test"),)
    record(path, whole(LEAKING), allowed=allowed)

    check_cassette(path, allowed=allowed)
    with pytest.raises(Leaking):
        check_cassette(path)


# Who answered


def test_the_heading_says_who_answered(recorded: Path) -> None:
    """CD-11: in the file's first lines, where a person sees it."""
    said = recorded.read_text("utf-8")

    assert said.startswith(f"provenance:\n  server: {PROVENANCE['server']}\n  version: '1'\n  model: small\n")
    assert provenance_of(recorded) == PROVENANCE


@pytest.mark.parametrize("name", PROVENANCE_FIELDS)
@pytest.mark.parametrize("said", ["", " ", "Unknown", None])
def test_a_heading_says_all_five(path: Path, name: str, said: str | None) -> None:
    """CD-11: neither missing nor empty; the recording does not begin."""
    heading = {key: value for key, value in PROVENANCE.items() if key != name}
    if said is not None:
        heading[name] = said

    with pytest.raises(CassetteFailed, match=rf"the provenance of .*text\.yaml lacks {name}; it needs server, version"):
        with recording(path, heading):
            pytest.fail("the recording began")


def test_a_heading_has_a_date_and_says_whose_service_it_is() -> None:
    """CD-11: what is not a vendor's own service is named as such."""
    for date in ("21.11.2026", "today", "2026-13-01"):
        with pytest.raises(CassetteFailed, match=r"write dates as 2026-01-31"):
            check_provenance({**PROVENANCE, "date": date})
    for server in ("Acme's own service", "a mock, not a vendor"):
        check_provenance({**PROVENANCE, "server": server})
    with pytest.raises(CassetteFailed, match=r"the server 'Acme' .* does not say whose service it is; write"):
        check_provenance({**PROVENANCE, "server": "Acme"})


def test_a_server_on_this_machine_is_no_vendors_own_service(path: Path) -> None:
    """CD-11: a heading that claims it is not believed."""
    with pytest.raises(CassetteFailed, match="sent to this machine or a private network"):
        with Server([whole(ANSWER)]) as server, recording(path, {**PROVENANCE, "server": "Acme's own service"}):
            ask(server.url)

    assert not path.exists()


# Reading without vcrpy


def test_an_exchange_is_read_with_all_that_was_sent(path: Path) -> None:
    with Server([head(429, "application/json; charset=utf-8", retry_after="7"), ANSWER]) as server:
        with recording(path, PROVENANCE):
            ask(server.url)
    (exchange,) = exchanges(path)

    assert (exchange.method, exchange.path, exchange.status) == ("POST", "/v1/answers", 429)
    assert (exchange.request_body, exchange.response_body) == (QUESTION, ANSWER)
    assert exchange.request_json == json.loads(QUESTION)
    assert exchange.headers == {"content-type": "application/json; charset=utf-8", "retry-after": "7"}
    assert (exchange.content_type, exchange.is_stream) == ("application/json", False)


def test_bytes_that_are_no_text_come_back_as_they_were(path: Path) -> None:
    with Server([whole(b"\x00\xff\xfe", kind="audio/wav")]) as server, recording(path, PROVENANCE):
        ask(server.url, b"\x89PNG\xff", {"content-type": "image/png"})
    (exchange,) = exchanges(path)

    assert (exchange.request_body, exchange.response_body) == (b"\x89PNG\xff", b"\x00\xff\xfe")
    assert exchange.request_json is None
    with replaying(path):
        assert ask(NOWHERE, b"\x89PNG\xff") == b"\x00\xff\xfe"


def test_a_file_is_parsed_once_until_it_changes(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kit's own tests read the same cassettes thousands of times; a replay changes nothing of what is kept."""
    parsed: list[Path] = []
    parse = sabir_testing.cassettes.files.parse
    monkeypatch.setattr(
        sabir_testing.cassettes.files, "parse", lambda text, path: parsed.append(path) or parse(text, path)
    )
    before = exchanges(recorded)

    for _ in range(3):
        assert exchanges(recorded) == before
        with replaying(recorded) as cassette:
            ask(NOWHERE)
            cassette.responses[0]["headers"].clear()
            cassette.requests[0].body = b"other"
    assert parsed == [recorded]

    recorded.write_text(recorded.read_text("utf-8").replace("hollow trees", "barns"), "utf-8")
    assert b"barns" in exchanges(recorded)[0].response_body
    assert parsed == [recorded] * 2


# The project's own cassettes


def told_otherwise(path: Path) -> Iterator[str]:
    """Exchanges of a cassette that do not replay as they were recorded."""
    check_cassette(path)
    with replaying(path), httpx2.Client(trust_env=False, verify=False) as client:
        for number, exchange in enumerate(exchanges(path)):
            told = client.request(exchange.method, NOWHERE + exchange.path, content=exchange.request_body)
            if (told.status_code, told.content) != (exchange.status, exchange.response_body):
                replayed = f"{told.status_code} {told.content!r}"
                yield f"cassettes/{path.parent.name}/{path.name}: exchange {number} replays as {replayed}"


def test_the_projects_cassettes_are_whole_replay_and_leak_nothing() -> None:
    """CD-10, CD-11: by the library's checks, without the SDKs."""
    check_each(sorted(CASSETTES.glob("*/*.yaml")), told_otherwise, "record it anew: pytest --sabir-record")
