"""What is heard of a reply, and how calls and results are described."""

import pytest
import sabir
from sabir_cli.conversation import Spoken, describe_call, describe_result, speak
from sabir_cli.output import Output


@sabir.option
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def test_a_reply_can_be_heard_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    """The demonstration labels what it hears."""
    said: list[str] = []
    with sabir.adapter("echo:any") as llm:
        speak(llm, [sabir.user("one two")], Output(), write=said.append)

    assert said == ["one ", "two"]
    assert capsys.readouterr().out == ""


def reply(**fields: object) -> sabir.Reply:
    origin = sabir.Origin(provider="echo", dialect="echo.plain")
    return sabir.Reply.model_validate({"messages": (), "finish_reason": "stop", "origin": origin, **fields})


@pytest.mark.parametrize(
    ("fields", "failed"),
    [
        ({}, False),
        ({"finish_reason": "length"}, False),
        ({"finish_reason": "content_filter"}, True),
        ({"finish_reason": "error"}, True),
        ({"finish_reason": "native_calls"}, True),
        ({"messages": (sabir.assistant(sabir.RefusalPart(text="No.")),)}, True),
    ],
)
def test_a_refused_filtered_or_unanswered_reply_has_failed(fields: dict[str, object], failed: bool) -> None:
    """A script must be able to tell a refusal from an answer, and nobody here answers a provider's own calls."""
    assert Spoken(reply(**fields), 1.0).failed is failed


def test_the_rate_counts_the_tokens_after_the_first() -> None:
    """The first token's time is that of reading the prompt."""
    spoken = Spoken(reply(usage=sabir.Usage(input_tokens=5, output_tokens=11)), 2.0)

    assert spoken.rate == 5.0
    assert spoken.summary() == "5 in, 11 out · stop · 5.0 tokens/s"


@pytest.mark.parametrize(("tokens", "seconds"), [(None, 2.0), (1, 2.0), (50, 0.0)])
def test_a_rate_that_nobody_can_know_is_left_out(tokens: int | None, seconds: float) -> None:
    """No count, one token, or all at once."""
    spoken = Spoken(reply(usage=sabir.Usage(output_tokens=tokens)), seconds)

    assert spoken.rate is None
    assert "tokens/s" not in spoken.summary()


def test_calls_and_results_are_described_in_one_line() -> None:
    """As Python would write them, and cut where nobody reads on."""
    payload = sabir.OptionCallPayload(invocation_id="1", option_name="add", arguments={"a": "x\n" * 400, "b": 1})
    call = sabir.Message(policy="llm", payload=payload)
    broken = sabir.OptionCallPayload(
        invocation_id="2", option_name="add", raw_arguments='{"a":\n', invalid_arguments=True
    )
    picture = sabir.OptionResultBuilder.response_to(call).success(sabir.image("https://example.com/a.png"))

    assert describe_call(call).startswith(r"add(a='x\nx\n")
    assert len(describe_call(call)) <= 300
    assert describe_call(sabir.Message(policy="llm", payload=broken)) == 'add({"a": )'
    assert describe_result(picture) == "(media)"
