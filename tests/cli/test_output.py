"""What the command writes: answers, remarks, replies and calls in a line; and how it ends: one table of exit codes."""

import io
import json
import re
from pathlib import Path

import pytest
import sabir
from cyclopts import CycloptsError
from pydantic import TypeAdapter, ValidationError
from rich.console import Console
from sabir_cli.conversation import TimedReply, describe_call, describe_result
from sabir_cli.exits import MEANINGS, Exit, help_text
from sabir_cli.failures import FLAGS, exit_of, explain, in_flags
from sabir_cli.main import build
from sabir_cli.output import Output, UsageError


def test_streamed_text_is_made_harmless_on_a_terminal_alone() -> None:
    """A pipe gets what the model said; a terminal must not be cleared by it."""
    output = Output()
    terminal, pipe = io.StringIO(), io.StringIO()
    output.out = Console(file=terminal, force_terminal=True)
    output.write("\x1b[2J")
    output.out = Console(file=pipe)
    output.write("\x1b[2J")

    assert (terminal.getvalue(), pipe.getvalue()) == ("␛[2J", "\x1b[2J")


def test_a_remark_never_continues_a_streamed_line(capsys: pytest.CaptureFixture[str]) -> None:
    """On a terminal both streams meet: the text's line is ended first, once."""
    output = Output()
    output.write("half a line")
    output.note("remark")
    output.note("another")

    assert capsys.readouterr() == ("half a line\n", "remark\nanother\n")


def test_with_json_only_the_document_and_errors_are_written(capsys: pytest.CaptureFixture[str]) -> None:
    """`sabir … --json | jq` must never meet a stray line."""
    output = Output(machine=True)
    output.write("text")
    output.show("table")
    output.note("remark")
    output.document({"key": "ü"})
    output.error("gone")
    out, err = capsys.readouterr()

    assert json.loads(out) == {"key": "ü"}
    assert err == "sabir: gone\n"


def test_an_error_is_one_line_whatever_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    """A server's error text may hold lines, and may be longer than the terminal is wide."""
    Output().error("first\nsecond " + "x" * 200)
    err = capsys.readouterr().err

    assert err.startswith("sabir: first second xxx")
    assert err.count("\n") == 1


README = Path(__file__).parents[2] / "plugins" / "cli" / "README.md"


def validation_error() -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(int).validate_python("x")
    return caught.value


def subclasses(kind: type[BaseException]) -> set[type[BaseException]]:
    return {kind}.union(*(subclasses(each) for each in kind.__subclasses__()))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (sabir.errors.HistoryInvalid("x"), 2),
        (sabir.errors.OptionInvalid("x"), 2),
        (UsageError("x"), 2),
        (CycloptsError("x"), 2),
        (validation_error(), 2),
        (FileNotFoundError(2, "gone", "f"), 2),
        (sabir.RenderingRefused("x", []), 1),
        (sabir.ProviderMissing("x"), 3),
        (sabir.CredentialsMissing("x"), 4),
        (sabir.errors.ResponseInvalid("x"), 4),
        (RuntimeError("x"), 70),
        (KeyboardInterrupt(), 130),
        (BrokenPipeError(), 141),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
def test_an_error_ends_in_the_code_of_its_nearest_class(error: BaseException, code: int) -> None:
    """A closed pipe is an OSError too, and a missing provider a SabirError: the nearer class decides."""
    assert exit_of(error) == code


def test_every_error_of_the_library_has_a_code_other_than_that_of_a_bug() -> None:
    """A new error class without a row would be reported as a fault of the program."""

    def of(kind: type[BaseException]) -> BaseException:
        """One of that class, unmade; a failure of several is a group, which is never empty."""
        return kind.__new__(kind, *(("several", [ValueError()]) if issubclass(kind, BaseExceptionGroup) else ()))

    unplaced = [kind.__name__ for kind in subclasses(sabir.SabirError) if exit_of(of(kind)) is Exit.BUG]

    assert unplaced == []


def test_every_code_has_one_row() -> None:
    """The table is the documentation: a code that it lacks is documented nowhere."""
    assert [*MEANINGS] == sorted(Exit)


def test_the_readme_holds_the_table() -> None:
    """What users read is what the program does."""
    documented = re.findall(r"^\| (\d+) \| (.+) \|$", README.read_text("utf-8"), re.MULTILINE)

    assert [(int(code), meaning) for code, meaning in documented] == [*MEANINGS.items()]


def test_the_help_text_holds_the_table() -> None:
    """`sabir --help` says what a script may rely on."""
    rows = [rf"^ +{code.value}  {re.escape(meaning)}$" for code, meaning in MEANINGS.items()]
    assert all(re.search(row, help_text(), re.MULTILINE) for row in rows)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cut off; raise max_output_tokens", "cut off; raise --max-output-tokens"),
        ("max_output_tokens=2 is too little", "--max-output-tokens 2 is too little"),
        ("Settings: temperature: Input should be a number", "Settings: --temperature: Input should be a number"),
        ("would lose: settings.reasoning_effort: no", "would lose: --reasoning-effort: no"),
        ("another process holds it; give another name=", "another process holds it; give another --name"),
        ("check the network and base_url", "check the network and --base-url"),
        ("no key; set the variable X, or pass api_key=", "no key; set the variable X"),
        ("set AWS_REGION, or pass api_key={'aws_region': …}", "set AWS_REGION"),
        (
            "leave out temperature, or pass model_facts={'rejects': ['temperature']} to drop it",
            "leave out --temperature, or set rejects = ['temperature'] in a table"
            ' [model_facts."provider:model"] of the settings file (`sabir config path`) to drop it',
        ),
        ("the server says: 'max_output_tokens' is unknown", "the server says: 'max_output_tokens' is unknown"),
        ("rename one with sabir.option(name=…)", "rename one with sabir.option(name=…)"),
        ("the name of the model: gpt", "the name of the model: gpt"),
    ],
)
def test_an_error_of_the_library_names_flags(text: str, shown: str) -> None:
    """What is quoted stays as somebody else wrote it, and so does what the command itself says of a setting."""
    assert explain(sabir.SettingsInvalid(text)) == shown == in_flags(text)
    assert explain(UsageError(text)) == text


def test_every_flag_that_errors_name_exists() -> None:
    """And every flag of `sabir chat` that is a setting of a call is named."""
    app = build(Output())
    flags = {
        name
        for command in ("chat", "render")
        for argument in app[command].assemble_argument_collection()
        for name in argument.names
    }

    assert {*FLAGS.values()} <= flags
    settings = {f"--{name.replace('_', '-')}" for name in sabir.Settings.model_fields}
    assert flags & settings <= {*FLAGS.values()}


def test_a_validation_error_is_one_line() -> None:
    """Pydantic's own text has three lines and a web address."""
    assert explain(validation_error()).startswith("int: ")
    assert "\n" not in explain(validation_error())


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
    assert TimedReply(reply(**fields), 1.0).failed is failed


def test_the_rate_counts_the_tokens_after_the_first() -> None:
    """The first token's time is that of reading the prompt."""
    spoken = TimedReply(reply(usage=sabir.Usage(input_tokens=5, output_tokens=11)), 2.0)

    assert spoken.rate == 5.0
    assert spoken.summary() == "5 in, 11 out · stop · 5.0 tokens/s"


@pytest.mark.parametrize(("tokens", "seconds"), [(None, 2.0), (1, 2.0), (50, 0.0)])
def test_a_rate_that_nobody_can_know_is_left_out(tokens: int | None, seconds: float) -> None:
    spoken = TimedReply(reply(usage=sabir.Usage(output_tokens=tokens)), seconds)

    assert spoken.rate is None
    assert "tokens/s" not in spoken.summary()


def test_calls_and_results_are_described_in_one_line() -> None:
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
