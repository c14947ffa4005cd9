"""The pure half: `sabir.dialect(name)` renders and decodes without endpoint, key, client or network."""

import json
from typing import Any

import pytest
import sabir
from sabir.contract.dialect import DecodedHistory, ServerEvent
from sabir.contract.scope import DecodeScope
from sabir.errors import DialectMissing, HistoryInvalid, ProviderMissing, RateLimited, RenderingRefused, ResponseInvalid
from sabir.options.option import Option
from sabir.reading.fold import Fold
from sabir.vocabulary.settings import Settings

from tests.core.support import Tiny, TinyDialect

STORED = {"model": "m", "settings": {"seed": 3}, "turns": [{"side": "user", "text": "Hi."}]}


@pytest.fixture
def pure(tiny: Tiny) -> sabir.PureDialect:
    return sabir.dialect("tiny.talk")


def test_nothing_is_connected(tiny: Tiny, pure: sabir.PureDialect) -> None:
    """Law 6: neither rendering nor decoding makes a connection or reads a key."""
    pure.render("Hi.")
    pure.decode('{"text": "Hello.", "finish": "stop"}')
    pure.decode_history(STORED)

    assert tiny.made == {}
    assert repr(pure) == "<dialect tiny.talk>"


@pytest.mark.parametrize(
    ("name", "error", "says"),
    [
        ("nowhere.talk", ProviderMissing, "nowhere"),
        ("tiny.shout", DialectMissing, "'tiny.shout' is not a dialect; tiny has tiny.talk"),
        ("tiny", DialectMissing, "tiny has tiny.talk"),
        ("", ProviderMissing, "installed"),
    ],
)
def test_an_unknown_name_says_what_there_is(tiny: Tiny, name: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error) as raised:
        sabir.dialect(name)

    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


def test_rendering_speaks_for_a_policy_and_refuses_losses(pure: sabir.PureDialect) -> None:
    said = sabir.assistant("No.", policy="critic")
    sides = [pure.render([said], speaks_as=policy).body["turns"][0]["side"] for policy in ("critic", "llm")]

    assert sides == ["assistant", "user"]
    with pytest.raises(RenderingRefused, match="cannot accept everything"):
        pure.render(sabir.user("Hi.", sabir.image("https://example.org/sky.jpg")), strict=True)


@pytest.mark.parametrize(
    ("body", "text", "lost"),
    [
        ('{"text": "Hello.", "finish": "stop"}', "Hello.", []),
        (b'{"text": "Hello.", "finish": "stop"}', "Hello.", []),
        (b'{"text": "a\\ud83d", "finish": "stop"}', "a\ufffd", [("rewritten", "reply")]),
        (b'{"text": "a\xff", "finish": "stop"}', "a\ufffd", [("rewritten", "reply")]),
    ],
    ids=["text", "bytes", "half a pair", "no UTF-8"],
)
def test_a_stored_response_decodes(pure: sabir.PureDialect, body: Any, text: str, lost: list[Any]) -> None:
    """U+FFFD stands for what no text can hold, with a loss."""
    reply = pure.decode(body, policy="critic")

    assert (reply.text, reply.messages[0].policy) == (text, "critic")
    assert [(loss.kind, loss.path) for loss in reply.losses] == lost


def test_what_is_no_response_and_no_event_is_one_error(pure: sabir.PureDialect) -> None:
    """Law 10: whatever a dialect raises ends as ResponseInvalid, which says whose it was."""
    for read in (lambda: pure.decode("<html>"), lambda: pure.decoder().feed(ServerEvent("<html>"))):
        with pytest.raises(ResponseInvalid, match=r"a body that is not tiny\.talk, '<html>'") as raised:
            read()
        assert raised.value.provider == "tiny"
        assert raised.value.__cause__ is not None


def test_an_error_that_a_response_reports_stays_itself(
    pure: sabir.PureDialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    def limited(self: TinyDialect, body: bytes, scope: DecodeScope) -> Any:
        raise RateLimited("slower")

    monkeypatch.setattr(TinyDialect, "decode", limited)
    with pytest.raises(RateLimited, match="slower") as raised:
        pure.decode("{}")

    assert raised.value.provider == "tiny"


def test_a_stored_stream_decodes_event_by_event(pure: sabir.PureDialect) -> None:
    decoder, fold = pure.decoder(policy="critic"), Fold(DecodeScope(pure.target, policy="critic"))
    for event in ({"open": "r1"}, {"text": "Hel"}, {"text": "lo."}, {"finish": "stop"}):
        for each in decoder.feed(ServerEvent(json.dumps(event))):
            fold.feed(each)
    for each in decoder.close():
        fold.feed(each)
    reply = fold.reply()

    assert (reply.text, reply.messages[0].policy, reply.origin.response_id) == ("Hello.", "critic", "r1")


@pytest.mark.parametrize("body", [STORED, json.dumps(STORED), json.dumps(STORED).encode()], ids=["map", "str", "bytes"])
def test_a_stored_request_is_a_history(pure: sabir.PureDialect, body: Any) -> None:
    history = pure.decode_history(body)

    assert [(message.policy, message.text) for message in history.messages] == [("user", "Hi.")]
    assert (history.model, history.settings, history.options, history.losses) == ("m", Settings(seed=3), (), ())
    assert DecodedHistory.model_validate_json(history.model_dump_json()) == history
    answered = {**STORED, "turns": [{"side": "assistant", "text": "Hello."}]}
    by = [pure.decode_history(answered, **how).messages[0].policy for how in ({}, {"policy": "critic"})]
    assert by == ["llm", "critic"]


def test_a_mapping_may_hold_what_an_sdk_takes(pure: sabir.PureDialect) -> None:
    settings = {"response_format": sabir.ResponseFormat(name="sky", schema={"type": "object"})}
    stored = {**STORED, "settings": settings, "turns": ({"side": "user", "text": "Hi."},)}

    found = pure.decode_history(stored).settings.response_format

    assert found is not None
    assert found.name == "sky"


@pytest.mark.parametrize(
    "body",
    [
        b'{"model": "m", "settings": {}, "turns": [{"side": "user", "text": "a\\ud83d"}]}',
        b'{"model": "m", "settings": {}, "turns": [{"side": "user", "text": "a\xff"}]}',
        {"model": "m", "settings": {}, "turns": [{"side": "user", "text": "a\ud83d"}]},
        '{"model": "m", "settings": {}, "turns": [{"side": "user", "text": "a\ud83d"}]}',
    ],
    ids=["escape", "bytes", "mapping", "text"],
)
def test_a_request_in_broken_unicode_is_read_with_a_loss(pure: sabir.PureDialect, body: Any) -> None:
    history = pure.decode_history(body)

    assert history.messages[0].text.startswith("a\ufffd")
    assert [(loss.kind, loss.path) for loss in history.losses] == [("rewritten", "request")]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("<html>", "this is not a request of tiny.talk, '<html>'"),
        ("", "this is not a request of tiny.talk, an empty body"),
        ({"model": "m"}, "KeyError: 'turns'"),
        ({"model": "m", "turns": 5, "settings": {}}, "TypeError"),
        ({"model": "m", "turns": [], "settings": {"sed": 3}}, "SettingsInvalid"),
        ({"temperature": float("nan")}, "the request is not JSON: Out of range float"),
        ({"turns": {1, 2}, "sent": object()}, "the request is not JSON: "),
        (["Hi."], "a request is JSON text or a mapping, not of type list"),
    ],
    ids=["html", "empty", "no messages", "wrong type", "wrong setting", "nan", "object", "list"],
)
def test_what_is_no_request_is_one_error(pure: sabir.PureDialect, body: Any, says: str) -> None:
    with pytest.raises(HistoryInvalid) as raised:
        pure.decode_history(body)

    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


def test_the_dialects_own_words_are_kept(pure: sabir.PureDialect, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: TinyDialect, body: bytes, scope: DecodeScope) -> Any:
        raise HistoryInvalid("turns[0] is None; expected an object")

    monkeypatch.setattr(TinyDialect, "decode_history", refused)
    with pytest.raises(HistoryInvalid) as raised:
        pure.decode_history("{}")

    assert str(raised.value) == "this is not a request of tiny.talk: turns[0] is None; expected an object"


def test_echo_reads_what_it_rendered() -> None:
    pure = sabir.dialect("echo.plain")
    option = Option.from_schema("weather", "", {"type": "object", "properties": {}})
    call = sabir.OptionCallPayload(invocation_id="c1", option_name="weather", arguments={"city": "Rome"})
    failed = sabir.OptionCallPayload(invocation_id="c2", option_name="weather")
    messages = [
        sabir.system("Be brief."),
        sabir.user("Umbrella?"),
        sabir.assistant("Let me see."),
        sabir.Message(policy="llm", payload=call),
        sabir.Message(policy="llm", payload=failed),
        sabir.OptionResultBuilder.response_to(sabir.Message(policy="llm", payload=call)).success("rain"),
        sabir.OptionResultBuilder.response_to(sabir.Message(policy="llm", payload=failed)).error("lost", "no sky"),
    ]
    body = pure.render(messages, model="small", options=[option], settings=Settings(seed=3, stop="END")).body_bytes
    history = pure.decode_history(body)

    assert (history.model, history.options, history.losses) == ("small", (option,), ())
    assert history.settings == Settings(seed=3, stop="END")
    assert [message.policy for message in history.messages] == ["system", "user", *["llm"] * 3, *["weather"] * 2]
    again = pure.render(history.messages, model="small", options=history.options, settings=history.settings)
    assert json.loads(again.body_bytes) == json.loads(body)


def test_echo_names_a_result_without_its_call() -> None:
    stored = {"model": "m", "options": [], "settings": {}, "messages": [{"from": "results", "answers": "c1"}]}

    with pytest.raises(HistoryInvalid, match="answers the call 'c1', which no earlier item has"):
        sabir.dialect("echo.plain").decode_history(stored)


@pytest.mark.parametrize("given", [None, {"text": "a"}, ["a"], 3, object()])
def test_decoding_says_what_it_takes(pure: sabir.PureDialect, given: Any) -> None:
    with pytest.raises(ResponseInvalid, match=f"of type {type(given).__name__}; decode needs .* str or bytes"):
        pure.decode(given)
    with pytest.raises(ResponseInvalid, match=f"of type {type(given).__name__}; feed needs a ServerEvent"):
        pure.decoder().feed(given)
