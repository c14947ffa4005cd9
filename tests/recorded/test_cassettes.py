"""Every recorded exchange replays through the official SDK's client to the reply or error that it stands for."""

from pathlib import Path
from typing import Any

import pytest
import sabir
import yaml
from vcr.cassette import Cassette
from vcr.errors import CannotOverwriteExistingCassetteException

from tests.recorded.cases import CASSETTES, Ask, Case, cassette_path, exchanges
from tests.recorded.recorder import check_played, recorder

EXCHANGES = exchanges()
each_exchange = pytest.mark.parametrize(
    ("dialect", "name", "case", "ask"), EXCHANGES, ids=[f"{dialect}/{name}" for dialect, name, _, _ in EXCHANGES]
)


def replay(dialect: str, name: str, case: Case, ask: Ask, **changes: Any) -> sabir.Reply | sabir.SabirError:
    """What a case gives when its cassette answers."""
    with recorder("none").use_cassette(str(cassette_path(dialect, name))) as cassette:
        url = "http://127.0.0.1:9/v1"
        with sabir.adapter(f"{dialect}:smollm2", base_url=url, api_key="none", **changes) as adapter:
            outcome = ask(adapter, case)
        check_played(cassette)
    return outcome


@each_exchange
def test_a_recorded_exchange_decodes_to_what_its_case_stands_for(dialect: str, name: str, case: Case, ask: Ask) -> None:
    """CD-10: offline, in record mode none, matched on method, path and body."""
    outcome = replay(dialect, name, case, ask)

    if case.expects is not None:
        assert type(outcome) is case.expects
        return
    assert isinstance(outcome, sabir.Reply), outcome
    assert outcome.usage.output_tokens
    if name.startswith("option_call"):
        assert outcome.finish_reason == "option_calls"
        [call] = outcome.option_calls
        assert call.call is not None
        assert call.call.option_name == "weather"
        assert "Paris" in str(call.call.arguments["city"])
    elif name.startswith("max_tokens"):
        assert outcome.usage.output_tokens == 3
        # On Responses this server says `completed` all the same.
        assert outcome.finish_reason == ("length" if dialect == "openai.chat" else "stop")
    else:
        assert outcome.text
    if name.startswith("option_result"):
        assert "18" in outcome.text


def test_structured_output_is_recorded_as_what_it_was_asked_for() -> None:
    """The recorded text validates against the schema that was sent."""
    for name in ("structured_output", "structured_output_streamed"):
        _, _, case, ask = next(each for each in EXCHANGES if each[1] == name)
        reply = replay("openai.chat", name, case, ask)
        assert isinstance(reply, sabir.Reply)
        assert reply.finish_reason == "stop"
        assert isinstance(sabir.loads(sabir.dumps(reply.messages))[0].text, str)


def test_a_stream_folds_to_what_the_whole_answer_says() -> None:
    """Law 8 on recordings: the server is deterministic, so both ways of asking give the same content."""
    for dialect, name, case, ask in EXCHANGES:
        if case.expects is not None or name.endswith("_streamed"):
            continue
        streamed = next(each for each in EXCHANGES if each[:2] == (dialect, f"{name}_streamed"))
        whole, folded = replay(dialect, name, case, ask), replay(*streamed)
        assert isinstance(whole, sabir.Reply)
        assert isinstance(folded, sabir.Reply)
        assert (whole.text, whole.finish_reason) == (folded.text, folded.finish_reason), (dialect, name)
        assert [call.call and call.call.arguments for call in whole.option_calls] == [
            call.call and call.call.arguments for call in folded.option_calls
        ]


def test_another_body_is_not_answered() -> None:
    """CD-11: a wrong rendering finds no recorded answer."""
    dialect, name, case, ask = EXCHANGES[0]
    with pytest.raises(CannotOverwriteExistingCassetteException, match="the closest differ in _same_body"):
        replay(dialect, name, case, ask, settings=sabir.Settings(seed=1))


def test_an_exchange_that_nothing_asks_for_is_a_failure() -> None:
    """CD-10: a cassette that is longer than what is asked for fails, and so does an empty one."""
    with recorder("none").use_cassette(str(cassette_path("openai.chat", "text"))) as cassette:
        pass
    with pytest.raises(AssertionError, match="1 recorded exchanges were not asked for"):
        check_played(cassette)
    with pytest.raises(AssertionError, match="the cassette is empty"):
        check_played(Cassette(path="none"))


@pytest.mark.parametrize("path", sorted(CASSETTES.glob("*/*.yaml")), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_cassette_says_where_it_is_from_and_holds_no_secret(path: Path) -> None:
    """CD-11: provenance in each; no key and no host of the machine that recorded it."""
    text = path.read_text(encoding="utf-8")
    loaded = yaml.safe_load(text)

    assert set(loaded["provenance"]) == {"server", "version", "weights", "date", "client"}
    assert (path.parent.name, path.stem) in {(dialect, name) for dialect, name, _, _ in EXCHANGES}
    lowered = text.lower()
    for secret in ("bearer ", "authorization", "127.0.0.1", "localhost", "sk-"):
        assert secret not in lowered, secret
