"""Files, stores and recordings, as the inspector reads them, and what redaction leaves of them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import sabir
import sabir_session
from sabir_cli.inspect.cache_proof import with_cache_proof
from sabir_cli.inspect.comparison import RequestedComparison
from sabir_cli.inspect.documents import static_document
from sabir_cli.inspect.inspection import InspectedMessage, Inspection, ReplyFigures, plain_entries
from sabir_cli.inspect.loading import load_inspection
from sabir_cli.inspect.redaction import redact
from sabir_cli.output import UsageError

from tests.architecture.project import ROOT
from tests.cli.inspect.samples import answered, called, origin, said, trip

SECRETS = ("Bolzano", "Verona", "EC 86", "ridge", "bike", "clear", "Saturday", 'encrypted_content":"abc', "low sun")


def test_messages_and_import_documents_are_read(tmp_path: Path) -> None:
    messages = trip()
    sabir.save(tmp_path / "trip.json", messages)
    request = sabir.adapter("openai.chat:gpt-4.1").render("Hello!", settings=sabir.Settings(temperature=0.5))
    (tmp_path / "request.json").write_bytes(request.body_bytes)

    assert load_inspection(str(tmp_path / "trip.json")).messages == messages
    imported = load_inspection(str(tmp_path / "request.json"))
    assert [message.text for message in imported.messages] == ["Hello!"] and imported.settings.temperature == 0.5
    assert "temperature&quot;: 0.5" in static_document(imported, RequestedComparison(()))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Path]:
    """A store with two conversations, one of which echo answered."""
    path = tmp_path / "chats.db"
    for name in ("monday", "tuesday"):
        chat = sabir_session.Conversation("echo:small", keep=str(path), name=name)
        chat.ask_sync(f"Hello {name}!")
        chat.close()
    yield path


def test_a_store_gives_times_and_tokens_and_is_not_changed(store: Path) -> None:
    before = store.read_bytes()
    inspection = load_inspection(str(store), "tuesday")

    question, reply = inspection.entries
    assert question.message.text == "Hello tuesday!" and question.when is not None and question.figures is None
    assert reply.figures is not None and reply.figures.usage.output_tokens == 2
    assert store.read_bytes() == before
    with pytest.raises(UsageError, match=r"choose one with --name: 'monday', 'tuesday'"):
        load_inspection(str(store))


def test_a_recording_shows_repeated_messages_once() -> None:
    """The second request repeats the first and its reply; streams and whole responses are decoded alike."""
    for dialect in ("openai.chat", "openai.responses", "anthropic.messages", "google.generate_content"):
        for name in ("reasoning_loop", "reasoning_loop_streamed", "multi_turn"):
            path = ROOT / "cassettes" / dialect / f"{name}.yaml"
            if not path.exists():
                continue
            inspection = load_inspection(str(path))
            kinds = [entry.message.kind for entry in inspection.entries]
            assert inspection.entries[-1].figures is not None and inspection.notes == ()
            assert kinds.count("option_call") == kinds.count("option_result") == (1 if "loop" in name else 0)
            assert [entry.message.text for entry in inspection.entries].count("My name is Ada.") <= 1


def test_a_reply_says_what_its_request_shares_with_the_one_before() -> None:
    """The prediction stands next to the vendor's number; another model shares nothing."""
    by, other = origin("openai.chat", "gpt-4.1"), origin("anthropic.messages", "claude-sonnet-5")
    usage = sabir.Usage(input_tokens=1000, output_tokens=20)
    replies = [
        entry
        for maker in (by, by, other)
        for entry in (
            InspectedMessage(sabir.user("Rain?")),
            InspectedMessage(said("Yes.", maker)),
            InspectedMessage(called("f", "c", maker), figures=ReplyFigures(usage)),
            InspectedMessage(answered(called("f", "c"), 1)),
        )
    ]
    figures = [entry.figures for entry in with_cache_proof(Inspection("t", "s", tuple(replies))).entries]

    assert [each.shared for each in figures if each is not None] == [
        "", "≈ 1,020 shared with the request before", "another provider than before",
    ]  # fmt: skip


def test_a_failed_exchange_becomes_a_note() -> None:
    inspection = load_inspection(str(ROOT / "cassettes" / "openai.chat" / "rate_limited.yaml"))

    assert "HTTP 429" in inspection.notes[0] and len(inspection.entries) == 1


def test_redaction_keeps_the_structure_and_no_content(tmp_path: Path) -> None:
    sabir.save(tmp_path / "trip.json", trip())
    inspection = load_inspection(str(tmp_path / "trip.json"))
    redacted = redact(inspection)
    page = static_document(redacted, RequestedComparison(("openai:gpt-5", "anthropic:claude-sonnet-5")))

    assert [message.kind for message in redacted.messages] == [message.kind for message in inspection.messages]
    assert next(message.text for message in redacted.messages if message.text) == "xxxx xxxxx xx xxxxxx"
    assert [message.origin and message.origin.model for message in redacted.messages].count("gpt-5") == 4
    body = page[page.index("<body>") : page.index("<script>")]
    assert [secret for secret in SECRETS if secret in body] == []
    assert "does not accept audio" in page and '{"city": "xxxxxxx"}' in page.replace("&quot;", '"')


def test_redaction_hides_what_a_program_named_itself() -> None:
    """Names of authors, ids, hosts, keys of results and signed state."""
    secret = "zebra-4711"
    by = sabir.Origin(provider="openai", dialect="openai.chat", endpoint=f"https://{secret}.example", model="m")
    result = sabir.OptionResultPayload(invocation_id=secret, option_name="f", result={secret: [secret, 4711]})
    call = sabir.OptionCallPayload(invocation_id=secret, option_name="f", arguments={"a": secret}, raw_arguments=secret)
    parts = (
        sabir.ReasoningPart(text=secret, state={"type": "thinking", "signature": secret}),
        sabir.MediaPart(modality="image", url=f"https://{secret}.example/a.png", name=secret, prompt_hint=secret,
                        vendor={"openai": {"detail": secret}}),
        sabir.MediaPart(modality="image", url=f"provider-file:openai/{secret}", id=secret),
        sabir.NativeCallPart(tool="web_search", queries=(secret,), pair_id=secret, dialect="d", raw={"q": secret}),
        sabir.OpaquePart(dialect="d", block={"type": "x", "q": secret}),
        sabir.TextPart(text=secret, citations=(sabir.Citation(kind="page", url=secret, source={"u": secret}),)),
    )  # fmt: skip
    messages = [
        sabir.Message(id=secret, policy=secret, origin=by, payload=sabir.PartsPayload(parts=parts)),
        sabir.Message(policy="llm", payload=call),
        sabir.Message(policy="f", payload=result),
    ]
    redacted = redact(Inspection(secret, secret, plain_entries(messages), notes=(secret,)))

    stored = json.dumps([message.model_dump(mode="json") for message in redacted.messages])
    assert "zebra" not in stored + repr(redacted) and "4711" not in stored
    assert len(redacted.messages[0].parts) == 6 and "cannot be redacted" not in stored
    assert '"type": "thinking"' in stored or '"type":"thinking"' in stored
